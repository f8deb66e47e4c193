// SPDX-License-Identifier: Apache-2.0
/* crashline.h - the line of Python where machine code crashes */
#pragma once

void kp_crashline_begin(void); /* handles SIGSEGV, SIGBUS, SIGFPE and SIGILL, where the program does not */
void kp_crashline_end(void);   /* gives them back; async-signal-safe */

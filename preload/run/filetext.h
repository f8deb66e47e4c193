// SPDX-License-Identifier: Apache-2.0
/* filetext.h - says who makes the files beside a trace, and whether there are new files at all */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Logs which commands make what KPROF_EXPORT (`exports`) asks for beside the traces, unless they are made anyway. */
void kp_filetext_say_beside(unsigned exports);
/* Whether a process has recorded into the folder since then: the ranks of a launcher, for example. */
bool kp_filetext_has_new(uint64_t since_ns);

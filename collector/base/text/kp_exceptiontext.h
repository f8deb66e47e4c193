// SPDX-License-Identifier: Apache-2.0
/* kp_exceptiontext.h - what is kept of the text of an exception */
#pragma once

#include <stddef.h>

/*
 * Copies the first line of a text, or its begin and "...", without tabs. A library of C++ puts before it where in its
 * own source it was: "[/x/gloo/transport/tcp/pair.cc:547] " of gloo, "[enforce fail at alloc_cpu.cpp:127] err == 0. "
 * of c10. That is left out. Any thread.
 */
void kp_exceptiontext_copy(char *out, size_t bytes, const char *text);

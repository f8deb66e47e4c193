// SPDX-License-Identifier: Apache-2.0
/* beside.h - the files of KPROF_EXPORT that lie beside a trace: NAME.table.txt, NAME.stacks.txt, NAME.memory.html */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kp_export_owner;

enum { KP_BESIDE_TABLE = 1u << 0, KP_BESIDE_STACKS = 1u << 1, KP_BESIDE_MEMORY = 1u << 2 };

/* The bits of a list as KPROF_EXPORT has it. *trace: whether it names the trace. False: it has a word of no meaning. */
bool kp_beside_parse(const char *list, unsigned *which, bool *trace);
/*
 * Writes what a list names beside a trace, as `kprof report --torch`, `kprof stacks --torch` and `kprof memory --html`
 * print it. Where there is nothing to write, the command says so. Waits for them. `owner`: as in kp_export.h, or NULL.
 * Returns 0, or -errno of the first failure. *made gets the bits of the files that are there now.
 */
int kp_beside_write(const char *trace, unsigned which, const struct kp_export_owner *owner, unsigned *made);
/* ", .table.txt, .stacks.txt", without the first comma where `is_first`. */
const char *kp_beside_ends(unsigned which, bool is_first, char *out, size_t bytes);
/* "table" */
const char *kp_beside_word(unsigned bit);
/* Writes them for each trace of a folder, and of its `children`, that was written since: once for a process. */
void kp_beside_folder(const char *folder, unsigned which, long since_s);
/* Says how many were written so by this process. */
void kp_beside_say(unsigned which);

// SPDX-License-Identifier: Apache-2.0
/* beside.h - the files of KPROF_EXPORT that lie beside a trace: NAME.table.txt, NAME.stacks.txt, NAME.memory.html */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "collector/base/kp_config.h"

struct kp_export_owner;

/* The bits of a list as KPROF_EXPORT has it (KP_EXPORTS_TRACE, those of KP_EXPORTS_BESIDE). 0: none, or no list. */
unsigned kp_beside_parse(const char *list);
/*
 * Writes what the bits name beside a trace, as `kprof report --torch`, `kprof stacks --torch` and `kprof memory --html`
 * print it. If there is nothing to write, the command says so. Waits for them. `owner`: as in kp_export.h, or NULL.
 * Returns 0, or -errno of the first failure. *made gets the bits of the files that are there now.
 */
int kp_beside_write(const char *trace, unsigned which, const struct kp_export_owner *owner, unsigned *made);
/* ", .table.txt, .stacks.txt", without the first comma where `is_first`. */
const char *kp_beside_ends(unsigned which, bool is_first, char *out, size_t bytes);
/* Writes them for each trace of a folder, and of its `children`, that was written since: once for a process. */
void kp_beside_folder(const char *folder, unsigned which, long since_s);
/* Says how many were written so by this process. */
void kp_beside_say(unsigned which);

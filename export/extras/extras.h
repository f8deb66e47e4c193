// SPDX-License-Identifier: Apache-2.0
/*
 * extras.h - writes the files of KPROF_EXPORT beside a trace: the table, the stacks, the memory page
 *
 * The code of `kprof report`, `stacks` and `memory` makes them from the trace's text while that is written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_export_owner;
struct kp_extras;
/*
 * `which` has bits of KP_EXTRA_. `dir` is the folder of a scratch file. Only the command has an `owner`. `most` is the
 * most bytes of folded stacks, or 0. NULL: `which` is 0, or no memory.
 */
struct kp_extras *kp_extras_open(unsigned which, const char *dir, const struct kp_export_owner *owner, uint64_t most);
/* Whether a file exists that an extra would have to replace. */
bool kp_extras_exist(unsigned which, const char *trace_path);
void kp_extras_text(struct kp_extras *extras, const char *text, size_t bytes); /* the next piece of the trace */
/*
 * After the last piece: writes the files for DIR/NAME.pt.trace.json[.gz] as DIR/NAME.table.txt and so on. `written`
 * gets the bits of the files that exist now. A trace without call stacks gives no stacks, a trace without allocations
 * no memory page. 0, or -errno of the first that failed. -EEXIST: a file of that name exists, and is never replaced.
 */
int kp_extras_write(struct kp_extras *extras, const char *trace_path, unsigned *written);
void kp_extras_close(struct kp_extras *extras);

// SPDX-License-Identifier: Apache-2.0
/*
 * extras.h - what KPROF_EXPORT writes beside a trace: the table, the stacks, the page of memory
 *
 * They are made from the text of the trace while it is written, by the code of `kprof report`, `stacks` and `memory`.
 */
#ifndef KP_EXTRAS_H
#define KP_EXTRAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_export_owner;
struct kp_extras;
/*
 * `which`: bits of KP_EXTRA_. NULL: none is wanted, or no memory. `dir`: for what is remembered meanwhile. `owner`: of
 * the command alone. `most`: bytes of folded stacks; 0: any number.
 */
struct kp_extras *kp_extras_open(unsigned which, const char *dir, const struct kp_export_owner *owner, uint64_t most);
/* Whether a file is there that one of these would have to replace. */
bool kp_extras_exist(unsigned which, const char *trace_path);
void kp_extras_text(struct kp_extras *extras, const char *text, size_t bytes); /* the next piece of the trace */
/*
 * After the last piece: writes the files for DIR/NAME.pt.trace.json[.gz] as DIR/NAME.table.txt and so on. `written`
 * (bits) has what is there now: a trace without call stacks gives no stacks, one without allocations no memory. 0 or
 * -errno of the first that failed; -EEXIST when somebody made a file of that name meanwhile: none is ever replaced.
 */
int kp_extras_write(struct kp_extras *extras, const char *trace_path, unsigned *written);
void kp_extras_close(struct kp_extras *extras);

#endif

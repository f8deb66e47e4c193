// SPDX-License-Identifier: Apache-2.0
/*
 * sources.h - all sources of the library, and which of them are attached
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/source.h"

extern const struct kp_source *const kp_sources[]; /* ends with NULL */

/* Attaches those whose library is loaded now, and tells the others that modules changed. True: one more is attached.
 * *starts_active: one of those records before any op. One thread at a time. */
bool kp_sources_attach(bool *starts_active);
/* Attaches those that can before the constructors of the library with the address `inside`. Rules as above. */
bool kp_sources_attach_early(const void *inside, bool *starts_active);
/* Whether a source saw activity, recorded or not. */
bool kp_sources_had_activity(void);
/* Leaves out those that record any program, as the heap does: torch, Python or a GPU was seen at work. */
bool kp_sources_had_work(void);
/* Whether a source saw activity since the last call. One thread calls it. */
bool kp_sources_had_activity_since(void);
void kp_sources_gpu_changed(void);

/* Returns a bit for each source that took its locks for a fork, and sets in *lost those that could not. */
uint32_t kp_sources_before_fork(uint32_t *lost);
void kp_sources_after_fork(uint32_t held, bool is_child);
/* In a child that shall record: returns those that record there, a list that ends with NULL. `lost` do not. */
const struct kp_source *const *kp_sources_of_child(uint32_t lost);

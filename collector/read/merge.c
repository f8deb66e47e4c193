// SPDX-License-Identifier: Apache-2.0
/*
 * merge.c - merges threads by time: finds the earliest of many cursors
 *
 * Called by: events.c, heap.c
 * Memory:    16 bytes for each cursor
 * On fail:   -ENOMEM
 */
#include "collector/read/merge.h"

#include <errno.h>
#include <stddef.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_sort.h"
#include "collector/base/kp_poison.h"

static bool is_earlier(const void *left, const void *right, const void *context)
{
    const struct kp_merge_entry *a = left, *b = right;
    (void)context;
    return a->start != b->start ? a->start < b->start : a->which < b->which;
}

int kp_merge_init(struct kp_merge *m, uint32_t most)
{
    *m = (struct kp_merge){.of = most ? kp_map_alloc(most * sizeof *m->of) : NULL, .most = most};
    return most && !m->of ? -ENOMEM : 0;
}

void kp_merge_fini(struct kp_merge *m)
{
    if (m->of) kp_map_free(m->of, m->most * sizeof *m->of);
    *m = (struct kp_merge){0};
}

void kp_merge_add(struct kp_merge *m, uint64_t start, uint32_t which)
{
    m->of[m->n++] = (struct kp_merge_entry){start, which};
}

void kp_merge_begin(struct kp_merge *m) { kp_heap_make(m->of, sizeof *m->of, m->n, false, is_earlier, NULL); }

void kp_merge_moved(struct kp_merge *m, bool more, uint64_t start)
{
    if (more) m->of[0].start = start;
    else m->of[0] = m->of[--m->n];
    if (m->n) kp_heap_sift(m->of, sizeof *m->of, 0, m->n, false, is_earlier, NULL);
}

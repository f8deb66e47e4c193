// SPDX-License-Identifier: Apache-2.0
/*
 * merge.c - threads merged by time: which of many cursors stands earliest
 *
 * Called by: events.c, heap.c
 * Memory:    16 bytes a cursor. On fail: -ENOMEM.
 */
#include "collector/read/merge.h"

#include <errno.h>
#include <stddef.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_poison.h"

static bool is_earlier(const struct kp_merge_entry *a, const struct kp_merge_entry *b)
{
    return a->start != b->start ? a->start < b->start : a->which < b->which;
}

static void sift(struct kp_merge *m, uint32_t at)
{
    const struct kp_merge_entry x = m->of[at];
    for (uint32_t child; (child = 2 * at + 1) < m->n; at = child) {
        if (child + 1 < m->n && is_earlier(&m->of[child + 1], &m->of[child])) child++;
        if (!is_earlier(&m->of[child], &x)) break;
        m->of[at] = m->of[child];
    }
    m->of[at] = x;
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

void kp_merge_begin(struct kp_merge *m)
{
    for (uint32_t i = m->n / 2; i-- > 0;) sift(m, i);
}

void kp_merge_moved(struct kp_merge *m, bool more, uint64_t start)
{
    if (more) m->of[0].start = start;
    else m->of[0] = m->of[--m->n];
    if (m->n) sift(m, 0);
}

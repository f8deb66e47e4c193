// SPDX-License-Identifier: Apache-2.0
/* pageworks.c - what work of a GPU is told with when it is chosen: its launch, what it moves, its op */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/pageparts.h"
#include "export/show/units.h"

struct work_text {
    char text[400];
    size_t used;
};

/* Adds an item; the page shows each by itself. */
__attribute__((format(printf, 2, 3))) static void item_add(struct work_text *t, const char *format, ...)
{
    va_list args;
    if (t->used) t->used += (size_t)snprintf(t->text + t->used, sizeof t->text - t->used, "; ");
    va_start(args, format);
    t->used += (size_t)vsnprintf(t->text + t->used, sizeof t->text - t->used, format, args);
    va_end(args);
}

static void sides_add(struct work_text *t, const char *what, const uint32_t *sides)
{
    if (sides[0]) item_add(t, "%s %" PRIu32 " x %" PRIu32 " x %" PRIu32, what, sides[0], sides[1], sides[2]);
}

static void work_say(struct work_text *t, const struct kp_kineto_work *work, int64_t ns)
{
    sides_add(t, "grid", work->grid);
    sides_add(t, "block", work->block);
    if (work->registers > 0) item_add(t, "%" PRId32 " registers a thread", work->registers);
    if (work->local_bytes > 0) item_add(t, "%" PRId32 " bytes of them or arrays in memory", work->local_bytes);
    if (work->shared >= 0) item_add(t, "%s shared memory a block", kp_units_size(work->shared));
    if (work->occupancy >= 0) item_add(t, "est. occupancy %.0f %%", (double)work->occupancy);
    if (work->bytes > 0) item_add(t, "%s", kp_units_size(work->bytes));
    if (work->bytes > 0 && ns > 0) item_add(t, "%.3g GB/s", (double)work->bytes / (double)ns);
}

/* Number of the node's text + 1; 0: nothing is known. */
static uint32_t text_of(struct kp_page *page, uint32_t node)
{
    const struct kp_node *n = &page->tree->nodes[node];
    struct kp_kineto *trace = page->tree->trace;
    const struct kp_kineto_work *work = kp_kineto_work_of(trace, n->event);
    struct work_text t = {.used = 0};
    if (work) work_say(&t, work, n->end_ns - n->start_ns);
    if (kp_tree_asked_ns(page->tree, node) == INT64_MIN) item_add(&t, "launched before the recording");
    return t.used ? kp_page_text(page, kp_strings_put(trace->strings, t.text, strlen(t.text))) + 1 : 0;
}

/* Each event: "work", 1 + the number of its text; "op", 1 + the number of the op that launched it. 0: none. */
void kp_page_works_put(struct kp_page *page, const uint32_t *positions, const uint32_t *order, size_t count)
{
    uint32_t *texts = kp_kineto_zeros(2 * (count + 1), sizeof *texts), *ops = texts + count + 1;
    for (size_t i = 0; i < count; i++) {
        const struct kp_node *node = &page->tree->nodes[order[i]];
        if (kp_tree_event(page->tree, order[i])->kind != KP_KINETO_GPU) continue;
        texts[i] = text_of(page, order[i]);
        if (node->launcher >= 0 && positions[node->launcher] != UINT32_MAX) ops[i] = positions[node->launcher] + 1;
    }
    kp_page_blob_put(&page->blob, "work", texts, count);
    kp_page_blob_put(&page->blob, "op", ops, count);
    free(texts);
}

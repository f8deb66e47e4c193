// SPDX-License-Identifier: Apache-2.0
/* pagememory.c - blocks of torch's allocators as columns: when, how large, which category, op and line */
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/pageparts.h"
#include "export/answers/memory/memblocks.h"

enum { PLACE_BYTES = 400 };
struct block_columns {
    uint32_t *after_low, *after_high, *life_low, *life_high, *bytes_low, *bytes_high, *op, *place;
    uint8_t *category;
};

/* The outermost op: most blocks are of an aten::empty inside it. */
static uint32_t op_text(struct kp_page *page, const struct kp_memview *view, const struct kp_mem_block *b)
{
    const int32_t node = b->place.op >= 0 ? b->place.top : b->place.range;
    const char *name = b->from_ns == INT64_MIN ? "(before recording)" : node < 0 ? "(outside any op)" : NULL;
    if (name) return kp_page_text(page, kp_strings_put(view->tree->trace->strings, name, strlen(name)));
    return kp_page_text(page, kp_tree_event(view->tree, (size_t)node)->name);
}

static uint32_t place_text(struct kp_page *page, const struct kp_memview *view, const struct kp_mem_block *b)
{
    struct kp_mem_group row = {0};
    char text[PLACE_BYTES];
    kp_mem_group_place(&row, view, b->place.op);
    kp_mem_place_text(view, &row, text, sizeof text);
    return kp_page_text(page, kp_strings_put(view->tree->trace->strings, text, strlen(text)));
}

/* A block of before begins with the page, and a block that stays has a life without an end (all bits set). */
static void block_put(struct kp_page *page, const struct kp_memview *view, const struct block_columns *c, size_t i,
                      int64_t *last_ns)
{
    const struct kp_mem_block *b = &view->blocks[i];
    const int64_t from_ns = b->from_ns > *last_ns ? b->from_ns : *last_ns;
    kp_page_two_put(&c->after_low[i], &c->after_high[i], (uint64_t)from_ns - (uint64_t)*last_ns);
    *last_ns = from_ns;
    const bool stays = b->to_ns == INT64_MAX;
    kp_page_two_put(&c->life_low[i], &c->life_high[i],
                    stays                ? UINT64_MAX
                    : b->to_ns > from_ns ? (uint64_t)b->to_ns - (uint64_t)from_ns
                                         : 0);
    kp_page_two_put(&c->bytes_low[i], &c->bytes_high[i], b->bytes > 0 ? (uint64_t)b->bytes : 0);
    c->op[i] = op_text(page, view, b);
    c->place[i] = place_text(page, view, b);
    c->category[i] = b->category;
}

static void blocks_put(struct kp_page *page, const struct kp_memview *view)
{
    enum { COLUMNS = 8 };
    static const char *const names[COLUMNS] = {"blockAfterLow", "blockAfterHigh", "blockLifeLow", "blockLifeHigh",
                                               "blockBytesLow", "blockBytesHigh", "blockOp",      "blockPlace"};
    const size_t count = view->block_count;
    uint32_t *words = kp_kineto_room(COLUMNS * (count + 1), sizeof *words), *of[COLUMNS];
    uint8_t *categories = kp_kineto_room(count + 1, 1);
    for (int i = 0; i < COLUMNS; i++) of[i] = words + (size_t)i * (count + 1);
    const struct block_columns c = {of[0], of[1], of[2], of[3], of[4], of[5], of[6], of[7], categories};
    for (size_t d = 0; d < view->device_count; d++) {
        int64_t last_ns = page->base_ns;
        for (size_t i = 0; i < view->devices[d].count; i++)
            block_put(page, view, &c, view->devices[d].first + i, &last_ns);
    }
    for (int i = 0; i < COLUMNS; i++) kp_page_blob_put(&page->blob, names[i], of[i], count);
    kp_page_blob_put_bytes(&page->blob, "blockCategory", categories, count);
    free(words);
    free(categories);
}

/* Each device: name, first block, number of blocks, bytes of before without a block, most reserved, 1 knows before. */
static void devices_put(const struct kp_memview *view, struct kp_jsonout *j)
{
    kp_jsonout_open(j, "memory", '{');
    kp_jsonout_open(j, "categories", '[');
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) kp_jsonout_text(j, NULL, kp_mem_category_name(k));
    kp_jsonout_close(j, ']');
    kp_jsonout_open(j, "devices", '[');
    for (size_t d = 0; d < view->device_count; d++) {
        const struct kp_mem_device *m = &view->devices[d];
        kp_jsonout_open(j, NULL, '[');
        kp_jsonout_text(j, NULL, m->name);
        kp_jsonout_items(j, KP_JSONOUT_NUMBERS((int64_t)m->first, (int64_t)m->count, m->before_bytes, m->reserved_most,
                                               m->knows_before));
        kp_jsonout_close(j, ']');
    }
    kp_jsonout_close(j, ']');
    kp_jsonout_close(j, '}');
}

void kp_page_memory_put(struct kp_page *page, struct kp_tree *tree, struct kp_jsonout *head)
{
    struct kp_memview view;
    if (kp_memview_build(&view, tree) == 0) {
        blocks_put(page, &view);
        devices_put(&view, head);
    }
    kp_memview_fini(&view);
}

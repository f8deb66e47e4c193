// SPDX-License-Identifier: Apache-2.0
/*
 * flame.c - lays a flame graph out as boxes, and draws them
 *
 * Stacks come folded ("outer;inner"). Frames of one name under one parent become one box, as wide as their total. The
 * roots stand at the top. Boxes too narrow to be seen are left out, so the file does not grow with the run.
 */
#include "export/answers/stacks/flame.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_fnv.h"
#include "export/answers/stacks/calltree.h"
#include "export/answers/stacks/flamepage.h"
#include "export/read/frames/framename.h"
#include "export/read/kineto/kineto.h"
#include "export/read/store/keyindex.h"
#include "export/read/store/qsort.h"
#include "export/read/store/stringtable.h"

#define NARROW 0.0002 /* of the whole */

struct box {
    const char *name;
    int64_t total;
    uint32_t first, next; /* of its boxes, behind it: numbers, 0: none */
    uint32_t depth;
};
struct kp_flame {
    struct box *boxes; /* 0 is the whole; a parent comes before its children */
    size_t count, capacity;
    struct kp_strings *names;
    struct kp_keyindex numbers; /* of boxes but the first, by parent and name */
};

static void box_add(struct kp_flame *f, uint32_t name, uint32_t parent)
{
    struct box *const b = KP_KINETO_NEXT(f->boxes, f->count, f->capacity);
    *b = (struct box){.name = kp_strings_get(f->names, name)};
    if (f->count == 1) return;
    b->depth = f->boxes[parent].depth + 1;
    b->next = f->boxes[parent].first;
    f->boxes[parent].first = (uint32_t)f->count - 1;
}

struct kp_flame *kp_flame_open(void)
{
    struct kp_flame *f = kp_kineto_room(1, sizeof *f);
    *f = (struct kp_flame){.names = kp_strings_open()};
    box_add(f, kp_strings_put(f->names, "all", 3), 0);
    return f;
}

void kp_flame_close(struct kp_flame *f)
{
    kp_keyindex_fini(&f->numbers);
    kp_strings_close(f->names);
    free(f->boxes);
    free(f);
}

static uint32_t box_get(struct kp_flame *f, uint32_t parent, const char *text, size_t bytes)
{
    const uint32_t name = kp_strings_put(f->names, text, bytes);
    const size_t box = kp_keyindex_get(&f->numbers, (uint64_t)parent << 32 | name) + 1;
    if (box == f->count) box_add(f, name, parent);
    return (uint32_t)box;
}

void kp_flame_add(struct kp_flame *f, const char *stack, int64_t value)
{
    uint32_t at = 0;
    f->boxes[0].total += value;
    while (*stack) {
        size_t bytes = strcspn(stack, ";");
        at = box_get(f, at, stack, bytes);
        f->boxes[at].total += value;
        stack += bytes + (stack[bytes] == ';');
    }
}

/* ---- drawing ---- */

static int name_order(const void *a, const void *b, void *context)
{
    const struct kp_flame *f = context;
    return strcmp(f->boxes[*(const uint32_t *)a].name, f->boxes[*(const uint32_t *)b].name);
}

struct numbers {
    uint32_t *of;
    size_t capacity;
};

/* Sorts children by name, so that two graphs of one program look alike. Their names differ. Roots keep their order. */
static void children_sort(struct kp_flame *f, uint32_t parent, bool keeps, struct numbers *numbers)
{
    size_t n = 0;
    for (uint32_t i = f->boxes[parent].first; i; i = f->boxes[i].next) {
        *KP_KINETO_NEXT(numbers->of, n, numbers->capacity) = i;
    }
    if (n < 2) return;
    for (size_t i = 0; keeps && i < n / 2; i++) { /* the list has the last one first */
        const uint32_t other = numbers->of[n - 1 - i];
        numbers->of[n - 1 - i] = numbers->of[i];
        numbers->of[i] = other;
    }
    if (!keeps) kp_qsort_r(numbers->of, n, sizeof *numbers->of, name_order, f);
    f->boxes[parent].first = numbers->of[0];
    for (size_t i = 0; i < n; i++) f->boxes[numbers->of[i]].next = i + 1 < n ? numbers->of[i + 1] : 0;
}

static enum kp_flame_kind kind_of(const char *name)
{
    if (strstr(name, ".py") || name[0] == '<' || kp_framename_module(name)) return KP_FLAME_PYTHON;
    if (strstr(name, ".so") && strstr(name, ": ")) return KP_FLAME_MACHINE;
    return KP_FLAME_OP;
}

/* The meaning of a box's colours: the part that its root names, and a shade of its name's own. */
static struct kp_flame_colour colour_of(const struct kp_flame *f, uint32_t i, const uint8_t *parts)
{
    const char *name = f->boxes[i].name;
    const uint32_t h = kp_fnv32(KP_FNV32, name, strlen(name));
    const bool is_root = f->boxes[i].depth < 2;
    return (struct kp_flame_colour){parts[i], is_root ? KP_FLAME_OP : kind_of(name), is_root ? 0 : h >> 20};
}

static uint8_t part_named(const char *name)
{
    for (unsigned part = 0; part < KP_PARTS; part++)
        if (strcmp(kp_part_name((enum kp_part)part), name) == 0) return (uint8_t)part;
    return KP_PART_OTHER;
}

/* Draws all boxes, without recursion: Python stacks may be a thousand deep. */
static void boxes_put(struct kp_flame *f, FILE *out, const struct kp_flame_show *show)
{
    const double all = f->boxes[0].total ? (double)f->boxes[0].total : 1;
    struct numbers numbers = {0};
    double *starts = kp_kineto_room(f->count, sizeof *starts);
    uint8_t *parts = kp_kineto_room(f->count, 1);
    starts[0] = 0;
    parts[0] = KP_PART_OTHER;
    for (uint32_t i = 0; i < f->count; i++) { /* a parent comes before its children */
        double at = starts[i], width = (double)f->boxes[i].total / all;
        children_sort(f, i, i == 0 && show->has_parts, &numbers);
        for (uint32_t c = f->boxes[i].first; c; c = f->boxes[c].next) {
            starts[c] = at;
            parts[c] = i == 0 && show->has_parts ? part_named(f->boxes[c].name) : parts[i];
            at += (double)f->boxes[c].total / all;
        }
        const struct kp_flame_box box = {f->boxes[i].name,  starts[i],         width,
                                         f->boxes[i].depth, f->boxes[i].total, colour_of(f, i, parts)};
        if (width >= NARROW) kp_flamepage_box(out, show, &box);
    }
    free(starts);
    free(parts);
    free(numbers.of);
}

/* The value of a part's root. */
static int64_t part_total(const struct kp_flame *f, const char *name)
{
    for (uint32_t i = f->boxes[0].first; i; i = f->boxes[i].next)
        if (strcmp(f->boxes[i].name, name) == 0) return f->boxes[i].total;
    return 0;
}

void kp_flame_write(struct kp_flame *f, FILE *out, const struct kp_flame_show *show)
{
    struct kp_flame_head head = {.total = f->boxes[0].total};
    for (size_t i = 0; i < f->count; i++)
        if (f->boxes[i].depth > head.deepest && (double)f->boxes[i].total >= NARROW * (double)f->boxes[0].total)
            head.deepest = f->boxes[i].depth;
    for (unsigned part = 0; part < KP_PARTS; part++)
        head.parts[part] = show->has_parts ? part_total(f, kp_part_name((enum kp_part)part)) : 0;
    kp_flamepage_begin(out, show, &head);
    boxes_put(f, out, show);
    kp_flamepage_end(out, show);
}

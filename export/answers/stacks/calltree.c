// SPDX-License-Identifier: Apache-2.0
/* calltree.c - a tree of call paths whose places hold a value for each part of a step */
#include "export/answers/stacks/calltree.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/frames/framename.h"
#include "export/read/store/keyindex.h"
#include "export/read/frames/modulename.h"
#include "export/read/frames/workerframe.h"
#include "export/read/store/stringtable.h"

struct place {
    uint32_t name; /* string id */
    uint32_t parent;
    uint32_t first, last, next; /* 0: none */
    uint32_t depth;
    int64_t value[KP_PARTS];
};
enum { DEEPEST = 512 };
struct kp_calltree {
    struct place *places; /* 0 is the root; a parent comes before its children */
    size_t count, capacity;
    int64_t (*rest)[KP_PARTS]; /* by place, kp_calltree_add_rest() */
    size_t rest_count;
    struct kp_strings *names;
    struct kp_keyindex children; /* of (parent, name); a number is that of the place, less one */
    struct kp_kineto *trace;     /* has the names of modules; NULL: they have torch.profiler's alone */
    struct kp_frametext text, named;
};

const char *kp_part_name(enum kp_part part)
{
    static const char *const names[KP_PARTS] = {
        [KP_PART_OTHER] = "other",       [KP_PART_OPTIMIZER] = "optimizer",  [KP_PART_FORWARD] = "forward",
        [KP_PART_BACKWARD] = "backward", [KP_PART_LOADING] = "data loading", [KP_PART_THREADS] = "threads"};
    return names[part];
}

struct kp_calltree *kp_calltree_open(void)
{
    size_t capacity = 0;
    struct kp_calltree *t = kp_kineto_grow(NULL, &capacity, 1, sizeof *t);
    *t = (struct kp_calltree){.names = kp_strings_open()};
    t->places = kp_kineto_grow(NULL, &t->capacity, 1, sizeof *t->places);
    t->places[t->count++] = (struct place){0};
    return t;
}

void kp_calltree_close(struct kp_calltree *t)
{
    free(t->places);
    free(t->rest);
    kp_strings_close(t->names);
    kp_keyindex_fini(&t->children);
    kp_frametext_fini(&t->text);
    kp_frametext_fini(&t->named);
    free(t);
}

void kp_calltree_name_modules(struct kp_calltree *t, struct kp_kineto *trace) { t->trace = trace; }

uint32_t kp_calltree_child(struct kp_calltree *t, uint32_t parent, const char *name)
{
    if (t->places[parent].depth == DEEPEST) return parent;
    const char *const named = t->trace ? kp_modulename_frame(&t->named, t->trace, name) : name;
    const char *shown = kp_framename_shown(&t->text, named);
    const uint32_t id = kp_strings_put(t->names, shown, strlen(shown));
    const uint32_t place = (uint32_t)kp_keyindex_get(&t->children, (uint64_t)parent << 32 | id) + 1;
    if (place < t->count) return place;
    t->places = kp_kineto_grow(t->places, &t->capacity, t->count + 1, sizeof *t->places);
    t->places[t->count++] = (struct place){.name = id, .parent = parent, .depth = t->places[parent].depth + 1};
    struct place *p = &t->places[parent];
    if (p->last) t->places[p->last].next = place;
    else p->first = place;
    p->last = place;
    return place;
}

void kp_calltree_add(struct kp_calltree *t, uint32_t place, enum kp_part part, int64_t value)
{
    t->places[place].value[part] += value;
}

void kp_calltree_add_rest(struct kp_calltree *t, uint32_t place, enum kp_part part, int64_t value)
{
    t->rest = kp_kineto_grow_zeros(t->rest, &t->rest_count, t->count, sizeof *t->rest);
    t->rest[place][part] += value;
}

void kp_calltree_count_rest(struct kp_calltree *t)
{
    for (size_t i = 0; i < t->count && i < t->rest_count; i++)
        for (int part = 0; part < KP_PARTS; part++) t->places[i].value[part] += t->rest[i][part];
    free(t->rest);
    t->rest = NULL;
    t->rest_count = 0;
}

static int64_t part_sum(const struct kp_calltree *t, enum kp_part part)
{
    int64_t sum = 0;
    for (size_t i = 0; i < t->count; i++) sum += t->places[i].value[part];
    return sum;
}

size_t kp_calltree_count(const struct kp_calltree *t) { return t->count; }

uint32_t kp_calltree_parent(const struct kp_calltree *t, uint32_t place) { return t->places[place].parent; }

const char *kp_calltree_name(const struct kp_calltree *t, uint32_t place)
{
    return kp_strings_get(t->names, t->places[place].name);
}

/* ---- fewer paths ---- */

enum { VALUE_BYTES = 12 }; /* of a line, beside its path */

/* About how many bytes kp_calltree_each() gives, with the values. `ends`: for a number a place. */
static size_t text_measure(const struct kp_calltree *t, size_t *ends, size_t *paths)
{
    size_t bytes = 0;
    *paths = 0;
    ends[0] = VALUE_BYTES;
    for (size_t i = 1; i < t->count; i++) {
        const struct place *p = &t->places[i];
        ends[i] = ends[p->parent] + 1 + strlen(kp_strings_get(t->names, p->name));
        for (int part = 0; part < KP_PARTS; part++)
            if (p->value[part]) {
                bytes += ends[i];
                ++*paths;
            }
    }
    return bytes;
}

/* Children come after their parents, so what they gave is there when it is a parent's turn. */
static void small_fold(struct kp_calltree *t, int64_t *totals, int64_t below)
{
    memset(totals, 0, t->count * sizeof *totals);
    for (size_t i = t->count; i-- > 1;) {
        struct place *p = &t->places[i];
        int64_t own = 0;
        for (int part = 0; part < KP_PARTS; part++) own += p->value[part];
        totals[i] += own;
        totals[p->parent] += totals[i];
        if (totals[i] >= below || !own) continue;
        for (int part = 0; part < KP_PARTS; part++) {
            t->places[p->parent].value[part] += p->value[part];
            p->value[part] = 0;
        }
        totals[p->parent] -= own; /* it comes with the parent's own */
    }
}

void kp_calltree_fold(struct kp_calltree *t, size_t text_bytes, struct kp_calltree_folded *folded)
{
    size_t before, after;
    int64_t sum = 0;
    *folded = (struct kp_calltree_folded){0};
    size_t *ends = kp_kineto_room(t->count, sizeof *ends);
    if (text_measure(t, ends, &before) > text_bytes) {
        int64_t *totals = kp_kineto_room(t->count, sizeof *totals);
        for (int part = 0; part < KP_PARTS; part++) sum += part_sum(t, (enum kp_part)part);
        int64_t below = sum / (1 << 20) + 1;
        for (;; below *= 2) {
            small_fold(t, totals, below);
            if (text_measure(t, ends, &after) <= text_bytes || below > sum) break;
        }
        *folded = (struct kp_calltree_folded){.paths = before - after, .below = below};
        free(totals);
    }
    free(ends);
}

/* ---- the paths, in the order in which they were made ---- */

struct path_walk {
    const struct kp_calltree *tree;
    struct kp_frametext path;
    int64_t unit, whole, told; /* whole: the sum so far; told: what `fn` got of it */
    kp_path_fn fn;
    void *context;
};

static void value_tell(struct path_walk *w, int64_t value)
{
    w->whole += value;
    const int64_t due = (w->whole + w->unit / 2) / w->unit - w->told;
    if (value == 0 || due == 0) return;
    w->told += due;
    w->fn(w->context, w->path.data, due);
}

/* Appends ";name" behind the first `used` bytes. Returns the new length. */
static size_t name_add(struct path_walk *w, size_t used, const char *name)
{
    const size_t bytes = strlen(name);
    w->path.data = kp_kineto_grow(w->path.data, &w->path.capacity, used + bytes + 2, 1);
    w->path.data[used] = ';';
    memcpy(w->path.data + used + 1, name, bytes + 1);
    return used + 1 + bytes;
}

/* Goes down to children first, then on, without recursion: stacks may be thousands deep. */
static void part_walk(struct path_walk *w, enum kp_part part)
{
    const struct place *places = w->tree->places;
    const char *name = kp_part_name(part);
    size_t used = strlen(name);
    w->path.data = kp_kineto_grow(w->path.data, &w->path.capacity, used + 1, 1);
    memcpy(w->path.data, name, used + 1);
    value_tell(w, places[0].value[part]);
    for (uint32_t at = places[0].first; at;) {
        used = name_add(w, used, kp_strings_get(w->tree->names, places[at].name));
        value_tell(w, places[at].value[part]);
        if (places[at].first) {
            at = places[at].first;
            continue;
        }
        for (;; at = places[at].parent) {
            used -= strlen(kp_strings_get(w->tree->names, places[at].name)) + 1;
            w->path.data[used] = 0;
            if (places[at].next || !places[at].parent) break;
        }
        at = places[at].next;
    }
}

void kp_calltree_each(const struct kp_calltree *t, int64_t unit, kp_path_fn fn, void *context)
{
    static const enum kp_part order[] = {KP_PART_LOADING,   KP_PART_FORWARD, KP_PART_BACKWARD,
                                         KP_PART_OPTIMIZER, KP_PART_OTHER,   KP_PART_THREADS};
    struct path_walk w = {.tree = t, .unit = unit, .fn = fn, .context = context};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (part_sum(t, order[i])) part_walk(&w, order[i]);
    kp_frametext_fini(&w.path);
}

/* ---- texts of call stacks, "inner;outer;", as paths ---- */

size_t kp_stackpath_bytes(const char *stack)
{
    const size_t bytes = strlen(stack);
    return kp_workerframe_since_fork(stack, bytes && stack[bytes - 1] == ';' ? bytes - 1 : bytes);
}

/* Does a frame begin where the last `tail` bytes do? */
static bool is_edge(const char *stack, size_t bytes, size_t tail)
{
    return tail == bytes || stack[bytes - tail - 1] == ';';
}

size_t kp_stackpath_common(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    size_t same = 0;
    while (same < a_bytes && same < b_bytes && a[a_bytes - 1 - same] == b[b_bytes - 1 - same]) same++;
    while (same && !(is_edge(a, a_bytes, same) && is_edge(b, b_bytes, same))) same--;
    return same;
}

/* Copies the frame that ends at `end` into `out`. Returns where it begins. */
static size_t frame_before(struct kp_frametext *out, const char *stack, size_t end)
{
    size_t from = end;
    while (from > 0 && stack[from - 1] != ';') from--;
    out->data = kp_kineto_grow(out->data, &out->capacity, end - from + 1, 1);
    memcpy(out->data, stack + from, end - from);
    out->data[end - from] = 0;
    return from;
}

uint32_t kp_stackpath_add(struct kp_calltree *tree, uint32_t base, const char *stack, size_t bytes)
{
    struct kp_frametext frame = {0};
    for (size_t end = bytes, from; end > 0; end = from ? from - 1 : 0) {
        from = frame_before(&frame, stack, end);
        if (from < end && !kp_framename_is_interpreter(frame.data)) base = kp_calltree_child(tree, base, frame.data);
    }
    kp_frametext_fini(&frame);
    return base;
}

uint32_t kp_stackpath_between(struct kp_calltree *tree, uint32_t base, const char *a, const char *b)
{
    const size_t a_bytes = kp_stackpath_bytes(a), b_bytes = kp_stackpath_bytes(b);
    const size_t common = kp_stackpath_common(a, a_bytes, b, b_bytes);
    base = kp_stackpath_add(tree, base, a + a_bytes - common, common);
    if (common + 1 >= a_bytes || common + 1 >= b_bytes) return base;
    struct kp_frametext of_a = {0}, of_b = {0}, text = {0};
    frame_before(&of_a, a, common ? a_bytes - common - 1 : a_bytes);
    frame_before(&of_b, b, common ? b_bytes - common - 1 : b_bytes);
    const char *both = kp_framename_between(&text, of_a.data, of_b.data);
    if (both) base = kp_calltree_child(tree, base, both);
    kp_frametext_fini(&of_a);
    kp_frametext_fini(&of_b);
    kp_frametext_fini(&text);
    return base;
}

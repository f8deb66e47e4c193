// SPDX-License-Identifier: Apache-2.0
/* keyavg.c - gathers the nodes of a tree into one row per key, and sorts rows */
#include "export/answers/torchtable/keyavg.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/store/keyindex.h"
#include "export/read/store/qsort.h"
#include "export/show/units.h"

struct group_key {
    uint32_t name, overload, shapes, stack;
    uint8_t on_device, is_annotation;
};
struct groups {
    struct kp_keyindex names, inputs, rows; /* the last: of both, as the table's rows */
};

static void groups_fini(struct groups *g)
{
    kp_keyindex_fini(&g->names);
    kp_keyindex_fini(&g->inputs);
    kp_keyindex_fini(&g->rows);
}

static size_t number_of(struct groups *g, const struct group_key *k)
{
    const uint64_t name = kp_keyindex_get(&g->names, (uint64_t)k->name << 32 | k->overload),
                   inputs = kp_keyindex_get(&g->inputs, (uint64_t)k->shapes << 32 | k->stack);
    return kp_keyindex_get(&g->rows, name << 33 | inputs << 2 | k->on_device * 2u | k->is_annotation);
}

/* Finds or adds the row of a key; row_begin fills a new one. */
static struct kp_row *row_for(struct kp_keyavg *out, struct groups *g, const struct group_key *key, bool *is_new)
{
    const size_t at = number_of(g, key);
    *is_new = at == out->count;
    return *is_new ? KP_KINETO_NEXT(out->rows, out->count, out->capacity) : &out->rows[at];
}

static double node_flops(const struct kp_kineto *trace, const struct kp_node *node)
{
    const struct kp_kineto_event *e = &trace->events[node->event];
    if (e->kind != KP_KINETO_OP || !trace->with_flops || !e->shapes) return 0;
    return kp_flops(kp_kineto_text(trace, node->name), kp_kineto_text(trace, e->shapes),
                    kp_kineto_text(trace, e->concrete), e->flags & KP_KINETO_TENSOR_FIRST);
}

static void row_add(struct kp_row *row, const struct kp_tree *tree, size_t index)
{
    const struct kp_node *node = &tree->nodes[index];
    struct kp_values values;
    kp_tree_values(tree, index, &values);
    row->count += !(kp_tree_event(tree, index)->flags & KP_KINETO_CONTINUED);
    row->cpu_total += values.cpu_total;
    row->self_cpu += values.self_cpu;
    row->device_total += values.device_total;
    row->self_device += values.self_device;
    row->cpu_bytes += kp_tree_cpu_bytes(tree, index);
    row->device_bytes += kp_tree_device_bytes(tree, index);
    row->self_cpu_bytes += values.self_cpu_bytes;
    row->self_device_bytes += values.self_device_bytes;
    row->flops += node_flops(tree->trace, node);
}

/* Whether a frame is a helper of autograd, which torch leaves out of stacks. */
bool kp_keyavg_is_helper(const char *frame)
{
    static const char *const pairs[][2] = {
        {"autograd/__init__", "_make_grads"},
        {"autograd/__init__", "backward"},
        {"torch/tensor", "backward"},
        {"_internal/common_utils", "prof_callable"},
        {"_internal/common_utils", "prof_func_call"},
        {"_internal/common_utils", "prof_meth_call"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strstr(frame, pairs[i][0]) && strstr(frame, pairs[i][1])) return true;
    return false;
}

/* Joins the first `frames` frames of "a;b;c;", innermost first, to "a\nb\n". Returns its string id. */
static uint32_t stack_cut(struct kp_kineto *trace, uint32_t stack, uint32_t frames)
{
    const char *text = kp_kineto_text(trace, stack);
    char *joined = NULL, *frame = NULL;
    size_t joined_capacity = 0, frame_capacity = 0, used = 0;
    for (uint32_t taken = 0; *text && taken < frames;) {
        size_t bytes = strcspn(text, ";");
        frame = kp_kineto_grow(frame, &frame_capacity, bytes + 1, 1);
        memcpy(frame, text, bytes);
        frame[bytes] = 0;
        if (bytes && !kp_keyavg_is_helper(frame)) {
            joined = kp_kineto_grow(joined, &joined_capacity, used + bytes + 1, 1);
            memcpy(joined + used, text, bytes);
            joined[used + bytes] = '\n';
            used += bytes + 1;
            taken++;
        }
        text += bytes + (text[bytes] == ';');
    }
    uint32_t id = used ? kp_strings_put(trace->strings, joined, used) : 0;
    free(joined);
    free(frame);
    return id;
}

/* Stacks cut to their first frames. Each is cut once. */
struct cuts {
    uint32_t *of; /* by the stack's string id: the cut one's + 1, 0 if not cut yet */
    size_t capacity;
};

static uint32_t stack_of(struct cuts *cuts, struct kp_kineto *trace, uint32_t stack, uint32_t frames)
{
    cuts->of = kp_kineto_grow_zeros(cuts->of, &cuts->capacity, (size_t)stack + 1, sizeof *cuts->of);
    if (!cuts->of[stack]) cuts->of[stack] = stack_cut(trace, stack, frames) + 1;
    return cuts->of[stack] - 1;
}

static void row_set_stack(struct kp_row *row, struct kp_kineto *trace, uint32_t stack)
{
    size_t capacity = 0;
    for (const char *text = kp_kineto_text(trace, stack); *text; text += strcspn(text, "\n") + 1) {
        uint32_t frame = kp_strings_put(trace->strings, text, strcspn(text, "\n"));
        *KP_KINETO_NEXT(row->stack, row->stack_count, capacity) = kp_kineto_text(trace, frame);
    }
}

/* Makes the key of a node's row. */
static struct group_key key_of(const struct kp_tree *tree, const struct kp_node *node,
                               const struct kp_keyavg_options *options, struct cuts *cuts)
{
    struct group_key key = {.name = node->name, .on_device = node->on_device, .is_annotation = node->is_annotation};
    if (options->by_overload) key.overload = kp_tree_overload(tree, node);
    if (options->by_shape) {
        const uint32_t shapes = tree->trace->events[node->event].shapes;
        key.shapes = shapes ? shapes : kp_strings_put(tree->trace->strings, "[]", 2);
    }
    if (options->by_stack && tree->trace->has_stacks && node->stack) /* not modules alone: torch shows none of them */
        key.stack = stack_of(cuts, tree->trace, node->stack, options->by_stack);
    return key;
}

static void row_begin(struct kp_row *row, struct kp_kineto *trace, const struct group_key *key,
                      const struct kp_node *node)
{
    *row = (struct kp_row){.name = key->name,
                           .overload = key->overload,
                           .shapes = key->shapes,
                           .stack_text = key->stack,
                           .on_device = node->on_device,
                           .is_annotation = node->is_annotation,
                           .has_parent = node->parent >= 0,
                           .is_async = node->is_async};
    row_set_stack(row, trace, key->stack);
}

static void means_make(struct kp_keyavg *averages)
{
    for (size_t i = 0; i < averages->count; i++) {
        struct kp_row *row = &averages->rows[i];
        row->cpu_avg = row->cpu_total / (double)row->count;
        row->device_avg = row->device_total / (double)row->count;
    }
}

int kp_keyavg_build(struct kp_keyavg *out, const struct kp_tree *tree, const struct kp_keyavg_options *options)
{
    struct kp_kineto *trace = tree->trace;
    struct groups g = {0};
    struct cuts cuts = {0};
    *out = (struct kp_keyavg){.trace = trace,
                              .has_device = tree->has_device,
                              .with_flops = trace->with_flops,
                              .profile_memory = trace->profile_memory};
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        if (node->removed || (node->is_python && !options->python_functions)) continue;
        const struct group_key key = key_of(tree, node, options, &cuts);
        bool is_new;
        struct kp_row *row = row_for(out, &g, &key, &is_new);
        if (is_new) row_begin(row, trace, &key, node);
        row_add(row, tree, i);
    }
    means_make(out);
    groups_fini(&g);
    free(cuts.of);
    return 0;
}

/* ---- several windows ---- */

static void groups_of_rows(struct groups *g, const struct kp_keyavg *averages)
{
    for (size_t i = 0; i < averages->count; i++) {
        const struct kp_row *row = &averages->rows[i];
        (void)number_of(g, &(struct group_key){row->name, row->overload, row->shapes, row->stack_text, row->on_device,
                                               row->is_annotation});
    }
}

static void row_merge(struct kp_row *into, const struct kp_row *row)
{
    into->count += row->count;
    into->cpu_total += row->cpu_total;
    into->self_cpu += row->self_cpu;
    into->device_total += row->device_total;
    into->self_device += row->self_device;
    into->cpu_bytes += row->cpu_bytes;
    into->device_bytes += row->device_bytes;
    into->self_cpu_bytes += row->self_cpu_bytes;
    into->self_device_bytes += row->self_device_bytes;
    into->flops += row->flops;
}

/* A row of the other trace's, with strings of this one. */
static void row_move(struct kp_row *into, struct kp_kineto *trace, const struct group_key *key,
                     const struct kp_row *row)
{
    *into = *row;
    into->name = key->name;
    into->overload = key->overload;
    into->shapes = key->shapes;
    into->stack_text = key->stack;
    into->stack = NULL;
    into->stack_count = 0;
    row_set_stack(into, trace, key->stack);
}

void kp_keyavg_merge(struct kp_keyavg *into, const struct kp_keyavg *earlier)
{
    struct kp_strings *own = into->trace->strings;
    struct kp_strings *other = earlier->trace->strings;
    struct groups g = {0};
    groups_of_rows(&g, into);
    for (size_t i = 0; i < earlier->count; i++) {
        const struct kp_row *row = &earlier->rows[i];
        const struct group_key key = {kp_strings_put_from(own, other, row->name),
                                      kp_strings_put_from(own, other, row->overload),
                                      kp_strings_put_from(own, other, row->shapes),
                                      kp_strings_put_from(own, other, row->stack_text),
                                      row->on_device,
                                      row->is_annotation};
        bool is_new;
        struct kp_row *same = row_for(into, &g, &key, &is_new);
        if (is_new) row_move(same, into->trace, &key, row);
        else row_merge(same, row);
    }
    means_make(into);
    into->has_device |= earlier->has_device;
    into->with_flops |= earlier->with_flops;
    into->profile_memory |= earlier->profile_memory;
    groups_fini(&g);
}

void kp_keyavg_fini(struct kp_keyavg *averages)
{
    for (size_t i = 0; i < averages->count; i++) free(averages->rows[i].stack);
    free(averages->rows);
    averages->rows = NULL;
    averages->count = 0;
}

/* ---- sorting ---- */

enum key_type {
    KEY_DOUBLE,
    KEY_INT,
    KEY_FLAG,
    KEY_TIME_TEXT,
    KEY_NAME,
    KEY_SHAPES,
    KEY_OVERLOAD,
    KEY_STACK,
    KEY_SAME, /* equal in every row that a trace gives */
};

static const struct sort_key {
    const char *name;
    size_t offset;
    enum key_type type;
} sort_keys[] = {
    {"cpu_time", offsetof(struct kp_row, cpu_avg), KEY_DOUBLE},
    {"cpu_time_total", offsetof(struct kp_row, cpu_total), KEY_DOUBLE},
    {"self_cpu_time_total", offsetof(struct kp_row, self_cpu), KEY_DOUBLE},
    {"device_time", offsetof(struct kp_row, device_avg), KEY_DOUBLE},
    {"device_time_total", offsetof(struct kp_row, device_total), KEY_DOUBLE},
    {"self_device_time_total", offsetof(struct kp_row, self_device), KEY_DOUBLE},
    {"cpu_memory_usage", offsetof(struct kp_row, cpu_bytes), KEY_INT},
    {"self_cpu_memory_usage", offsetof(struct kp_row, self_cpu_bytes), KEY_INT},
    {"device_memory_usage", offsetof(struct kp_row, device_bytes), KEY_INT},
    {"self_device_memory_usage", offsetof(struct kp_row, self_device_bytes), KEY_INT},
    {"count", offsetof(struct kp_row, count), KEY_INT},
    {"flops", offsetof(struct kp_row, flops), KEY_DOUBLE},
    {"key", 0, KEY_NAME},
    {"input_shapes", 0, KEY_SHAPES},
    {"overload_name", 0, KEY_OVERLOAD},
    {"stack", 0, KEY_STACK},
    {"is_async", offsetof(struct kp_row, is_async), KEY_FLAG},
    {"is_user_annotation", offsetof(struct kp_row, is_annotation), KEY_FLAG},
    {"cpu_time_str", offsetof(struct kp_row, cpu_avg), KEY_TIME_TEXT},
    {"cpu_time_total_str", offsetof(struct kp_row, cpu_total), KEY_TIME_TEXT},
    {"self_cpu_time_total_str", offsetof(struct kp_row, self_cpu), KEY_TIME_TEXT},
    {"device_time_str", offsetof(struct kp_row, device_avg), KEY_TIME_TEXT},
    {"device_time_total_str", offsetof(struct kp_row, device_total), KEY_TIME_TEXT},
    {"self_device_time_total_str", offsetof(struct kp_row, self_device), KEY_TIME_TEXT},
    {"node_id", 0, KEY_SAME},
    {"is_legacy", 0, KEY_SAME},
    {"is_remote", 0, KEY_SAME},
};

/* torch reads cuda, xpu and privateuse1 in a key as device. */
static const struct sort_key *key_find(const char *key)
{
    static const char *const devices[] = {"cuda", "xpu", "privateuse1"};
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s", key);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const char *at = strstr(key, devices[i]);
        if (at)
            snprintf(wanted, sizeof wanted, "%.*sdevice%s", (int)(at - key < 40 ? at - key : 40), key,
                     at + strlen(devices[i]));
    }
    for (size_t i = 0; i < sizeof sort_keys / sizeof *sort_keys; i++)
        if (strcmp(sort_keys[i].name, wanted) == 0) return &sort_keys[i];
    return NULL;
}

bool kp_keyavg_has_key(const char *key) { return key_find(key) != NULL; }

const char *kp_keyavg_keys(void)
{
    return "cpu_time cpu_time_total self_cpu_time_total count cpu_memory_usage self_cpu_memory_usage flops key "
           "input_shapes "
           "overload_name stack is_async is_user_annotation is_legacy is_remote node_id cuda_time cuda_time_total "
           "self_cuda_time_total cuda_memory_usage self_cuda_memory_usage device_time device_time_total "
           "self_device_time_total "
           "device_memory_usage self_device_memory_usage (xpu and privateuse1 like cuda; a time with _str: by its "
           "text)";
}

struct sort_context {
    const struct sort_key *key;
    const struct kp_kineto *trace;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Compares two texts of kp_kineto_event.shapes, "[[2, 3], []]", as Python compares the lists. */
static int shapes_order(const char *a, const char *b)
{
    while (*a || *b) {
        if (is_digit(*a) && is_digit(*b)) {
            char *a_end, *b_end;
            unsigned long long x = strtoull(a, &a_end, 10), y = strtoull(b, &b_end, 10);
            if (x != y) return x < y ? -1 : 1;
            a = a_end;
            b = b_end;
        } else if (*a != *b) { /* the list that ends is the smaller one: "]" against ", 4]" */
            return !*a || *a == ']' ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return 0;
}

static int stack_order(const struct kp_row *x, const struct kp_row *y)
{
    for (uint32_t i = 0; i < x->stack_count && i < y->stack_count; i++) {
        int order = strcmp(x->stack[i], y->stack[i]);
        if (order) return order;
    }
    return (x->stack_count > y->stack_count) - (x->stack_count < y->stack_count);
}

static int time_text_order(double x, double y)
{
    char a[40], b[40];
    return strcmp(kp_units_time(a, sizeof a, x, 0), kp_units_time(b, sizeof b, y, 0));
}

static int value_order(const struct kp_row *x, const struct kp_row *y, const struct sort_context *c)
{
    const char *a = (const char *)x + c->key->offset, *b = (const char *)y + c->key->offset;
    switch (c->key->type) {
    case KEY_DOUBLE: return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
    case KEY_INT: return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b);
    case KEY_FLAG: return *(const bool *)a - *(const bool *)b;
    case KEY_TIME_TEXT: return time_text_order(*(const double *)a, *(const double *)b);
    case KEY_NAME: return strcmp(kp_kineto_text(c->trace, x->name), kp_kineto_text(c->trace, y->name));
    case KEY_SHAPES: return shapes_order(kp_kineto_text(c->trace, x->shapes), kp_kineto_text(c->trace, y->shapes));
    case KEY_OVERLOAD: return strcmp(kp_kineto_text(c->trace, x->overload), kp_kineto_text(c->trace, y->overload));
    case KEY_STACK: return stack_order(x, y);
    default: return 0;
    }
}

/* A row and its index, which breaks ties and so makes the sort stable. */
struct sorted {
    struct kp_row row;
    size_t index;
};

static int row_order(const void *a, const void *b, void *context)
{
    const struct sorted *x = a, *y = b;
    int order = value_order(&y->row, &x->row, context);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

int kp_keyavg_sort(struct kp_keyavg *averages, const char *key)
{
    const struct sort_key *found = key_find(key);
    if (!found) return -EINVAL;
    struct sorted *all = kp_kineto_room(averages->count + 1, sizeof *all);
    for (size_t i = 0; i < averages->count; i++) all[i] = (struct sorted){averages->rows[i], i};
    struct sort_context context = {found, averages->trace};
    kp_qsort_r(all, averages->count, sizeof *all, row_order, &context);
    for (size_t i = 0; i < averages->count; i++) averages->rows[i] = all[i].row;
    free(all);
    return 0;
}

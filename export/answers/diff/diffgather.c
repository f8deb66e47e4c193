// SPDX-License-Identifier: Apache-2.0
/* diffgather.c - adds a trace to a side of a comparison: each step becomes a sample of every row */
#include "export/answers/diff/diff.h"

#include <stdlib.h>
#include <string.h>

#include "export/answers/advise/parts/finding.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/frames/ownline.h"
#include "export/read/facts/selftime.h"
#include "export/read/facts/steps/stepthreads.h"
#include "export/answers/top/toprows.h"

struct names { /* by the trace's string id: the name in the comparison + 1; 0: not yet */
    uint32_t *of;
    size_t capacity;
};
struct gathering {
    struct kp_diff *d;
    int side;
    const struct kp_tree *tree;
    const struct kp_chosen *chosen;
    const struct kp_step *steps; /* what samples are: the chosen steps, or all that was chosen */
    size_t step_count;
    size_t from;                       /* the first step's sample */
    bool has_steps;                    /* a sample is a step, and not all of the trace */
    struct names names, line_names[2]; /* line_names: of own lines, which keep their numbers; [1]: of backward */
    struct kp_stepthreads step_threads;
    bool has_gpu, is_ahead;
    struct kp_chosen on_gpu; /* is_ahead: the GPU's steps, one for each of the host's */
};

static uint32_t *name_slot(struct names *names, uint32_t id)
{
    names->of = kp_kineto_grow_zeros(names->of, &names->capacity, (size_t)id + 1, sizeof *names->of);
    return &names->of[id];
}

static uint32_t name_of(struct gathering *g, uint32_t id)
{
    uint32_t *const slot = name_slot(&g->names, id);
    if (!*slot) *slot = kp_diff_name(g->d->strings, kp_kineto_text(g->tree->trace, id)) + 1;
    return *slot - 1;
}

/* The step in which a time lies. False: in none. */
static bool step_at(const struct gathering *g, int64_t at_ns, size_t *step)
{
    *step = kp_step_at(g->steps, g->step_count, at_ns);
    return *step < g->step_count && kp_spans_has(&g->chosen->spans, at_ns);
}

static void sample_add(struct gathering *g, int group, uint32_t name, size_t step, double value)
{
    kp_diff_sample_add(kp_diff_row_get(g->d, group, name), g->side, g->from + step, value);
}

static void count_add(struct gathering *g, int group, uint32_t name)
{
    kp_diff_row_get(g->d, group, name)->count[g->side]++;
}

/* ---- nodes ---- */

static uint32_t module_of(struct gathering *g, const struct kp_node *node)
{
    return kp_ownline_modules(g->tree->trace, kp_tree_stack(g->tree, node));
}

static void module_add(struct gathering *g, const struct kp_node *node, size_t step, double ns)
{
    const uint32_t module = module_of(g, node);
    if (!module) return;
    sample_add(g, KP_DIFF_MODULES, name_of(g, module), step, ns);
    g->d->sides[g->side].has_modules = true;
}

/* ---- lines ---- */

static uint32_t line_name(struct gathering *g, uint32_t line, bool is_backward)
{
    uint32_t *const slot = name_slot(&g->line_names[is_backward], line);
    if (!*slot) {
        char text[4096];
        snprintf(text, sizeof text, "%s%s", is_backward ? KP_TOP_BACKWARD_OF : "",
                 kp_kineto_text(g->tree->trace, line));
        *slot = kp_strings_put(g->d->strings, text, strlen(text)) + 1;
    }
    return *slot - 1;
}

/* The name of the own line, or function, that a node belongs to; 0: none. */
static uint32_t line_of(struct gathering *g, const struct kp_node *node)
{
    const uint32_t line = kp_tree_line(g->tree, node);
    if (!line) return 0;
    g->d->sides[g->side].has_lines = true;
    return line_name(g, line, kp_tree_stack(g->tree, node) != g->tree->trace->events[node->event].stack);
}

static void line_add(struct gathering *g, const struct kp_node *node, size_t step, double ns)
{
    const uint32_t line = line_of(g, node);
    if (line) sample_add(g, KP_DIFF_LINES, line, step, ns);
}

/* A piece of a thread's time goes to the steps that it lies in. */
static void piece_take(void *context, size_t at, int64_t from_ns, int64_t to_ns)
{
    struct gathering *g = context;
    const struct kp_node *node = &g->tree->nodes[at];
    if (kp_stepthreads_is_idle(&g->step_threads, g->tree, node)) return;
    for (size_t i = kp_step_after(g->steps, g->step_count, from_ns); i < g->step_count && g->steps[i].start_ns < to_ns;
         i++) {
        const int64_t start = from_ns > g->steps[i].start_ns ? from_ns : g->steps[i].start_ns;
        const int64_t end = to_ns < g->steps[i].end_ns ? to_ns : g->steps[i].end_ns;
        const double ns = (double)kp_spans_between(&g->chosen->spans, start, end);
        sample_add(g, KP_DIFF_OPS, name_of(g, node->name), i, ns);
        if (!g->has_gpu) module_add(g, node, i, ns);
        if (!g->has_gpu) line_add(g, node, i, ns);
    }
}

static void device_node_add(struct gathering *g, const struct kp_node *node, size_t step)
{
    if (g->tree->trace->events[node->event].kind != KP_KINETO_GPU) return;
    const uint32_t name = name_of(g, node->name);
    sample_add(g, KP_DIFF_KERNELS, name, step, (double)(node->end_ns - node->start_ns));
    count_add(g, KP_DIFF_KERNELS, name);
}

/* Keeps the shapes of the op's first call: of equal runs they are equal, while which call is the longest is chance. */
static void shapes_keep(struct kp_diff *d, int side, struct kp_diff_row *row, struct kp_strings *from, uint32_t shapes)
{
    if (shapes && !row->shapes[side]) row->shapes[side] = kp_strings_put_from(d->strings, from, shapes);
}

static void work_count(struct gathering *g, const struct kp_kineto_event *e)
{
    struct kp_diff_side *s = &g->d->sides[g->side];
    if (e->kind != KP_KINETO_OP) return;
    s->ops++;
    const struct kp_kineto *trace = g->tree->trace;
    kp_diff_batches_take(&s->batches, kp_kineto_text(trace, e->name), kp_kineto_text(trace, e->shapes));
}

static void host_node_add(struct gathering *g, size_t at, size_t step)
{
    const struct kp_node *node = &g->tree->nodes[at];
    const uint32_t name = name_of(g, node->name);
    struct kp_values values;
    const bool is_continued = kp_tree_event(g->tree, at)->flags & KP_KINETO_CONTINUED; /* it began before */
    const uint32_t line = line_of(g, node);
    g->d->sides[g->side].has_python |= node->is_python;
    if (is_continued && g->has_steps) return; /* in no step, or in an earlier one */
    if (kp_stepthreads_is_idle(&g->step_threads, g->tree, node)) return;
    if (!is_continued) work_count(g, kp_tree_event(g->tree, at));
    if (!node->is_async && !is_continued) {
        count_add(g, KP_DIFF_OPS, name);
        if (line) count_add(g, KP_DIFF_LINES, line);
        shapes_keep(g->d, g->side, kp_diff_row_get(g->d, KP_DIFF_OPS, name), g->tree->trace->strings,
                    kp_tree_event(g->tree, at)->shapes);
    }
    kp_tree_values(g->tree, at, &values);
    const int64_t bytes = values.self_cpu_bytes + values.self_device_bytes;
    if (values.self_device > 0) {
        sample_add(g, KP_DIFF_GPU_OPS, name, step, values.self_device * 1e3);
        if (!is_continued) count_add(g, KP_DIFF_GPU_OPS, name);
        module_add(g, node, step, values.self_device * 1e3);
        line_add(g, node, step, values.self_device * 1e3);
    }
    if (bytes) {
        sample_add(g, KP_DIFF_OPS_MEMORY, name, step, (double)bytes);
        if (!is_continued) count_add(g, KP_DIFF_OPS_MEMORY, name);
    }
}

static void nodes_add(struct gathering *g)
{
    for (size_t i = 0, step; i < g->tree->count; i++) {
        const struct kp_node *node = &g->tree->nodes[i];
        const int64_t at_ns = node->on_device ? kp_chosen_asked_ns(g->chosen, g->tree, i) : node->start_ns;
        if (node->removed || !step_at(g, at_ns, &step)) continue;
        if (node->on_device) device_node_add(g, node, step);
        else host_node_add(g, i, step);
    }
    kp_selftime_each(g->tree, piece_take, g);
}

/* ---- steps, their parts, memory ---- */

static void steps_add(struct gathering *g)
{
    const struct kp_step *const steps = g->is_ahead ? g->on_gpu.steps : g->steps;
    for (size_t i = 0; i < g->step_count; i++) {
        kp_diff_sample_add(&g->d->step, g->side, g->from + i, (double)steps[i].inside_ns);
        kp_diff_sample_add(&g->d->own, g->side, g->from + i, (double)steps[i].inside_ns);
    }
}

/* The time of a GPU that a step asked for, also after its end. The other part of the step is the rest. */
static void compute_add(struct gathering *g, struct kp_step_split *splits)
{
    int64_t *asked = kp_kineto_room(g->chosen->step_count, sizeof *asked);
    kp_step_compute_asked(asked, g->tree, g->chosen);
    for (size_t i = 0; i < g->chosen->step_count; i++) {
        int64_t *const parts = splits[i].part_ns, rest = parts[KP_SPLIT_IDLE] + parts[KP_SPLIT_COMPUTE] - asked[i];
        parts[KP_SPLIT_COMPUTE] = asked[i];
        parts[KP_SPLIT_IDLE] = rest > 0 ? rest : 0;
    }
    free(asked);
}

/* They add up to the step. */
static void parts_add(struct gathering *g)
{
    const char *const names[] = {[KP_SPLIT_COMPUTE] = g->has_gpu ? "compute" : "operators",
                                 [KP_SPLIT_COMM] = "exposed communication",
                                 [KP_SPLIT_COPIES] = "exposed copies",
                                 [KP_SPLIT_LOADING] = "data loading",
                                 [KP_SPLIT_IDLE] = g->has_gpu ? KP_DIFF_IDLE : KP_DIFF_NO_OP};
    if (!g->chosen->step_count) return;
    struct kp_step_split *split = kp_kineto_room(g->chosen->step_count, sizeof *split);
    kp_step_split_all(split, g->tree, g->is_ahead ? &g->on_gpu : g->chosen);
    if (g->has_gpu && !g->is_ahead) compute_add(g, split);
    int64_t in_all[KP_SPLIT_PARTS] = {0};
    for (size_t i = 0; i < g->chosen->step_count; i++) {
        kp_diff_sample_add(&g->d->own, g->side, g->from + i, -(double)split[i].part_ns[KP_SPLIT_COMM]);
        for (int part = 0; part < KP_SPLIT_PARTS; part++) in_all[part] += split[i].part_ns[part];
    }
    for (size_t i = 0; i < g->chosen->step_count; i++)
        for (int part = 0; part < KP_SPLIT_PARTS; part++)
            if (g->has_gpu || in_all[part] || (part != KP_SPLIT_COMM && part != KP_SPLIT_COPIES))
                sample_add(g, KP_DIFF_PARTS, kp_strings_put(g->d->strings, names[part], strlen(names[part])), i,
                           (double)split[i].part_ns[part]);
    free(split);
}

static uint32_t memory_name(struct gathering *g, const char *what, const struct kp_kineto_memory *m)
{
    const uint8_t type = g->tree->trace->events[m->event].device_type;
    char name[64];
    if (type == 0) snprintf(name, sizeof name, "%s, CPU", what);
    else snprintf(name, sizeof name, "%s, GPU %d", what, m->device < 0 ? 0 : m->device);
    return kp_strings_put(g->d->strings, name, strlen(name));
}

/* Keeps the larger of a sample and a value. */
static void peak_add(struct gathering *g, uint32_t name, size_t step, double value)
{
    struct kp_diff_row *row = kp_diff_row_get(g->d, KP_DIFF_MEMORY, name);
    kp_diff_sample_add(row, g->side, g->from + step, 0);
    double *const sample = &row->values[g->side][g->from + step];
    if (value > *sample) *sample = value;
}

static void memory_add(struct gathering *g)
{
    const struct kp_kineto *trace = g->tree->trace;
    for (size_t i = 0, step; i < trace->memory_count; i++) {
        const struct kp_kineto_memory *m = &trace->memory[i];
        if (!step_at(g, trace->events[m->event].start_ns, &step)) continue;
        if (m->bytes > 0) sample_add(g, KP_DIFF_MEMORY, memory_name(g, "allocated", m), step, (double)m->bytes);
        if (m->allocated > 0) peak_add(g, memory_name(g, "peak", m), step, (double)m->allocated);
        g->d->sides[g->side].has_memory = true;
    }
}

/* ---- the head ---- */

static void text_take(struct kp_diff *d, uint32_t *out, const char *text)
{
    if (!*out && text && *text) *out = kp_strings_put(d->strings, text, strlen(text));
}

void kp_diff_head_take(struct kp_diff *d, const struct kp_diff *one, int side, const struct kp_kineto *trace,
                       const char *label)
{
    struct kp_diff_side *s = &d->sides[side];
    const char *lost = kp_kineto_fact(trace, "kprof.lost");
    text_take(d, &s->program, kp_kineto_fact(trace, "kprof.script"));
    text_take(d, &s->script, kp_kineto_fact(trace, "kprof.script"));
    if (trace->program) text_take(d, &s->program, kp_kineto_text(trace, trace->program));
    text_take(d, &s->torch, kp_kineto_fact(trace, "kprof.torch_version"));
    text_take(d, &s->host, kp_kineto_fact(trace, "host_name"));
    if (lost) s->lost += strtoull(lost, NULL, 10);
    const struct kp_diff_side *const of = &one->sides[side];
    s->core_had_us += of->has_core ? of->core_had_us : (double)kp_kineto_number(trace, "kprof.core_had_us");
    s->core_waited_us += of->has_core ? of->core_waited_us : (double)kp_kineto_number(trace, "kprof.core_waited_us");
    *KP_KINETO_NEXT(s->files, s->file_count, s->file_capacity) = kp_strings_put(d->strings, label, strlen(label));
    s->has_gpu |= one->sides[side].has_gpu;
    s->has_shapes |= trace->record_shapes;
    s->has_steps |= one->sides[side].has_steps;
}

bool kp_diff_gpu_worked(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (kp_tree_event(tree, i)->kind == KP_KINETO_GPU) return true;
    return false;
}

void kp_diff_gather(struct kp_diff *d, int side, const struct kp_tree *tree, const struct kp_chosen *chosen,
                    bool is_part)
{
    const struct kp_spans *spans = &chosen->spans;
    const struct kp_step whole = {.start_ns = spans->count ? spans->of[0].start_ns : 0,
                                  .end_ns = spans->count ? spans->of[spans->count - 1].end_ns : 0,
                                  .inside_ns = kp_spans_length(spans, NULL)};
    struct gathering g = {.d = d,
                          .side = side,
                          .tree = tree,
                          .chosen = chosen,
                          .steps = chosen->step_count ? chosen->steps : &whole,
                          .step_count = chosen->step_count ? chosen->step_count : 1,
                          .has_steps = chosen->step_count != 0,
                          .from = d->sides[side].samples,
                          .has_gpu = kp_diff_gpu_worked(tree)};
    g.is_ahead = g.has_gpu && kp_gpu_steps_ahead(&g.on_gpu, tree, chosen);
    d->sides[side].is_ahead |= g.is_ahead;
    kp_stepthreads_find(&g.step_threads, tree);
    steps_add(&g);
    parts_add(&g);
    nodes_add(&g);
    memory_add(&g);
    if (!is_part) d->sides[side].samples += g.step_count;
    if (g.is_ahead) kp_chosen_fini(&g.on_gpu);
    kp_stepthreads_fini(&g.step_threads);
    free(g.line_names[0].of);
    free(g.line_names[1].of);
    free(g.names.of);
}

void kp_diff_waits_add(struct kp_diff *one, int side, const struct kp_step *steps, const double *waits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kp_diff_sample_add(&one->on_core, side, i, (double)steps[i].inside_ns - waits[i]);
}

static void row_merge(struct kp_diff_row *to, const struct kp_diff_row *from, int side, size_t first)
{
    for (size_t i = 0; i < from->filled[side]; i++) kp_diff_sample_add(to, side, first + i, from->values[side][i]);
    to->count[side] += from->count[side];
}

void kp_diff_merge(struct kp_diff *d, const struct kp_diff *from, int side)
{
    struct kp_diff_side *to = &d->sides[side];
    const struct kp_diff_side *had = &from->sides[side];
    for (size_t i = 0; i < from->count; i++) {
        const struct kp_diff_row *row = &from->rows[i];
        const uint32_t name = kp_strings_put_from(d->strings, from->strings, row->name);
        struct kp_diff_row *into = kp_diff_row_get(d, row->group, name);
        row_merge(into, row, side, to->samples);
        shapes_keep(d, side, into, from->strings, row->shapes[side]);
    }
    row_merge(&d->step, &from->step, side, to->samples);
    row_merge(&d->own, &from->own, side, to->samples);
    row_merge(&d->on_core, &from->on_core, side, to->samples);
    to->samples += had->samples;
    to->ops += had->ops;
    kp_diff_batches_merge(&to->batches, &had->batches);
    to->is_ahead |= had->is_ahead;
    to->has_memory |= had->has_memory;
    to->has_modules |= had->has_modules;
    to->has_lines |= had->has_lines;
    to->has_python |= had->has_python;
}

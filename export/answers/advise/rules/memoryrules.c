// SPDX-License-Identifier: Apache-2.0
/* memoryrules.c - memory that each step leaves, that is nearly all of a GPU's, or that the allocator holds in pieces */

#include <stdio.h>
#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/rules/load/loadwaits.h"
#include "export/answers/advise/rules/rules.h"
#include "export/read/facts/steps/everynth.h"
#include "export/show/units.h"

#define MB 1048576.0
#define NEAR_PEAK 0.90
#define HELD_UNUSED 0.20        /* of the GPU's memory: reserved by the allocator, and in no tensor at the peak */
#define LEFT_LEAST (4.0 * 1024) /* as of the host's heap, in heapadvice.c */
#define LEFT_CRITICAL (64.0 * 1024)
#define LEFT_STEPS 0.8 /* of the steps leave some */
/* A window of four, less its last step: a block that lives on for two steps is not in all of the three. */
enum { STEPS_FOR_GROWTH = 4, LINES_SHOWN = 5 };

struct memory_event {
    int64_t ns;
    const struct kp_kineto_memory *said;
    const struct kp_kineto_event *event;
};
struct memory_walk {
    struct kp_costrules *x;
    struct memory_event *of; /* by time */
    size_t count;
    int32_t *places; /* the op that an event is in; -1 */
};
struct live_block {
    double bytes;
    size_t step; /* their count: outside of the steps */
    int32_t place;
};

static bool is_gpu(const struct memory_event *m) { return m->event->device_type == 1 || m->event->device_type == 20; }

KP_ORDER2(event_order, struct memory_event, ns, said)

static void events_list(struct memory_walk *w)
{
    const struct kp_kineto *trace = w->x->tree->trace;
    w->of = kp_kineto_room(trace->memory_count + 1, sizeof *w->of);
    for (size_t i = 0; i < trace->memory_count; i++) {
        const struct kp_kineto_event *e = &trace->events[trace->memory[i].event];
        if (strcmp(kp_kineto_text(trace, e->name), "[memory]") != 0) continue;
        w->of[w->count++] = (struct memory_event){e->start_ns, &trace->memory[i], e};
    }
    qsort(w->of, w->count, sizeof *w->of, event_order);
}

static int32_t *last_of(struct kp_keyindex *threads, const struct kp_kineto_event *e)
{
    return kp_keyindex_row(threads, (uint64_t)e->tid, &(int32_t){-1}, sizeof(int32_t));
}

/* Events and nodes are both by time: the last node that began on the event's thread, or an outer one, has the event. */
static void places_find(struct memory_walk *w)
{
    const struct kp_tree *tree = w->x->tree;
    struct kp_keyindex threads = {0}; /* rows: the last node that began */
    size_t node = 0;
    w->places = kp_kineto_room(w->count + 1, sizeof *w->places);
    for (size_t i = 0; i < w->count; i++) {
        for (; node < tree->count && tree->nodes[node].start_ns <= w->of[i].ns; node++) {
            if (tree->nodes[node].on_device || tree->nodes[node].is_async) continue;
            *last_of(&threads, kp_tree_event(tree, node)) = (int32_t)node;
        }
        int32_t in = *last_of(&threads, w->of[i].event);
        while (in >= 0 && tree->nodes[in].end_ns < w->of[i].ns) in = tree->nodes[in].parent;
        w->places[i] = in;
    }
    kp_keyindex_fini(&threads);
}

/* ---- what steps leave ---- */

struct left_line {
    uint32_t line; /* string id */
    double bytes;
    size_t steps; /* in which it left some */
};
struct left_lines { /* of the program: rows of `of` are struct left_line; all zero: empty */
    struct kp_keyindex of, seen;
    double bytes, of_optimizers; /* in all, and within an optimizer's step */
};

static void line_add(struct left_lines *lines, const struct kp_tree *tree, const struct live_block *block)
{
    const uint32_t stack = block->place < 0 ? 0 : kp_tree_stack(tree, &tree->nodes[block->place]);
    const uint32_t line = kp_ownline_of(tree->trace, stack);
    const size_t known = lines->seen.count;
    if (!line) return;
    struct left_line *const sum = kp_keyindex_row(&lines->of, line, &(struct left_line){.line = line}, sizeof *sum);
    sum->bytes += block->bytes;
    (void)kp_keyindex_get(&lines->seen, (uint64_t)line << 32 | (uint64_t)block->step);
    sum->steps += lines->seen.count > known;
}

KP_ORDER_DOWN(largest_first, struct left_line, bytes)

/* ": 312 KiB at a.py:3 main, 64 KiB at a.py:9 main", of two lines or more that leave some in each of `leaving` steps;
 * else "". */
static const char *lines_text(const struct kp_costrules *x, struct left_lines *lines, size_t leaving)
{
    struct left_line *const of = lines->of.rows;
    const double steps = (double)x->chosen->step_count - 1; /* the last is left out */
    char text[512] = "", size[32];
    size_t used = 0, shown = 0;
    if (lines->of.count) qsort(of, lines->of.count, sizeof *of, largest_first);
    for (size_t i = 0; i < lines->of.count && shown < LINES_SHOWN; i++) {
        if (of[i].bytes < LEFT_LEAST * steps || (double)of[i].steps < LEFT_STEPS * (double)leaving) continue;
        kp_units_bytes(size, sizeof size, (int64_t)(of[i].bytes / steps));
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s at %s", shown++ ? ", " : ": ", size,
                                 kp_kineto_text(x->tree->trace, of[i].line));
        if (used >= sizeof text) break;
    }
    kp_keyindex_fini(&lines->of);
    kp_keyindex_fini(&lines->seen);
    return shown > 1 ? KP_TEXT("%s", text) : "";
}

/*
 * Bytes of blocks that a step allocated and that are there when the last step ends, by step and place. Later a program
 * that ends frees what it kept.
 */
static void left_find(struct memory_walk *w, bool gpu, struct kp_cost *left, struct left_lines *lines)
{
    struct kp_keyindex addresses = {0};
    const struct kp_chosen *const chosen = w->x->chosen;
    for (size_t i = 0; i < w->count && w->of[i].ns < chosen->steps[chosen->step_count - 1].end_ns; i++) {
        const struct memory_event *m = &w->of[i];
        if (is_gpu(m) != gpu || !m->said->address) continue;
        struct live_block none = {0}, *const block = kp_keyindex_row(&addresses, m->said->address, &none, sizeof none);
        *block = m->event->number > 0
                     ? (struct live_block){(double)m->event->number,
                                           kp_step_at(chosen->steps, chosen->step_count, m->ns), w->places[i]}
                     : none;
    }
    const struct live_block *const blocks = addresses.rows;
    for (size_t i = 0; i < addresses.count; i++) {
        if (blocks[i].bytes <= 0 || blocks[i].step == chosen->step_count) continue;
        left->of[blocks[i].step] += blocks[i].bytes;
        if (blocks[i].step + 1 == chosen->step_count) continue; /* the next step may free it */
        kp_costplaces_add(&left->places, w->x->tree, blocks[i].place, -1, (int64_t)blocks[i].bytes);
        line_add(lines, w->x->tree, &blocks[i]);
        lines->bytes += blocks[i].bytes;
        if (blocks[i].place >= 0 && kp_node_is_in(w->x->tree, blocks[i].place, KP_NAME_OPTIMIZER))
            lines->of_optimizers += blocks[i].bytes;
    }
    kp_keyindex_fini(&addresses);
}

#define CACHES "Give functools.lru_cache() a maxsize, and drop old entries of a list or a dict. "
#define KEY "A tensor as a key is a new key in each step. "
#define GRAPH "Do not keep a step's graph or tensors: use total += loss.item(), and .detach() what is stored. "
#define STATE                                                                                                       \
    "These are an optimizer's state of parameters that are new. It keeps a parameter and its state until both are " \
    "removed: take the group out of optimizer.param_groups, and its parameters out of optimizer.state. "
#define SHOWN "`kprof memory` shows what grows, and where it is allocated."
static const char keep_change[] = GRAPH "A cache keeps tensors as well. " CACHES KEY SHOWN;
static const char state_change[] = STATE SHOWN;
static const char cached_change[] =
    "That line computes without gradients: a cache, a list or a dict may keep its tensors. " CACHES KEY SHOWN;
static const char detached_change[] = "That line already detaches, so it keeps tensors without their graph. Keep "
                                      "numbers (.item()), or keep fewer. " CACHES SHOWN;
#define BATCHES                                                                        \
    "These are batches that the DataLoader gives. Another line may keep them: a view " \
    "(images[i], a slice) keeps its whole batch, so keep images[i].clone(). "
static const char batch_change[] = BATCHES SHOWN;
static const char worker_change[] = BATCHES "A worker's batch lies in shared memory, and each also keeps a file open "
                                            "(sharing strategy file_descriptor). " SHOWN;

/* The work of the program's line, in any step. Autograd calls detach() itself where it stores a gradient. */
struct line_use {
    bool detaches, is_trained; /* is_trained: backward goes through it */
    bool has_backward;         /* the recording tells of which ops backward is */
};

static struct line_use use_of(const struct kp_costrules *x, const char *line)
{
    struct line_use use = {0};
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        const bool detaches = !node->on_device && strcmp(kp_costrules_name(x, (int32_t)i), "aten::detach") == 0 &&
                              !kp_node_is_in(x->tree, (int32_t)i, KP_NAME_ENGINE);
        use.has_backward |= node->forward >= 0;
        if (node->on_device || (!detaches && node->forward < 0)) continue;
        const uint32_t own = kp_costplace_line(x->tree, detaches ? (int32_t)i : node->forward);
        if (!own || strcmp(kp_kineto_text(x->tree->trace, own), line) != 0) continue;
        use.detaches |= detaches;
        use.is_trained |= !detaches;
    }
    return use;
}

static const char *change_of(const struct kp_costrules *x, const char *where, const char *line)
{
    if (where && kp_kineto_is_loader(where)) return kp_kineto_is_of_workers(where) ? worker_change : batch_change;
    const struct line_use use = line ? use_of(x, line) : (struct line_use){0};
    if (use.detaches) return detached_change;
    return use.has_backward && !use.is_trained ? cached_change : keep_change;
}

/* The steps that leave some. The last one is left out: its blocks may live on into the next one. */
struct left_steps {
    size_t *at, count;
    double mean;  /* bytes, of all steps */
    bool is_each; /* most steps do */
};

static struct left_steps leaving_find(const struct kp_costrules *x, const struct kp_cost *left)
{
    const size_t steps = x->chosen->step_count;
    struct left_steps l = {.at = kp_kineto_room(steps + 1, sizeof *l.at)};
    for (size_t i = 0; i + 1 < steps; i++) {
        l.mean += left->of[i] / (double)(steps - 1);
        if (left->of[i] >= LEFT_LEAST) l.at[l.count++] = i;
    }
    l.is_each = (double)l.count >= LEFT_STEPS * (double)(steps - 1);
    return l;
}

/* "each step leaves ", "each 10th step leaves ", "some steps leave "; NULL: it does not grow. */
static const char *leaving_text(const struct kp_costrules *x, const struct left_steps *l)
{
    const size_t steps = x->chosen->step_count - 1;
    if (l->is_each) return "each step leaves ";
    if (!l->count || !kp_everynth_recurs(l->count, (long)l->at[0], (long)l->at[l->count - 1], (long)steps)) return NULL;
    const long nth = kp_costrules_each_nth(x, l->at, l->count);
    return nth ? KP_TEXT("each %ldth step leaves ", nth) : "some steps leave ";
}

static void growth_judge(struct memory_walk *w, bool gpu)
{
    struct kp_costrules *x = w->x;
    const size_t steps = x->chosen->step_count;
    struct kp_cost left = kp_cost_open(x);
    struct left_lines lines = {0};
    if (steps >= STEPS_FOR_GROWTH) left_find(w, gpu, &left, &lines);
    struct left_steps l = leaving_find(x, &left);
    const char *const who = steps >= STEPS_FOR_GROWTH ? leaving_text(x, &l) : NULL;
    struct kp_finding f = {.id = KP_FINDING_GROWS, .steps = l.count};
    f.step_bytes = l.is_each ? kp_quantile(left.of, steps - 1, 0.5) : l.mean;
    f.what = KP_TEXT("%s%smemory allocated%s%s", who ? who : "", gpu ? "GPU " : "",
                     l.is_each ? "" : ", per step on average", lines_text(x, &lines, l.count));
    f.is_critical = l.is_each && f.step_bytes >= LEFT_CRITICAL;
    if (who && f.step_bytes >= LEFT_LEAST) {
        kp_costplaces_tell(&left.places, x->tree->trace, &f);
        f.change = 2 * lines.of_optimizers > lines.bytes ? state_change : change_of(x, f.where, f.line);
        kp_costrules_tell(x, &f);
    }
    free(l.at);
    kp_cost_drop(&left);
}

/* ---- the GPU's memory ---- */

static void device_judge(struct memory_walk *w)
{
    struct kp_costrules *x = w->x;
    const double total = kp_costrules_fact(x, "deviceProperties.totalGlobalMem");
    double reserved = 0, allocated = 0;
    size_t most = 0;
    for (size_t i = 0; i < w->count; i++) {
        if (!is_gpu(&w->of[i]) || w->of[i].said->device > 0) continue;
        if ((double)w->of[i].said->reserved > reserved) reserved = (double)w->of[i].said->reserved;
        if ((double)w->of[i].said->allocated <= allocated) continue;
        allocated = (double)w->of[i].said->allocated;
        most = i;
    }
    if (total <= 0 || reserved <= 0) return;
    struct kp_finding f = {.steps = x->chosen->step_count};
    if (reserved - allocated >= HELD_UNUSED * total && reserved >= total / 2) {
        f.id = "memory-fragmented";
        f.step_bytes = reserved - allocated;
        f.what = KP_TEXT("at the peak the allocator holds %.0f MiB that no tensor uses", (reserved - allocated) / MB);
        f.change = "Let segments grow: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. Keep shapes the same.";
    } else if (reserved >= NEAR_PEAK * total) {
        f.id = "memory-near-peak";
        f.step_bytes = reserved;
        f.what =
            KP_TEXT("%.0f %% of the GPU's memory is in use: a little more fails or gets slow", 100 * reserved / total);
        f.change = "Use smaller batches, torch.utils.checkpoint or a sharded optimizer. `kprof memory` shows the peak.";
    }
    if (!f.id) return;
    struct kp_costplaces places = {0};
    kp_costplaces_add(&places, x->tree, w->places[most], -1, 1);
    kp_costplaces_tell(&places, x->tree->trace, &f);
    kp_costplaces_fini(&places);
    kp_costrules_tell(x, &f);
}

/* Files of torch 1.9 have events of memory that do not tell which blocks they are of. */
static bool has_addresses(const struct kp_kineto *trace)
{
    for (size_t i = 0; i < trace->memory_count; i++)
        if (trace->memory[i].address) return true;
    return !trace->memory_count;
}

void kp_rules_memory(struct kp_costrules *x)
{
    struct memory_walk w = {.x = x};
    const struct kp_kineto *trace = x->tree->trace;
    if (!trace->memory_count && !trace->profile_memory && (!trace->has_heap || x->out->has_gpu))
        kp_costrules_unjudged(x, "memory (kprof run --profile-memory)");
    const bool is_known = has_addresses(trace);
    if (!is_known) kp_costrules_unjudged(x, "addresses of memory (kprof run --profile-memory)");
    if (!trace->memory_count || !is_known) return;
    events_list(&w);
    places_find(&w);
    growth_judge(&w, false);
    growth_judge(&w, true);
    device_judge(&w);
    free(w.of);
    free(w.places);
}

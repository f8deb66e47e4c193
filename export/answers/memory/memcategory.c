// SPDX-License-Identifier: Apache-2.0
/*
 * memcategory.c - gives each block one of torch's categories, by where it was allocated and how long it lived
 *
 * torch follows tensors from op to op. A trace has no tensors, but it has forward passes, backward passes and optimizer
 * steps. A forward pass's ops share sequence numbers with the nodes of its backward pass. docs/decisions/023 has the
 * rules, and where they differ from torch's.
 */
#include "export/answers/memory/memblocks.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "collector/base/kp_search.h"
#include "export/read/store/qsort.h"

enum { LOOKS_MOST = 1024 }; /* ops of one sequence number that are looked at */
enum { STATES_MOST = 4 };   /* tensors that an optimizer keeps for a parameter */
enum { FILES_MOST = 16, FILE_LEAST = 16384, HEAD_PART = 20, HEAD_BYTES = 4096 }; /* of weights: files, their heads */
enum { PASSES_AHEAD = 32 }; /* forward passes that may begin before the first one's backward pass */

struct forward_seq {
    int64_t seq, start_ns, top_ns; /* top_ns: where the outermost op around it began */
    uint64_t thread;
};
struct forwards {
    struct forward_seq *of; /* by (seq, start) */
    size_t count, capacity;
};
struct forward_tally {
    uint64_t thread;
    int64_t first_ns, last_seq;
    size_t count;
};
struct optimizer_spans { /* steps of optimizers, by start */
    int64_t (*of)[2];
    size_t count, capacity;
};
struct size_row {
    int64_t bytes, at_ns;
    uint16_t device;
    int8_t change; /* 1, -1: a gradient comes, goes; 0: a candidate, which may be a parameter or an older gradient */
    size_t block;
};
struct size_rows {
    struct size_row *rows;
    size_t count, capacity;
};

const char *kp_mem_category_name(unsigned category)
{
    static const char *const names[] = {"Parameter", "Optimizer state", "Input",   "Temporary",       "Activation",
                                        "Gradient",  "Autograd detail", "Unknown", "Before recording"};
    return category < sizeof names / sizeof *names ? names[category] : "";
}

/* ---- forward passes ---- */

KP_ORDER2(forward_order, struct forward_seq, seq, start_ns)

static void forwards_find(struct forwards *f, const struct kp_tree *tree)
{
    const struct kp_kineto *trace = tree->trace;
    int64_t *top_ns = kp_kineto_room(tree->count + 1, sizeof *top_ns); /* parents come before their children */
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = &trace->events[tree->nodes[i].event];
        const int32_t p = tree->nodes[i].parent;
        const bool in_op = p >= 0 && trace->events[tree->nodes[p].event].kind == KP_KINETO_OP;
        top_ns[i] = in_op ? top_ns[p] : tree->nodes[i].start_ns;
        if (e->kind != KP_KINETO_OP || !(e->flags & KP_KINETO_HAS_SEQ) || e->fwd_tid > 0 || e->number < 0) continue;
        *KP_KINETO_NEXT(f->of, f->count, f->capacity) =
            (struct forward_seq){e->number, e->start_ns, in_op ? top_ns[i] : e->start_ns, kp_tree_thread(e)};
    }
    free(top_ns);
    if (f->count) kp_qsort(f->of, f->count, sizeof *f->of, forward_order);
}

static bool is_forward_before(const void *forward, const void *key)
{
    const struct forward_seq *x = forward, *y = key;
    return x->seq < y->seq || (x->seq == y->seq && x->start_ns < y->start_ns);
}

static size_t forward_after(const struct forwards *f, int64_t seq, int64_t ns)
{
    const struct forward_seq key = {.seq = seq, .start_ns = ns};
    return kp_search(f->of, sizeof *f->of, f->count, is_forward_before, &key);
}

/* Each thread votes by its last op with this number before the pass. An op without an autograd node shows the number of
 * the next op with one. */
static void votes_cast(struct forward_tally *votes, size_t most, size_t *count, const struct forwards *f, int64_t seq,
                       int64_t before_ns)
{
    size_t looks = 0;
    for (size_t i = forward_after(f, seq, before_ns); i-- > 0 && f->of[i].seq == seq && looks++ < LOOKS_MOST;) {
        size_t v = 0;
        while (v < *count && votes[v].thread != f->of[i].thread) v++;
        if (v == most || (v < *count && votes[v].last_seq == seq)) continue;
        if (v == *count) votes[(*count)++] = (struct forward_tally){.thread = f->of[i].thread, .first_ns = INT64_MAX};
        votes[v].last_seq = seq;
        votes[v].count++;
        if (f->of[i].top_ns < votes[v].first_ns) votes[v].first_ns = f->of[i].top_ns;
    }
}

KP_ORDER2(node_order, struct kp_mem_node, pass, seq)

/* Each thread counts its own sequence numbers. The forward thread is the one with most of a pass's numbers. */
static void passes_settle(struct kp_memview *view)
{
    struct forwards f = {0};
    forwards_find(&f, view->tree);
    if (view->node_count) kp_qsort(view->nodes, view->node_count, sizeof *view->nodes, node_order);
    for (size_t i = 0; i < view->node_count;) {
        struct forward_tally votes[64];
        size_t count = 0, best = 0;
        struct kp_mem_pass *pass = &view->passes[view->nodes[i].pass];
        for (int32_t p = view->nodes[i].pass; i < view->node_count && view->nodes[i].pass == p; i++)
            if (!count || view->nodes[i].seq != view->nodes[i - 1].seq) /* a number votes once */
                votes_cast(votes, 64, &count, &f, view->nodes[i].seq, pass->from_ns);
        for (size_t v = 1; v < count; v++)
            if (votes[v].count > votes[best].count) best = v;
        if (!count) continue;
        pass->forward_ns = votes[best].first_ns;
        pass->forward_thread = votes[best].thread;
    }
    free(f.of);
}

/* ---- phases ---- */

static void optimizers_find(struct optimizer_spans *out, const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = &tree->trace->events[tree->nodes[i].event];
        if (e->kind != KP_KINETO_ANNOTATION || !kp_mem_is_optimizer(kp_kineto_text(tree->trace, e->name))) continue;
        out->of = kp_kineto_grow(out->of, &out->capacity, out->count + 1, sizeof *out->of);
        out->of[out->count][0] = tree->nodes[i].start_ns;
        out->of[out->count++][1] = tree->nodes[i].end_ns;
    }
}

/* A step that is still on at the end does not count: its optimizer calls the model, as in Lightning. */
static bool is_optimizer_between(const struct optimizer_spans *optimizers, int64_t from_ns, int64_t to_ns)
{
    const size_t at = kp_rows_from(optimizers->of, optimizers->count, sizeof *optimizers->of, from_ns);
    return at < optimizers->count && optimizers->of[at][1] <= to_ns;
}

/* Returns the index of the first backward pass that begins after a moment. */
static size_t pass_after(const struct kp_memview *view, int64_t ns)
{
    return kp_rows_from(view->passes, view->pass_count, sizeof *view->passes, ns + 1);
}

/* Finds the backward pass whose forward pass allocated the block, on the same thread. */
static const struct kp_mem_pass *pass_of_forward(const struct kp_memview *view, const struct kp_mem_block *b)
{
    size_t first = pass_after(view, b->from_ns);
    for (size_t i = first; i < view->pass_count && i < first + PASSES_AHEAD; i++)
        if (view->passes[i].forward_ns <= b->from_ns && view->passes[i].forward_thread == b->place.thread)
            return &view->passes[i];
    return NULL;
}

/* An input is allocated after an optimizer step and before a forward pass. It lives when that begins, and is freed
 * before the next step ends. A batch that a loader fetches one step ahead is freed in the step after that. */
static bool is_input(const struct kp_memview *view, const struct optimizer_spans *optimizers,
                     const struct kp_mem_block *b)
{
    size_t p = pass_after(view, b->from_ns);
    int64_t forward_ns = p < view->pass_count ? view->passes[p].forward_ns : INT64_MAX;
    if (forward_ns == INT64_MAX || b->step < 0 || b->place.leaf < 0 || forward_ns <= b->from_ns ||
        b->to_ns < forward_ns)
        return false;
    if (is_optimizer_between(optimizers, b->from_ns, forward_ns)) return false;
    const size_t next = (size_t)b->step + 1, ahead = next + 1 < view->step_count ? next + 1 : next;
    return next >= view->step_count || b->to_ns <= view->steps[ahead].to_ns;
}

static unsigned category_of(const struct kp_memview *view, const struct optimizer_spans *optimizers,
                            const struct kp_mem_block *b)
{
    const struct kp_mem_place *place = &b->place;
    if (b->from_ns == INT64_MIN) return KP_MEM_BEFORE;
    if (place->leaf >= 0 && place->leaf == b->freed_leaf) return KP_MEM_TEMPORARY;
    if (place->pass >= 0) return b->to_ns > view->passes[place->pass].to_ns ? KP_MEM_GRADIENT : KP_MEM_AUTOGRAD;
    const struct kp_mem_pass *pass = place->leaf < 0 ? NULL : pass_of_forward(view, b);
    if (place->optimizer >= 0) {
        int64_t end_ns = view->tree->nodes[place->optimizer].end_ns;
        if (!pass || pass->from_ns > end_ns) /* else the optimizer calls the model: a closure */
            return b->to_ns > end_ns ? KP_MEM_OPTIMIZER : KP_MEM_TEMPORARY;
    }
    if (pass) return KP_MEM_ACTIVATION;
    return is_input(view, optimizers, b) ? KP_MEM_INPUT : KP_MEM_UNKNOWN;
}

/* ---- parameters, and the optimizer's state from before the window ---- */

static int size_order(const void *a, const void *b)
{
    const struct size_row *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    if (!x->change != !y->change) return x->change ? -1 : 1; /* gradients first */
    if (x->change && x->at_ns != y->at_ns) return x->at_ns < y->at_ns ? -1 : 1;
    if (x->change != y->change) return x->change < y->change ? -1 : 1;
    return (x->block > y->block) - (x->block < y->block);
}

static void size_add(struct size_rows *s, const struct kp_mem_block *b, size_t block, int64_t at_ns, int8_t change)
{
    *KP_KINETO_NEXT(s->rows, s->count, s->capacity) = (struct size_row){b->bytes, at_ns, b->device, change, block};
}

/* It is there when an optimizer's step ends: create_graph=True leaves more tensors of a backward pass than gradients,
 * which go with the graph. */
static bool meets_optimizer(const struct optimizer_spans *optimizers, const struct kp_mem_block *b)
{
    for (size_t i = 0; i < optimizers->count && optimizers->of[i][0] < b->to_ns; i++)
        if (b->from_ns < optimizers->of[i][1] && b->to_ns >= optimizers->of[i][1]) return true;
    return false;
}

typedef bool (*is_candidate_fn)(const struct kp_memview *view, const struct kp_mem_block *b);

/* Allocated before the first pass and freed after the last. */
static bool may_be_parameter(const struct kp_memview *view, const struct kp_mem_block *b)
{
    const struct kp_mem_pass *first = &view->passes[0], *last = &view->passes[view->pass_count - 1];
    const bool is_old = b->category == KP_MEM_UNKNOWN || b->category == KP_MEM_INPUT || b->category == KP_MEM_BEFORE;
    return is_old && b->from_ns < first->forward_ns && b->from_ns < first->from_ns && b->to_ns > last->to_ns;
}

/* zero_grad() frees what the step before the window left. */
static bool may_be_old_gradient(const struct kp_memview *view, const struct kp_mem_block *b)
{
    return b->category == KP_MEM_BEFORE && b->to_ns < view->passes[view->pass_count - 1].from_ns;
}

/* Gathers gradients and candidates. `optimizers`: of gradients those that one of them meets; NULL: all. */
static void sizes_find(struct size_rows *s, const struct kp_memview *view, const struct optimizer_spans *optimizers,
                       is_candidate_fn is_candidate)
{
    s->count = 0;
    for (size_t i = 0; i < view->block_count; i++) {
        const struct kp_mem_block *b = &view->blocks[i];
        if (b->category == KP_MEM_GRADIENT) {
            if (optimizers && !meets_optimizer(optimizers, b)) continue;
            size_add(s, b, i, b->from_ns, 1);
            if (b->to_ns != INT64_MAX) size_add(s, b, i, b->to_ns, -1);
        } else if (is_candidate(view, b)) {
            size_add(s, b, i, 0, 0);
        }
    }
    if (s->count) kp_qsort(s->rows, s->count, sizeof *s->rows, size_order);
}

enum { NUMBER_TELLS = 4 }; /* so many gradients: half of them find no block of their size by chance */

struct same_size { /* the rows of one size: gradients, then candidates */
    size_t first, candidates, end;
    size_t gradients; /* the most that were there at once: each belongs to a parameter */
};

static bool same_size_next(const struct size_rows *s, struct same_size *z)
{
    size_t now = 0;
    *z = (struct same_size){.first = z->end, .candidates = z->end, .end = z->end};
    for (; z->end < s->count; z->end++) {
        const struct size_row *row = &s->rows[z->end], *first = &s->rows[z->first];
        if (row->device != first->device || row->bytes != first->bytes) break;
        if (row->change == 0) continue;
        z->candidates = z->end + 1;
        now = row->change > 0 ? now + 1 : now ? now - 1 : 0;
        z->gradients = now > z->gradients ? now : z->gradients;
    }
    return z->first < s->count;
}

/* Counts the blocks of before that have a parameter's size, beside the parameters. */
static size_t states_most(const struct kp_memview *view, const struct size_rows *s, const struct same_size *z)
{
    size_t left = 0;
    for (size_t i = z->candidates + z->gradients; i < z->end; i++)
        left += view->blocks[s->rows[i].block].category == KP_MEM_BEFORE;
    return left;
}

/* An optimizer keeps the same number of tensors for each parameter, one to four. Returns what fits most bytes. */
static size_t states_each(const struct kp_memview *view, const struct size_rows *s)
{
    int64_t votes[STATES_MOST + 1] = {0};
    size_t best = 0;
    for (struct same_size z = {0}; same_size_next(s, &z);) {
        const size_t left = z.gradients ? states_most(view, s, &z) : 0;
        if (left && left % z.gradients == 0 && left / z.gradients <= STATES_MOST)
            votes[left / z.gradients] += (int64_t)z.gradients * s->rows[z.first].bytes;
    }
    for (size_t i = 1; i <= STATES_MOST; i++)
        if (votes[i] > votes[best]) best = i;
    return best;
}

/* If more blocks of a size are left than `each` for a parameter, the others are the model's buffers. */
static void states_mark(struct kp_memview *view, const struct size_rows *s, const struct same_size *z, size_t each)
{
    size_t left = states_most(view, s, z);
    if (each && left > each * z->gradients) left = each * z->gradients;
    if (left % z->gradients || left / z->gradients > STATES_MOST) return;
    for (size_t i = z->candidates + z->gradients; i < z->end && left; i++) {
        struct kp_mem_block *b = &view->blocks[s->rows[i].block];
        if (b->category != KP_MEM_BEFORE) continue;
        b->category = KP_MEM_OPTIMIZER;
        left--;
    }
}

/* Adam and its like count the steps of each parameter, in a float of the host. */
static void counters_mark(struct kp_memview *view, const struct size_rows *s, size_t parameters)
{
    for (int pass = 0; pass < 2; pass++) {
        size_t count = 0;
        for (size_t i = 0; i < s->count && count < parameters; i++) {
            struct kp_mem_block *b = &view->blocks[s->rows[i].block];
            if (s->rows[i].change || b->bytes != sizeof(float) || view->devices[b->device].type) continue;
            if (b->category != KP_MEM_BEFORE) continue;
            if (pass) b->category = KP_MEM_OPTIMIZER;
            count++;
        }
        if (count < parameters) return;
    }
}

/* Blocks of before come first among the candidates, as they are sorted by time. */
static void sizes_mark(struct kp_memview *view, const struct size_rows *s, bool with_states)
{
    const size_t each = with_states ? states_each(view, s) : 0;
    size_t parameters = 0;
    for (struct same_size z = {0}; same_size_next(s, &z);) {
        for (size_t i = z.candidates; i < z.end && i < z.candidates + z.gradients; i++, parameters++)
            view->blocks[s->rows[i].block].category = KP_MEM_PARAMETER;
        if (with_states && z.gradients) states_mark(view, s, &z, each);
    }
    if (each && parameters) counters_mark(view, s, parameters);
}

/* ---- parameters in mapped files of weights ---- */

/* Whether blocks of together so many bytes may be files with a value for each of the gradients'. */
static bool do_fit(int64_t bytes, int64_t gradients)
{
    return bytes >= gradients && bytes <= gradients + gradients / HEAD_PART + HEAD_BYTES;
}

/* Whether a block whose size no gradient has may be such a file; with `of_one`, the only one. */
static bool may_be_file(const struct kp_memview *view, const struct size_row *row, int64_t gradients, bool of_one)
{
    const struct kp_mem_block *const b = &view->blocks[row->block];
    const bool is_old = b->category == KP_MEM_UNKNOWN || b->category == KP_MEM_BEFORE;
    if (!is_old || row->change || view->devices[b->device].type) return false;
    return of_one ? do_fit(b->bytes, gradients) : b->bytes >= gradients / FILES_MOST;
}

static int64_t files_bytes(const struct kp_memview *view, const struct size_rows *s, int64_t gradients, bool of_one)
{
    int64_t bytes = 0;
    for (struct same_size z = {0}; same_size_next(s, &z);)
        for (size_t i = z.first; i < z.end && !z.gradients; i++)
            if (may_be_file(view, &s->rows[i], gradients, of_one)) bytes += s->rows[i].bytes;
    return bytes;
}

/* A block that fits no gradient and is as large as all gradients, with a file's head: the weights, mapped from their
 * file or files (safetensors, torch.load(mmap=True)). Then blocks of before with a gradient's size are the
 * optimizer's. */
static bool files_mark(struct kp_memview *view, const struct size_rows *s, int64_t gradients, bool with_states)
{
    if (gradients < FILE_LEAST) return false;
    const bool of_one = do_fit(files_bytes(view, s, gradients, true), gradients);
    if (!of_one && !do_fit(files_bytes(view, s, gradients, false), gradients)) return false;
    for (struct same_size z = {0}; same_size_next(s, &z);)
        for (size_t i = z.candidates; i < z.end; i++) {
            struct kp_mem_block *const b = &view->blocks[s->rows[i].block];
            if (!z.gradients && may_be_file(view, &s->rows[i], gradients, of_one)) b->category = KP_MEM_PARAMETER;
            else if (z.gradients && with_states && b->category == KP_MEM_BEFORE) b->category = KP_MEM_OPTIMIZER;
        }
    return true;
}

struct fitting { /* gradients, and those of them that find a parameter */
    int64_t bytes, found_bytes;
    size_t count, found;
};

static struct fitting fitting_of(const struct size_rows *s)
{
    struct fitting f = {0};
    for (struct same_size z = {0}; same_size_next(s, &z);) {
        const size_t candidates = z.end - z.candidates, most = candidates < z.gradients ? candidates : z.gradients;
        f.bytes += (int64_t)z.gradients * s->rows[z.first].bytes;
        f.found_bytes += (int64_t)most * s->rows[z.first].bytes;
        f.count += z.gradients;
        f.found += most;
    }
    return f;
}

/* Fewer than half of the gradients, by bytes and by number, find a block of their size by chance alone. A sparse
 * gradient has a size of its own, so a few of them may be most of the bytes. */
static bool do_most_find(const struct fitting *f)
{
    return 2 * f->found_bytes >= f->bytes || (f->count >= NUMBER_TELLS && 2 * f->found >= f->count);
}

/*
 * A parameter has a gradient of its size. In a window that saw the model, or knows what was there before, the gradients
 * find their parameters. If most do not, the parameters are not seen, and a block that fits is a batch or a label.
 */
static void parameters_find(struct kp_memview *view, const struct optimizer_spans *optimizers, struct size_rows *s)
{
    const bool with_states = optimizers != NULL;
    sizes_find(s, view, optimizers, may_be_parameter);
    struct fitting f = fitting_of(s);
    if (!f.count && with_states) { /* it takes them in the backward pass, or lies outside of the window */
        sizes_find(s, view, NULL, may_be_parameter);
        f = fitting_of(s);
    }
    if (!files_mark(view, s, f.bytes, with_states) && do_most_find(&f)) sizes_mark(view, s, with_states);
}

/* A gradient of the step before the window has the size of one that comes later, when it has been freed. */
static void old_gradients_find(struct kp_memview *view, const struct optimizer_spans *optimizers, struct size_rows *s)
{
    sizes_find(s, view, optimizers, may_be_old_gradient);
    const struct fitting f = fitting_of(s);
    for (struct same_size z = {0}; do_most_find(&f) && same_size_next(s, &z);)
        for (size_t i = z.candidates, left = z.gradients; i < z.end && left; i++) {
            struct kp_mem_block *const b = &view->blocks[s->rows[i].block];
            if (b->to_ns > s->rows[z.first].at_ns) continue;
            b->category = KP_MEM_GRADIENT;
            left--;
        }
}

void kp_memview_categories(struct kp_memview *view)
{
    struct optimizer_spans optimizers = {0};
    struct size_rows sizes = {0};
    passes_settle(view);
    optimizers_find(&optimizers, view->tree);
    for (size_t i = 0; i < view->block_count; i++)
        view->blocks[i].category = (uint8_t)category_of(view, &optimizers, &view->blocks[i]);
    const struct optimizer_spans *const met = optimizers.count ? &optimizers : NULL;
    if (view->pass_count) {
        parameters_find(view, met, &sizes);
        old_gradients_find(view, met, &sizes);
    }
    free(sizes.rows);
    free(optimizers.of);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * exec.c - executable graphs: a flat copy in an order that fits the dependencies, and its launches
 *
 * A child graph is laid out in place: what needs nothing inside it needs what the child needed; behind it comes a join
 * that needs all of it, and stands for the child. Joins and empty nodes are no work: nobody is told of them.
 */
#include <stdlib.h>
#include <string.h>

#include "test/doubles/simgpu/core/graph.h"

bool sim_exec_is(const struct sim_exec *exec) { return exec != NULL && exec->magic == SIM_MAGIC_EXEC; }

/* --- laying out --- */
static struct sim_exec_node *append(struct sim_exec *e)
{
    if (e->count == e->room) {
        e->room = e->room ? 2 * e->room : 64;
        e->nodes = realloc(e->nodes, e->room * sizeof *e->nodes);
        if (e->nodes == NULL) abort();
    }
    struct sim_exec_node *n = &e->nodes[e->count++];
    *n = (struct sim_exec_node){0};
    return n;
}

static void need(struct sim_exec_node *n, size_t index)
{
    n->needs = realloc(n->needs, (n->need_count + 1) * sizeof *n->needs);
    if (n->needs == NULL) abort();
    n->needs[n->need_count++] = index;
}

static void need_all(struct sim_exec_node *n, const size_t *indexes, size_t count)
{
    for (size_t i = 0; i < count; i++) need(n, indexes[i]);
}

struct order { /* of one graph: where each node stands in its list, and where its copy ended up */
    const struct sim_graph *graph;
    size_t *placed;
    bool *is_placed;
};

static size_t index_in(const struct sim_graph *graph, const struct sim_node *node)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.at[i] == node) return i;
    abort(); /* a need outside its graph: sim_node_create does not let that happen */
}

static bool is_free(const struct order *o, size_t i)
{
    const struct sim_nodes *needs = &o->graph->nodes.at[i]->needs;
    for (size_t k = 0; k < needs->count; k++)
        if (!o->is_placed[index_in(o->graph, needs->at[k])]) return false;
    return true;
}

static bool lay_out(struct sim_exec *e, const struct sim_graph *graph, const size_t *before, size_t before_count);

static void place(struct sim_exec *e, struct order *o, size_t i, const size_t *before, size_t before_count)
{
    const struct sim_node *node = o->graph->nodes.at[i];
    size_t count = node->needs.count, *needs = calloc(count + 1, sizeof *needs);
    if (needs == NULL) abort();
    for (size_t k = 0; k < count; k++) needs[k] = o->placed[index_in(o->graph, node->needs.at[k])];
    const size_t *first = count ? needs : before;
    size_t first_count = count ? count : before_count, begin = e->count;
    if (node->child) lay_out(e, node->child, first, first_count);
    size_t end = e->count;
    struct sim_exec_node *n = append(e);
    n->op = node->op;
    n->source = node;
    n->source_id = sim_node_id(o->graph->id, node->place);
    n->is_work = node->type <= SIM_NODE_RECORD && node->type != SIM_NODE_GRAPH && node->type != SIM_NODE_EMPTY;
    n->is_disabled = node->is_disabled;
    need_all(n, first, first_count);
    for (size_t k = begin; k < end; k++) need(n, k);
    o->placed[i] = end;
    o->is_placed[i] = true;
    free(needs);
}

/* Most graphs are in a right order already: one pass. False: a cycle. */
static bool lay_out(struct sim_exec *e, const struct sim_graph *graph, const size_t *before, size_t before_count)
{
    size_t count = graph->nodes.count, done = 0;
    struct order o = {graph, calloc(count + 1, sizeof *o.placed), calloc(count + 1, sizeof *o.is_placed)};
    if (o.placed == NULL || o.is_placed == NULL) abort();
    for (bool is_going = true; is_going;) {
        is_going = false;
        for (size_t i = 0; i < count; i++) {
            if (o.is_placed[i] || !is_free(&o, i)) continue;
            place(e, &o, i, before, before_count);
            done++;
            is_going = true;
        }
    }
    free(o.placed);
    free(o.is_placed);
    return done == count;
}

int sim_exec_create(struct sim_exec **out, const struct sim_graph *graph, uint64_t flags)
{
    struct sim_exec *e = calloc(1, sizeof *e);
    if (e == NULL) return SIM_OUT_OF_MEMORY;
    *e = (struct sim_exec){.magic = SIM_MAGIC_EXEC, .id = sim_graph_next_id(), .source_id = graph->id, .flags = flags};
    if (!lay_out(e, graph, NULL, 0)) {
        sim_exec_destroy(e);
        return SIM_INVALID_VALUE;
    }
    sim_holds_copy(&e->holds, &graph->holds);
    *out = e;
    return SIM_OK;
}

void sim_exec_destroy(struct sim_exec *exec)
{
    exec->magic = 0;
    for (size_t i = 0; i < exec->count; i++) free(exec->nodes[i].needs);
    free(exec->nodes);
    sim_holds_clear(&exec->holds);
    exec->nodes = NULL;
    exec->count = exec->room = 0; /* the struct stays, so that a dead handle is told from a live one */
}

struct sim_exec_node *sim_exec_node_of(struct sim_exec *exec, const struct sim_node *source)
{
    uint64_t id = sim_node_id(source->graph->id, source->place);
    for (size_t i = 0; i < exec->count; i++)
        if (exec->nodes[i].source_id == id) return &exec->nodes[i];
    return NULL;
}

/* The new graph must have the same nodes in the same places; what they do may differ. */
int sim_exec_update(struct sim_exec *exec, const struct sim_graph *graph)
{
    struct sim_exec fresh = {.id = exec->id};
    bool is_same = lay_out(&fresh, graph, NULL, 0) && fresh.count == exec->count;
    for (size_t i = 0; is_same && i < fresh.count; i++) {
        const struct sim_exec_node *a = &fresh.nodes[i], *b = &exec->nodes[i];
        is_same = a->is_work == b->is_work && a->op.work.kind == b->op.work.kind && a->need_count == b->need_count &&
                  (a->need_count == 0 || memcmp(a->needs, b->needs, a->need_count * sizeof *a->needs) == 0);
    }
    for (size_t i = 0; is_same && i < fresh.count; i++) exec->nodes[i].op = fresh.nodes[i].op;
    for (size_t i = 0; i < fresh.count; i++) free(fresh.nodes[i].needs);
    free(fresh.nodes);
    return is_same ? SIM_OK : SIM_EXEC_UPDATE_FAILED;
}

/* --- launching --- */
static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static size_t last_work(const struct sim_exec *e)
{
    for (size_t i = e->count; i > 0; i--)
        if (e->nodes[i - 1].is_work && !e->nodes[i - 1].is_disabled) return i - 1;
    return e->count;
}

static void run_node(struct sim_exec *e, size_t i, struct sim_stream *stream, uint64_t base_ns, bool is_last)
{
    struct sim_exec_node *n = &e->nodes[i];
    uint64_t ready = base_ns;
    for (size_t k = 0; k < n->need_count; k++) ready = later(ready, e->nodes[n->needs[k]].end_ns);
    n->end_ns = ready;
    if (!n->is_work || n->is_disabled) return;
    struct sim_op op = n->op;
    op.work.graph = e->id;
    op.work.graph_node = sim_node_id(e->id, (uint32_t)i + 1);
    op.work.source_graph = e->source_id;
    op.work.source_graph_node = n->source_id;
    op.work.graph_launch = e->launches;
    op.work.is_graph_last = is_last;
    n->end_ns = sim_enqueue_now(stream, &op, ready);
}

int sim_exec_launch(struct sim_exec *exec, struct sim_stream *stream)
{
    int error = sim_context_error(stream->context);
    if (error) return error;
    if (stream->capture) return SIM_NOT_SUPPORTED; /* a launch inside a capture is not modelled */
    sim_lock();
    uint64_t base = later(sim_stream_ready_ns(stream), exec->busy_until);
    sim_unlock();
    base = later(base, sim_now() + sim_settings()->latency_ns);
    uint64_t end = base;
    exec->launches++;
    size_t last = last_work(exec);
    for (size_t i = 0; i < exec->count; i++) {
        run_node(exec, i, stream, base, i == last);
        end = later(end, exec->nodes[i].end_ns);
    }
    sim_lock();
    exec->busy_until = end;
    stream->busy_until = later(stream->busy_until, end);
    sim_unlock();
    return SIM_OK;
}

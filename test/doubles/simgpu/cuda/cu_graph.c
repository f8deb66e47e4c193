// SPDX-License-Identifier: Apache-2.0
/* cu_graph.c - graphs as a whole: made, copied, looked into, made executable, launched; what they keep alive */
#include <stdio.h>
#include <string.h>

#include "test/doubles/simgpu/core/graph.h"
#include "test/doubles/simgpu/cuda/cu.h"

CU_API cuGraphCreate(struct sim_graph **graph, unsigned flags)
{
    CU_CALL(cuGraphCreate, graph, flags);
    *graph = sim_graph_create();
    return DONE(*graph ? SIM_OK : SIM_OUT_OF_MEMORY);
}

CU_API cuGraphClone(struct sim_graph **copy, struct sim_graph *graph)
{
    CU_CALL(cuGraphClone, copy, graph);
    CU_NEEDS(sim_graph_is(graph), SIM_INVALID_VALUE);
    *copy = sim_graph_clone(graph);
    return DONE(*copy ? SIM_OK : SIM_OUT_OF_MEMORY);
}

CU_API cuGraphDestroy(struct sim_graph *graph)
{
    CU_CALL(cuGraphDestroy, graph);
    CU_NEEDS(sim_graph_is(graph), SIM_INVALID_VALUE);
    sim_graph_destroy(graph);
    return DONE(SIM_OK);
}

CU_API cuGraphDestroyNode(struct sim_node *node)
{
    CU_CALL(cuGraphDestroyNode, node);
    CU_NEEDS(sim_node_is(node), SIM_INVALID_VALUE);
    sim_node_destroy(node);
    return DONE(SIM_OK);
}

/* --- looking in: a NULL array asks for the count; a longer array than needed is filled up with NULL --- */
static int give(struct sim_node *const *all, size_t count, struct sim_node **out, size_t *out_count)
{
    if (out == NULL) {
        *out_count = count;
        return SIM_OK;
    }
    for (size_t i = 0; i < *out_count; i++) out[i] = i < count ? all[i] : NULL;
    if (*out_count > count) *out_count = count;
    return SIM_OK;
}

CU_API cuGraphGetNodes(struct sim_graph *graph, struct sim_node **nodes, size_t *count)
{
    CU_CALL(cuGraphGetNodes, graph, nodes, count);
    CU_NEEDS(sim_graph_is(graph) && count, SIM_INVALID_VALUE);
    return DONE(give(graph->nodes.at, graph->nodes.count, nodes, count));
}

CU_API cuGraphGetRootNodes(struct sim_graph *graph, struct sim_node **nodes, size_t *count)
{
    CU_CALL(cuGraphGetRootNodes, graph, nodes, count);
    CU_NEEDS(sim_graph_is(graph) && count, SIM_INVALID_VALUE);
    struct sim_nodes roots = {0};
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.at[i]->needs.count == 0) sim_nodes_add(&roots, graph->nodes.at[i]);
    int error = give(roots.at, roots.count, nodes, count);
    sim_nodes_clear(&roots);
    return DONE(error);
}

static int dependents(const struct sim_node *node, struct sim_node **nodes, size_t *count)
{
    struct sim_nodes found = {0};
    for (size_t i = 0; i < node->graph->nodes.count; i++)
        if (sim_nodes_has(&node->graph->nodes.at[i]->needs, node)) sim_nodes_add(&found, node->graph->nodes.at[i]);
    int error = give(found.at, found.count, nodes, count);
    sim_nodes_clear(&found);
    return error;
}

CU_API cuGraphNodeGetDependencies(struct sim_node *node, struct sim_node **nodes, size_t *count)
{
    CU_CALL(cuGraphNodeGetDependencies, node, nodes, count);
    CU_NEEDS(sim_node_is(node) && count, SIM_INVALID_VALUE);
    return DONE(give(node->needs.at, node->needs.count, nodes, count));
}

enum { EDGE_BYTES = 8 }; /* what an edge says of itself: all zero here */

CU_API cuGraphNodeGetDependencies_v2(struct sim_node *node, struct sim_node **nodes, void *edges, size_t *count)
{
    CU_CALL(cuGraphNodeGetDependencies_v2, node, nodes, edges, count);
    CU_NEEDS(sim_node_is(node) && count, SIM_INVALID_VALUE);
    int error = give(node->needs.at, node->needs.count, nodes, count);
    if (edges && nodes) memset(edges, 0, *count * EDGE_BYTES);
    return DONE(error);
}

CU_API cuGraphNodeGetDependentNodes(struct sim_node *node, struct sim_node **nodes, size_t *count)
{
    CU_CALL(cuGraphNodeGetDependentNodes, node, nodes, count);
    CU_NEEDS(sim_node_is(node) && count, SIM_INVALID_VALUE);
    return DONE(dependents(node, nodes, count));
}

CU_API cuGraphNodeGetDependentNodes_v2(struct sim_node *node, struct sim_node **nodes, void *edges, size_t *count)
{
    CU_CALL(cuGraphNodeGetDependentNodes_v2, node, nodes, edges, count);
    CU_NEEDS(sim_node_is(node) && count, SIM_INVALID_VALUE);
    int error = dependents(node, nodes, count);
    if (edges && nodes) memset(edges, 0, *count * EDGE_BYTES);
    return DONE(error);
}

static int edges_of(struct sim_graph *graph, struct sim_node **from, struct sim_node **to, void *edges, size_t *count)
{
    size_t n = 0;
    if (!sim_graph_is(graph) || count == NULL) return SIM_INVALID_VALUE;
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (size_t k = 0; k < graph->nodes.at[i]->needs.count; k++, n++) {
            if (from == NULL || to == NULL || n >= *count) continue;
            from[n] = graph->nodes.at[i]->needs.at[k];
            to[n] = graph->nodes.at[i];
            if (edges) memset((char *)edges + n * EDGE_BYTES, 0, EDGE_BYTES);
        }
    if (from == NULL || to == NULL || n < *count) *count = n;
    return SIM_OK;
}

CU_API cuGraphGetEdges(struct sim_graph *graph, struct sim_node **from, struct sim_node **to, size_t *count)
{
    CU_CALL(cuGraphGetEdges, graph, from, to, count);
    return DONE(edges_of(graph, from, to, NULL, count));
}

CU_API cuGraphGetEdges_v2(struct sim_graph *graph, struct sim_node **from, struct sim_node **to, void *edges,
                          size_t *count)
{
    CU_CALL(cuGraphGetEdges_v2, graph, from, to, edges, count);
    return DONE(edges_of(graph, from, to, edges, count));
}

CU_API cuGraphNodeGetType(struct sim_node *node, int *type)
{
    CU_CALL(cuGraphNodeGetType, node, type);
    CU_NEEDS(sim_node_is(node), SIM_INVALID_VALUE);
    *type = (int)node->type;
    return DONE(SIM_OK);
}

CU_API cuGraphDebugDotPrint(struct sim_graph *graph, const char *path, unsigned flags)
{
    CU_CALL(cuGraphDebugDotPrint, graph, path, flags);
    CU_NEEDS(sim_graph_is(graph), SIM_INVALID_VALUE);
    FILE *f = fopen(path, "w");
    CU_NEEDS(f, 304); /* operating system */
    fprintf(f, "digraph graph_%u {\n", graph->id);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct sim_node *n = graph->nodes.at[i];
        fprintf(f, "  n%u [label=\"%s\"];\n", n->place, n->op.work.name ? n->op.work.name : "");
        for (size_t k = 0; k < n->needs.count; k++) fprintf(f, "  n%u -> n%u;\n", n->needs.at[k]->place, n->place);
    }
    fprintf(f, "}\n");
    fclose(f);
    return DONE(SIM_OK);
}

/* --- executable --- */
static int instantiate(struct sim_exec **exec, const struct sim_graph *graph, uint64_t flags)
{
    return exec && sim_graph_is(graph) ? sim_exec_create(exec, graph, flags) : SIM_INVALID_VALUE;
}

CU_API cuGraphInstantiate_v2(struct sim_exec **exec, struct sim_graph *graph, struct sim_node **error_node, char *log,
                             size_t log_bytes)
{
    CU_CALL(cuGraphInstantiate_v2, exec, graph, error_node, log, log_bytes);
    return DONE(instantiate(exec, graph, 0));
}

CU_API cuGraphInstantiateWithFlags(struct sim_exec **exec, struct sim_graph *graph, unsigned long long flags)
{
    CU_CALL(cuGraphInstantiateWithFlags, exec, graph, flags);
    return DONE(instantiate(exec, graph, flags));
}

struct instantiate_params {
    uint64_t flags;
    void *upload_stream;
    struct sim_node *error_node;
    int result;
};

CU_API cuGraphInstantiateWithParams(struct sim_exec **exec, struct sim_graph *graph, struct instantiate_params *params)
{
    CU_CALL(cuGraphInstantiateWithParams, exec, graph, params);
    CU_NEEDS(params, SIM_INVALID_VALUE);
    int error = instantiate(exec, graph, params->flags);
    params->error_node = NULL;
    params->result = error != SIM_OK;
    return DONE(error);
}

CU_API cuGraphExecDestroy(struct sim_exec *exec)
{
    CU_CALL(cuGraphExecDestroy, exec);
    CU_NEEDS(sim_exec_is(exec), SIM_INVALID_VALUE);
    sim_exec_destroy(exec);
    return DONE(SIM_OK);
}

CU_API cuGraphExecGetFlags(struct sim_exec *exec, uint64_t *flags)
{
    CU_CALL(cuGraphExecGetFlags, exec, flags);
    CU_NEEDS(sim_exec_is(exec), SIM_INVALID_VALUE);
    *flags = exec->flags;
    return DONE(SIM_OK);
}

CU_API cuGraphUpload(struct sim_exec *exec, struct sim_stream *stream)
{
    CU_CALL(cuGraphUpload, exec, stream);
    CU_NEEDS(sim_exec_is(exec) && sim_stream_of(stream), SIM_INVALID_HANDLE);
    return DONE(SIM_OK);
}

CU_API cuGraphLaunch(struct sim_exec *exec, struct sim_stream *stream)
{
    CU_CALL(cuGraphLaunch, exec, stream);
    CU_STREAM(s, stream);
    CU_NEEDS(sim_exec_is(exec), SIM_INVALID_HANDLE);
    return DONE(sim_exec_launch(exec, s));
}

struct update_result {
    int result;
    struct sim_node *error_node, *error_from_node;
};

CU_API cuGraphExecUpdate_v2(struct sim_exec *exec, struct sim_graph *graph, struct update_result *result)
{
    CU_CALL(cuGraphExecUpdate_v2, exec, graph, result);
    CU_NEEDS(sim_exec_is(exec) && sim_graph_is(graph), SIM_INVALID_VALUE);
    int error = sim_exec_update(exec, graph);
    if (result) *result = (struct update_result){.result = error ? 2 : 0}; /* 2: the topology changed */
    return DONE(error);
}

CU_API cuGraphExecUpdate(struct sim_exec *exec, struct sim_graph *graph, struct sim_node **error_node, int *result)
{
    CU_CALL(cuGraphExecUpdate, exec, graph, error_node, result);
    CU_NEEDS(sim_exec_is(exec) && sim_graph_is(graph), SIM_INVALID_VALUE);
    int error = sim_exec_update(exec, graph);
    if (error_node) *error_node = NULL;
    if (result) *result = error ? 2 : 0;
    return DONE(error);
}

/* --- what graphs keep alive --- */
CU_API cuUserObjectCreate(struct sim_object **object, void *thing, void (*destroy)(void *), unsigned references,
                          unsigned flags)
{
    CU_CALL(cuUserObjectCreate, object, thing, destroy, references, flags);
    CU_NEEDS(object && destroy && references, SIM_INVALID_VALUE);
    *object = sim_object_create(thing, destroy, references);
    return DONE(*object ? SIM_OK : SIM_OUT_OF_MEMORY);
}

CU_API cuUserObjectRetain(struct sim_object *object, unsigned count)
{
    CU_CALL(cuUserObjectRetain, object, count);
    CU_NEEDS(sim_object_is(object), SIM_INVALID_VALUE);
    sim_object_retain(object, count);
    return DONE(SIM_OK);
}

CU_API cuUserObjectRelease(struct sim_object *object, unsigned count)
{
    CU_CALL(cuUserObjectRelease, object, count);
    CU_NEEDS(sim_object_is(object), SIM_INVALID_VALUE);
    sim_object_release(object, count);
    return DONE(SIM_OK);
}

enum { MOVE = 1 }; /* the caller's references go over to the graph */

CU_API cuGraphRetainUserObject(struct sim_graph *graph, struct sim_object *object, unsigned count, unsigned flags)
{
    CU_CALL(cuGraphRetainUserObject, graph, object, count, flags);
    CU_NEEDS(sim_graph_is(graph) && sim_object_is(object), SIM_INVALID_VALUE);
    if (!(flags & MOVE)) sim_object_retain(object, count);
    sim_holds_add(&graph->holds, object, count);
    return DONE(SIM_OK);
}

CU_API cuGraphReleaseUserObject(struct sim_graph *graph, struct sim_object *object, unsigned count)
{
    CU_CALL(cuGraphReleaseUserObject, graph, object, count);
    CU_NEEDS(sim_graph_is(graph) && sim_object_is(object) && sim_holds_remove(&graph->holds, object, count),
             SIM_INVALID_VALUE);
    sim_object_release(object, count);
    return DONE(SIM_OK);
}

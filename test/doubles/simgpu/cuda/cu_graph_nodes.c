// SPDX-License-Identifier: Apache-2.0
/* cu_graph_nodes.c - nodes that the program adds to a graph itself, and what it reads and changes of them */
#include <string.h>

#include "test/doubles/simgpu/core/graph.h"
#include "test/doubles/simgpu/cuda/cu.h"

static int add(struct sim_node **out, struct sim_graph *graph, enum sim_node_type type, const struct sim_op *op,
               struct sim_node *const *needs, size_t count)
{
    if (out == NULL || !sim_graph_is(graph)) return SIM_INVALID_VALUE;
    *out = sim_node_create(graph, type, op, needs, count);
    return *out ? SIM_OK : SIM_INVALID_VALUE;
}

/* --- kernels; the second form of the parameters goes on with a CUkernel and a context --- */
struct kernel_params {
    struct sim_kernel *function;
    unsigned grid[3], block[3], dynamic_smem;
    void **arguments, **extra;
};
struct kernel_params_v2 {
    struct kernel_params first;
    struct sim_kernel *kernel;
    void *context;
};

static int kernel_op(struct sim_op *op, const struct kernel_params *p, const struct sim_kernel *k)
{
    if (k == NULL || k->magic != SIM_MAGIC_KERNEL) return SIM_INVALID_HANDLE;
    *op = (struct sim_op){.work = {.kind = SIMGPU_KERNEL,
                                   .name = k->name,
                                   .dynamic_smem = p->dynamic_smem,
                                   .static_smem = k->static_smem,
                                   .registers = k->registers,
                                   .local_per_thread = k->local_bytes,
                                   .is_async = 1}};
    memcpy(op->work.grid, p->grid, sizeof p->grid);
    memcpy(op->work.block, p->block, sizeof p->block);
    return SIM_OK;
}

static int add_kernel(struct sim_node **out, struct sim_graph *graph, struct sim_node *const *needs, size_t count,
                      const struct kernel_params *p, const struct sim_kernel *k)
{
    struct sim_op op;
    int error = p ? kernel_op(&op, p, k) : SIM_INVALID_VALUE;
    return error ? error : add(out, graph, SIM_NODE_KERNEL, &op, needs, count);
}

CU_API cuGraphAddKernelNode(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs,
                            size_t count, const struct kernel_params *params)
{
    CU_CALL(cuGraphAddKernelNode, node, graph, needs, count, params);
    return DONE(add_kernel(node, graph, needs, count, params, params ? params->function : NULL));
}

static const struct sim_kernel *kernel_of(const struct kernel_params_v2 *p)
{
    return p == NULL ? NULL : p->first.function ? p->first.function : p->kernel;
}

CU_API cuGraphAddKernelNode_v2(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs,
                               size_t count, const struct kernel_params_v2 *params)
{
    CU_CALL(cuGraphAddKernelNode_v2, node, graph, needs, count, params);
    return DONE(add_kernel(node, graph, needs, count, params ? &params->first : NULL, kernel_of(params)));
}

CU_API cuGraphKernelNodeGetParams_v2(struct sim_node *node, struct kernel_params_v2 *params)
{
    CU_CALL(cuGraphKernelNodeGetParams_v2, node, params);
    CU_NEEDS(sim_node_is(node) && node->type == SIM_NODE_KERNEL, SIM_INVALID_VALUE);
    memset(params, 0, sizeof *params);
    params->first.function = sim_kernel_of(node->op.work.name);
    memcpy(params->first.grid, node->op.work.grid, sizeof params->first.grid);
    memcpy(params->first.block, node->op.work.block, sizeof params->first.block);
    params->first.dynamic_smem = node->op.work.dynamic_smem;
    return DONE(SIM_OK);
}

CU_API cuGraphKernelNodeSetParams_v2(struct sim_node *node, const struct kernel_params_v2 *params)
{
    CU_CALL(cuGraphKernelNodeSetParams_v2, node, params);
    CU_NEEDS(sim_node_is(node) && node->type == SIM_NODE_KERNEL && params, SIM_INVALID_VALUE);
    return DONE(kernel_op(&node->op, &params->first, kernel_of(params)));
}

CU_API cuGraphExecKernelNodeSetParams_v2(struct sim_exec *exec, struct sim_node *node,
                                         const struct kernel_params_v2 *params)
{
    CU_CALL(cuGraphExecKernelNodeSetParams_v2, exec, node, params);
    CU_NEEDS(sim_exec_is(exec) && sim_node_is(node) && params, SIM_INVALID_VALUE);
    struct sim_exec_node *n = sim_exec_node_of(exec, node);
    CU_NEEDS(n && n->op.work.kind == SIMGPU_KERNEL, SIM_INVALID_VALUE);
    return DONE(kernel_op(&n->op, &params->first, kernel_of(params)));
}

/* --- copies: the driver describes them as boxes --- */
enum { TYPE_HOST = 1, TYPE_ARRAY = 3 };
struct box_side {
    size_t x, y, z, level;
    unsigned type;
    unsigned char *host, *device;
    void *array, *reserved;
    size_t pitch, height;
};
struct box {
    struct box_side src, dst;
    size_t width, height, depth;
};

static unsigned char *side_at(const struct box_side *s)
{
    unsigned char *base = s->type == TYPE_HOST ? s->host : s->device;
    return base + s->x + s->y * s->pitch + s->z * s->pitch * s->height;
}

static int copy_op(struct sim_op *op, const struct box *b)
{
    if (b == NULL) return SIM_INVALID_VALUE;
    if (b->src.type == TYPE_ARRAY || b->dst.type == TYPE_ARRAY) return SIM_NOT_SUPPORTED;
    *op = (struct sim_op){.work = {.kind = SIMGPU_MEMCPY, .bytes = b->width * b->height * b->depth, .is_async = 1},
                          .data = {.dst = side_at(&b->dst),
                                   .src = side_at(&b->src),
                                   .width = b->width,
                                   .height = b->height,
                                   .dst_pitch = b->dst.pitch,
                                   .src_pitch = b->src.pitch,
                                   .depth = b->depth,
                                   .dst_slice = b->dst.pitch * b->dst.height,
                                   .src_slice = b->src.pitch * b->src.height}};
    op->work.copy_kind = sim_copy_kind(op->data.dst, op->data.src, &op->work.dst_kind, &op->work.src_kind);
    return SIM_OK;
}

static int run_box(const struct box *b, void *stream, bool is_async)
{
    struct sim_stream *s = sim_stream_of(stream);
    struct sim_op op;
    int error = copy_op(&op, b);
    if (s == NULL) return SIM_INVALID_HANDLE;
    if (error) return error;
    op.work.is_async = is_async;
    error = sim_enqueue(s, &op);
    if (error || is_async || s->capture) return error;
    sim_sleep_until(op.work.end_ns);
    return sim_context_error(s->context);
}

CU_API cuMemcpy3D_v2(const struct box *box)
{
    CU_CALL(cuMemcpy3D_v2, box);
    return DONE(run_box(box, NULL, false));
}

CU_API cuMemcpy3DAsync_v2(const struct box *box, void *stream)
{
    CU_CALL(cuMemcpy3DAsync_v2, box, stream);
    return DONE(run_box(box, stream, true));
}

CU_API cuGraphAddMemcpyNode(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs,
                            size_t count, const struct box *params, void *context)
{
    CU_CALL(cuGraphAddMemcpyNode, node, graph, needs, count, params, context);
    struct sim_op op;
    int error = copy_op(&op, params);
    return DONE(error ? error : add(node, graph, SIM_NODE_MEMCPY, &op, needs, count));
}

struct fill_params {
    void *dst;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height;
};

CU_API cuGraphAddMemsetNode(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs,
                            size_t count, const struct fill_params *params, void *context)
{
    CU_CALL(cuGraphAddMemsetNode, node, graph, needs, count, params, context);
    CU_NEEDS(params, SIM_INVALID_VALUE);
    struct sim_op op = {.work = {.kind = SIMGPU_MEMSET,
                                 .bytes = params->width * params->height * params->element_bytes,
                                 .value = params->value,
                                 .dst_kind = SIM_DEVICE_MEMORY,
                                 .is_async = 1},
                        .data = {.dst = params->dst,
                                 .width = params->width * params->element_bytes,
                                 .height = params->height,
                                 .dst_pitch = params->pitch,
                                 .value = params->value,
                                 .value_bytes = params->element_bytes}};
    return DONE(add(node, graph, SIM_NODE_MEMSET, &op, needs, count));
}

/* --- the rest --- */
struct host_params {
    void (*fn)(void *);
    void *arg;
};

CU_API cuGraphAddHostNode(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs, size_t count,
                          const struct host_params *params)
{
    CU_CALL(cuGraphAddHostNode, node, graph, needs, count, params);
    CU_NEEDS(params && params->fn, SIM_INVALID_VALUE);
    struct sim_op op = {.work = {.kind = SIMGPU_HOST_FUNCTION}, .host_fn = params->fn, .host_arg = params->arg};
    return DONE(add(node, graph, SIM_NODE_HOST, &op, needs, count));
}

CU_API cuGraphAddEmptyNode(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs, size_t count)
{
    CU_CALL(cuGraphAddEmptyNode, node, graph, needs, count);
    return DONE(add(node, graph, SIM_NODE_EMPTY, NULL, needs, count));
}

CU_API cuGraphAddChildGraphNode(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs,
                                size_t count, struct sim_graph *child)
{
    CU_CALL(cuGraphAddChildGraphNode, node, graph, needs, count, child);
    CU_NEEDS(sim_graph_is(child), SIM_INVALID_VALUE);
    int error = add(node, graph, SIM_NODE_GRAPH, NULL, needs, count);
    if (error == 0) (*node)->child = sim_graph_clone(child);
    return DONE(error);
}

static int add_event(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs, size_t count,
                     struct sim_event *event, enum simgpu_kind kind)
{
    if (!sim_event_is(event)) return SIM_INVALID_HANDLE;
    struct sim_op op = {.work = {.kind = kind, .event = event->id}, .event = event, .is_external = true};
    return add(node, graph, sim_node_type_of(&op), &op, needs, count);
}

CU_API cuGraphAddEventRecordNode(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs,
                                 size_t count, struct sim_event *event)
{
    CU_CALL(cuGraphAddEventRecordNode, node, graph, needs, count, event);
    return DONE(add_event(node, graph, needs, count, event, SIMGPU_EVENT_RECORD));
}

CU_API cuGraphAddEventWaitNode(struct sim_node **node, struct sim_graph *graph, struct sim_node *const *needs,
                               size_t count, struct sim_event *event)
{
    CU_CALL(cuGraphAddEventWaitNode, node, graph, needs, count, event);
    return DONE(add_event(node, graph, needs, count, event, SIMGPU_EVENT_WAIT));
}

static int add_needs(struct sim_graph *graph, struct sim_node *const *from, struct sim_node *const *to, size_t count)
{
    if (!sim_graph_is(graph)) return SIM_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!sim_node_is(from[i]) || !sim_node_is(to[i]) || from[i]->graph != graph || to[i]->graph != graph)
            return SIM_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) sim_nodes_add(&to[i]->needs, from[i]);
    return SIM_OK;
}

CU_API cuGraphAddDependencies(struct sim_graph *graph, struct sim_node *const *from, struct sim_node *const *to,
                              size_t count)
{
    CU_CALL(cuGraphAddDependencies, graph, from, to, count);
    return DONE(add_needs(graph, from, to, count));
}

CU_API cuGraphAddDependencies_v2(struct sim_graph *graph, struct sim_node *const *from, struct sim_node *const *to,
                                 const void *edges, size_t count)
{
    CU_CALL(cuGraphAddDependencies_v2, graph, from, to, edges, count);
    return DONE(add_needs(graph, from, to, count));
}

CU_API cuGraphNodeSetEnabled(struct sim_exec *exec, struct sim_node *node, unsigned is_enabled)
{
    CU_CALL(cuGraphNodeSetEnabled, exec, node, is_enabled);
    CU_NEEDS(sim_exec_is(exec) && sim_node_is(node), SIM_INVALID_VALUE);
    struct sim_exec_node *n = sim_exec_node_of(exec, node);
    CU_NEEDS(n, SIM_INVALID_VALUE);
    n->is_disabled = !is_enabled;
    return DONE(SIM_OK);
}

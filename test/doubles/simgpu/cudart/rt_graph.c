// SPDX-License-Identifier: Apache-2.0
/* rt_graph.c - graphs of the runtime's API: made, looked into, made executable, launched */
#include "test/doubles/simgpu/cudart/rt.h"

RT_API cudaGraphCreate(void **graph, unsigned flags)
{
    RT_CALL(cudaGraphCreate, RT_CONTEXT, graph, flags);
    return DONE(drv.cuGraphCreate(graph, flags));
}

RT_API cudaGraphClone(void **copy, void *graph)
{
    RT_CALL(cudaGraphClone, RT_CONTEXT, copy, graph);
    return DONE(drv.cuGraphClone(copy, graph));
}

RT_API cudaGraphDestroy(void *graph)
{
    RT_CALL(cudaGraphDestroy, RT_CONTEXT, graph);
    return DONE(drv.cuGraphDestroy(graph));
}

RT_API cudaGraphDestroyNode(void *node)
{
    RT_CALL(cudaGraphDestroyNode, RT_CONTEXT, node);
    return DONE(drv.cuGraphDestroyNode(node));
}

RT_API cudaGraphGetNodes(void *graph, void **nodes, size_t *count)
{
    RT_CALL(cudaGraphGetNodes, RT_CONTEXT, graph, nodes, count);
    return DONE(drv.cuGraphGetNodes(graph, nodes, count));
}

RT_API cudaGraphGetRootNodes(void *graph, void **nodes, size_t *count)
{
    RT_CALL(cudaGraphGetRootNodes, RT_CONTEXT, graph, nodes, count);
    return DONE(drv.cuGraphGetRootNodes(graph, nodes, count));
}

RT_API cudaGraphNodeGetType(void *node, int *type)
{
    RT_CALL(cudaGraphNodeGetType, RT_CONTEXT, node, type);
    return DONE(drv.cuGraphNodeGetType(node, type));
}

RT_API cudaGraphDebugDotPrint(void *graph, const char *path, unsigned flags)
{
    RT_CALL(cudaGraphDebugDotPrint, RT_CONTEXT, graph, path, flags);
    return DONE(drv.cuGraphDebugDotPrint(graph, path, flags));
}

/* --- forms that CUDA 13 renamed: what had a _v2 with data of edges took the plain name over --- */
#if SIM_CUDART >= 13
RT_API cudaGraphGetEdges(void *graph, void **from, void **to, void *edges, size_t *count)
{
    RT_CALL(cudaGraphGetEdges, RT_CONTEXT, graph, from, to, edges, count);
    return DONE(drv.cuGraphGetEdges_v2(graph, from, to, edges, count));
}

RT_API cudaGraphNodeGetDependencies(void *node, void **nodes, void *edges, size_t *count)
{
    RT_CALL(cudaGraphNodeGetDependencies, RT_CONTEXT, node, nodes, edges, count);
    return DONE(drv.cuGraphNodeGetDependencies_v2(node, nodes, edges, count));
}

RT_API cudaGraphNodeGetDependentNodes(void *node, void **nodes, void *edges, size_t *count)
{
    RT_CALL(cudaGraphNodeGetDependentNodes, RT_CONTEXT, node, nodes, edges, count);
    return DONE(drv.cuGraphNodeGetDependentNodes_v2(node, nodes, edges, count));
}

RT_API cudaGraphAddDependencies(void *graph, void *const *from, void *const *to, const void *edges, size_t count)
{
    RT_CALL(cudaGraphAddDependencies, RT_CONTEXT, graph, from, to, edges, count);
    return DONE(drv.cuGraphAddDependencies(graph, from, to, count));
}
#else
RT_API cudaGraphGetEdges(void *graph, void **from, void **to, size_t *count)
{
    RT_CALL(cudaGraphGetEdges_v10000, RT_CONTEXT, graph, from, to, count);
    return DONE(drv.cuGraphGetEdges(graph, from, to, count));
}

RT_API cudaGraphNodeGetDependencies(void *node, void **nodes, size_t *count)
{
    RT_CALL(cudaGraphNodeGetDependencies_v10000, RT_CONTEXT, node, nodes, count);
    return DONE(drv.cuGraphNodeGetDependencies(node, nodes, count));
}

RT_API cudaGraphNodeGetDependencies_v2(void *node, void **nodes, void *edges, size_t *count)
{
    RT_CALL(cudaGraphNodeGetDependencies, RT_CONTEXT, node, nodes, edges, count);
    return DONE(drv.cuGraphNodeGetDependencies_v2(node, nodes, edges, count));
}

RT_API cudaGraphNodeGetDependentNodes(void *node, void **nodes, size_t *count)
{
    RT_CALL(cudaGraphNodeGetDependentNodes_v10000, RT_CONTEXT, node, nodes, count);
    return DONE(drv.cuGraphNodeGetDependentNodes(node, nodes, count));
}

RT_API cudaGraphAddDependencies(void *graph, void *const *from, void *const *to, size_t count)
{
    RT_CALL(cudaGraphAddDependencies_v10000, RT_CONTEXT, graph, from, to, count);
    return DONE(drv.cuGraphAddDependencies(graph, from, to, count));
}
#endif

/* --- executable --- */
#if SIM_CUDART >= 12
RT_API cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags)
{
    RT_CALL(cudaGraphInstantiate, RT_CONTEXT, exec, graph, flags);
    return DONE(drv.cuGraphInstantiateWithFlags(exec, graph, flags));
}

RT_API cudaGraphExecUpdate(void *exec, void *graph, void *result)
{
    RT_CALL(cudaGraphExecUpdate, RT_CONTEXT, exec, graph, result);
    return DONE(drv.cuGraphExecUpdate_v2(exec, graph, result));
}
#else
RT_API cudaGraphInstantiate(void **exec, void *graph, void **error_node, char *log, size_t log_bytes)
{
    RT_CALL(cudaGraphInstantiate_v10000, RT_CONTEXT, exec, graph, error_node, log, log_bytes);
    return DONE(drv.cuGraphInstantiate_v2(exec, graph, error_node, log, log_bytes));
}

RT_API cudaGraphExecUpdate(void *exec, void *graph, void **error_node, int *result)
{
    RT_CALL(cudaGraphExecUpdate, RT_CONTEXT, exec, graph, error_node, result);
    return DONE(drv.cuGraphExecUpdate(exec, graph, error_node, result));
}
#endif

RT_API cudaGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
    RT_CALL(cudaGraphInstantiateWithFlags, RT_CONTEXT, exec, graph, flags);
    return DONE(drv.cuGraphInstantiateWithFlags(exec, graph, flags));
}

RT_API cudaGraphInstantiateWithParams(void **exec, void *graph, void *params)
{
    RT_CALL(cudaGraphInstantiateWithParams, RT_CONTEXT, exec, graph, params);
    return DONE(drv.cuGraphInstantiateWithParams(exec, graph, params));
}

RT_API cudaGraphExecDestroy(void *exec)
{
    RT_CALL(cudaGraphExecDestroy, RT_CONTEXT, exec);
    return DONE(drv.cuGraphExecDestroy(exec));
}

RT_API cudaGraphUpload(void *exec, void *stream)
{
    RT_CALL(cudaGraphUpload, RT_CONTEXT, exec, stream);
    return DONE(drv.cuGraphUpload(exec, stream));
}

RT_API cudaGraphLaunch(void *exec, void *stream)
{
    RT_CALL(cudaGraphLaunch, RT_CONTEXT, exec, stream);
    return DONE(drv.cuGraphLaunch(exec, stream));
}

/* --- nodes --- */
struct kernel_params { /* as the driver's, but the kernel is named by its host stub */
    const void *function;
    unsigned shape[7];
    void **arguments, **extra;
};
struct driver_kernel_params {
    struct kernel_params first;
    void *kernel, *context;
};

static int in_words_of_driver(struct driver_kernel_params *to, const struct kernel_params *from)
{
    *to = (struct driver_kernel_params){.first = *from};
    to->first.function = rt_kernel(from->function);
    return to->first.function ? RT_OK : RT_INVALID_FUNCTION;
}

RT_API cudaGraphAddKernelNode(void **node, void *graph, void *const *needs, size_t count,
                              const struct kernel_params *params)
{
    RT_CALL(cudaGraphAddKernelNode, RT_CONTEXT, node, graph, needs, count, params);
    struct driver_kernel_params p;
    int error = in_words_of_driver(&p, params);
    return DONE(error ? error : drv.cuGraphAddKernelNode_v2(node, graph, needs, count, &p));
}

RT_API cudaGraphExecKernelNodeSetParams(void *exec, void *node, const struct kernel_params *params)
{
    RT_CALL(cudaGraphExecKernelNodeSetParams, RT_CONTEXT, exec, node, params);
    struct driver_kernel_params p;
    int error = in_words_of_driver(&p, params);
    return DONE(error ? error : drv.cuGraphExecKernelNodeSetParams_v2(exec, node, &p));
}

RT_API cudaGraphAddMemsetNode(void **node, void *graph, void *const *needs, size_t count, const void *params)
{
    RT_CALL(cudaGraphAddMemsetNode, RT_CONTEXT, node, graph, needs, count, params);
    return DONE(drv.cuGraphAddMemsetNode(node, graph, needs, count, params, rt_core()->current_context()));
}

/* The driver's box; both sides as "unified" addresses. */
struct box_side {
    size_t x, y, z, level;
    unsigned type;
    const void *host, *device;
    void *array, *reserved;
    size_t pitch, height;
};
struct box {
    struct box_side src, dst;
    size_t width, height, depth;
};
enum { UNIFIED = 4 };

RT_API cudaGraphAddMemcpyNode1D(void **node, void *graph, void *const *needs, size_t count, void *dst, const void *src,
                                size_t bytes, int kind)
{
    RT_CALL(cudaGraphAddMemcpyNode1D, RT_CONTEXT, node, graph, needs, count, dst, src, bytes, kind);
    struct box box = {.src = {.type = UNIFIED, .device = src, .pitch = bytes, .height = 1},
                      .dst = {.type = UNIFIED, .device = dst, .pitch = bytes, .height = 1},
                      .width = bytes,
                      .height = 1,
                      .depth = 1};
    return DONE(drv.cuGraphAddMemcpyNode(node, graph, needs, count, &box, rt_core()->current_context()));
}

RT_API cudaGraphAddHostNode(void **node, void *graph, void *const *needs, size_t count, const void *params)
{
    RT_CALL(cudaGraphAddHostNode, RT_CONTEXT, node, graph, needs, count, params);
    return DONE(drv.cuGraphAddHostNode(node, graph, needs, count, params));
}

RT_API cudaGraphAddEmptyNode(void **node, void *graph, void *const *needs, size_t count)
{
    RT_CALL(cudaGraphAddEmptyNode, RT_CONTEXT, node, graph, needs, count);
    return DONE(drv.cuGraphAddEmptyNode(node, graph, needs, count));
}

RT_API cudaGraphAddChildGraphNode(void **node, void *graph, void *const *needs, size_t count, void *child)
{
    RT_CALL(cudaGraphAddChildGraphNode, RT_CONTEXT, node, graph, needs, count, child);
    return DONE(drv.cuGraphAddChildGraphNode(node, graph, needs, count, child));
}

RT_API cudaGraphAddEventRecordNode(void **node, void *graph, void *const *needs, size_t count, void *event)
{
    RT_CALL(cudaGraphAddEventRecordNode, RT_CONTEXT, node, graph, needs, count, event);
    return DONE(drv.cuGraphAddEventRecordNode(node, graph, needs, count, event));
}

RT_API cudaGraphAddEventWaitNode(void **node, void *graph, void *const *needs, size_t count, void *event)
{
    RT_CALL(cudaGraphAddEventWaitNode, RT_CONTEXT, node, graph, needs, count, event);
    return DONE(drv.cuGraphAddEventWaitNode(node, graph, needs, count, event));
}

/* --- things that graphs keep alive --- */
RT_API cudaUserObjectCreate(void **object, void *thing, void (*destroy)(void *), unsigned references, unsigned flags)
{
    RT_CALL(cudaUserObjectCreate, RT_CONTEXT, object, thing, destroy, references, flags);
    return DONE(drv.cuUserObjectCreate(object, thing, destroy, references, flags));
}

RT_API cudaUserObjectRetain(void *object, unsigned count)
{
    RT_CALL(cudaUserObjectRetain, RT_CONTEXT, object, count);
    return DONE(drv.cuUserObjectRetain(object, count));
}

RT_API cudaUserObjectRelease(void *object, unsigned count)
{
    RT_CALL(cudaUserObjectRelease, RT_CONTEXT, object, count);
    return DONE(drv.cuUserObjectRelease(object, count));
}

RT_API cudaGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags)
{
    RT_CALL(cudaGraphRetainUserObject, RT_CONTEXT, graph, object, count, flags);
    return DONE(drv.cuGraphRetainUserObject(graph, object, count, flags));
}

RT_API cudaGraphReleaseUserObject(void *graph, void *object, unsigned count)
{
    RT_CALL(cudaGraphReleaseUserObject, RT_CONTEXT, graph, object, count);
    return DONE(drv.cuGraphReleaseUserObject(graph, object, count));
}

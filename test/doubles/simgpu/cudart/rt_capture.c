// SPDX-License-Identifier: Apache-2.0
/* rt_capture.c - capture of the runtime's API; forms changed their names with CUDA 13 */
#include "test/doubles/simgpu/cudart/rt.h"

RT_API cudaStreamIsCapturing(void *stream, int *status)
{
    RT_CALL(cudaStreamIsCapturing, RT_CONTEXT, stream, status);
    return DONE(drv.cuStreamIsCapturing(stream, status));
}

RT_API cudaStreamBeginCapture(void *stream, int mode)
{
    RT_CALL(cudaStreamBeginCapture, RT_CONTEXT, stream, mode);
    return DONE(drv.cuStreamBeginCapture_v2(stream, mode));
}

RT_API cudaStreamBeginCaptureToGraph(void *stream, void *graph, void *const *needs, const void *edges, size_t count,
                                     int mode)
{
    RT_CALL(cudaStreamBeginCaptureToGraph, RT_CONTEXT, stream, graph, needs, edges, count, mode);
    return DONE(drv.cuStreamBeginCaptureToGraph(stream, graph, needs, edges, count, mode));
}

RT_API cudaStreamEndCapture(void *stream, void **graph)
{
    RT_CALL(cudaStreamEndCapture, RT_CONTEXT, stream, graph);
    return DONE(drv.cuStreamEndCapture(stream, graph));
}

RT_API cudaThreadExchangeStreamCaptureMode(int *mode)
{
    RT_CALL(cudaThreadExchangeStreamCaptureMode, RT_NOTHING, mode);
    return DONE(drv.cuThreadExchangeStreamCaptureMode(mode));
}

#if SIM_CUDART >= 13
RT_API cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph, void ***nodes,
                                const void **edges, size_t *count)
{
    RT_CALL(cudaStreamGetCaptureInfo, RT_CONTEXT, stream, status, id, graph, nodes, edges, count);
    return DONE(drv.cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count));
}

RT_API cudaStreamUpdateCaptureDependencies(void *stream, void **needs, const void *edges, size_t count, unsigned flags)
{
    RT_CALL(cudaStreamUpdateCaptureDependencies, RT_CONTEXT, stream, needs, edges, count, flags);
    return DONE(drv.cuStreamUpdateCaptureDependencies_v2(stream, needs, edges, count, flags));
}
#else
RT_API cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id)
{
    RT_CALL(cudaStreamGetCaptureInfo_v10010, RT_CONTEXT, stream, status, id);
    return DONE(drv.cuStreamGetCaptureInfo(stream, status, id));
}

RT_API cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph, void ***nodes,
                                   size_t *count)
{
    RT_CALL(cudaStreamGetCaptureInfo_v2, RT_CONTEXT, stream, status, id, graph, nodes, count);
    return DONE(drv.cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count));
}

RT_API cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph, void ***nodes,
                                   const void **edges, size_t *count)
{
    RT_CALL(cudaStreamGetCaptureInfo, RT_CONTEXT, stream, status, id, graph, nodes, edges, count);
    return DONE(drv.cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count));
}

RT_API cudaStreamUpdateCaptureDependencies(void *stream, void **needs, size_t count, unsigned flags)
{
    RT_CALL(cudaStreamUpdateCaptureDependencies_v11030, RT_CONTEXT, stream, needs, count, flags);
    return DONE(drv.cuStreamUpdateCaptureDependencies(stream, needs, count, flags));
}

RT_API cudaStreamUpdateCaptureDependencies_v2(void *stream, void **needs, const void *edges, size_t count,
                                              unsigned flags)
{
    RT_CALL(cudaStreamUpdateCaptureDependencies, RT_CONTEXT, stream, needs, edges, count, flags);
    return DONE(drv.cuStreamUpdateCaptureDependencies_v2(stream, needs, edges, count, flags));
}
#endif

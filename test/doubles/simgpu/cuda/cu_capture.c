// SPDX-License-Identifier: Apache-2.0
/* cu_capture.c - capturing streams into graphs, in the forms the API had over the years */
#include "test/doubles/simgpu/core/graph.h"
#include "test/doubles/simgpu/cuda/cu.h"

static int status_of(const struct sim_stream *s) { return s->capture ? (int)s->capture->status : SIM_CAPTURE_NONE; }

CU_API cuStreamIsCapturing(struct sim_stream *stream, int *status)
{
    CU_CALL(cuStreamIsCapturing, stream, status);
    CU_STREAM(s, stream);
    *status = status_of(s);
    return DONE(SIM_OK);
}

static int capture_info(const struct sim_stream *s, int *status, unsigned long long *id, void **graph, void ***nodes,
                        size_t *count)
{
    *status = status_of(s);
    if (id) *id = s->capture ? s->capture->id : 0;
    if (s->capture == NULL) return SIM_OK;
    if (graph) *graph = s->capture->graph;
    if (nodes) *nodes = (void **)s->tail.at;
    if (count) *count = s->tail.count;
    return SIM_OK;
}

CU_API cuStreamGetCaptureInfo(struct sim_stream *stream, int *status, unsigned long long *id)
{
    CU_CALL(cuStreamGetCaptureInfo, stream, status, id);
    CU_STREAM(s, stream);
    return DONE(capture_info(s, status, id, NULL, NULL, NULL));
}

CU_API cuStreamGetCaptureInfo_v2(struct sim_stream *stream, int *status, unsigned long long *id, void **graph,
                                 void ***nodes, size_t *count)
{
    CU_CALL(cuStreamGetCaptureInfo_v2, stream, status, id, graph, nodes, count);
    CU_STREAM(s, stream);
    return DONE(capture_info(s, status, id, graph, nodes, count));
}

CU_API cuStreamGetCaptureInfo_v3(struct sim_stream *stream, int *status, unsigned long long *id, void **graph,
                                 void ***nodes, const void **edges, size_t *count)
{
    CU_CALL(cuStreamGetCaptureInfo_v3, stream, status, id, graph, nodes, edges, count);
    CU_STREAM(s, stream);
    if (edges) *edges = NULL; /* no edge has data of its own here */
    return DONE(capture_info(s, status, id, graph, nodes, count));
}

CU_API cuStreamBeginCapture_v2(struct sim_stream *stream, int mode)
{
    CU_CALL(cuStreamBeginCapture_v2, stream, mode);
    CU_STREAM(s, stream);
    CU_NEEDS(mode >= SIM_MODE_GLOBAL && mode <= SIM_MODE_RELAXED, SIM_INVALID_VALUE);
    return DONE(sim_capture_begin(s, NULL, (enum sim_capture_mode)mode));
}

CU_API cuStreamBeginCaptureToGraph(struct sim_stream *stream, struct sim_graph *graph, struct sim_node *const *needs,
                                   const void *edges, size_t count, int mode)
{
    CU_CALL(cuStreamBeginCaptureToGraph, stream, graph, needs, edges, count, mode);
    CU_STREAM(s, stream);
    CU_NEEDS(sim_graph_is(graph) && mode >= SIM_MODE_GLOBAL && mode <= SIM_MODE_RELAXED, SIM_INVALID_VALUE);
    int error = sim_capture_begin(s, graph, (enum sim_capture_mode)mode);
    for (size_t i = 0; error == 0 && i < count; i++) sim_nodes_add(&s->tail, needs[i]);
    return DONE(error);
}

CU_API cuStreamEndCapture(struct sim_stream *stream, struct sim_graph **graph)
{
    CU_CALL(cuStreamEndCapture, stream, graph);
    CU_STREAM(s, stream);
    return DONE(sim_capture_end(s, graph));
}

/* flags 0 adds to what the next node needs, 1 replaces it */
static int update(struct sim_stream *s, struct sim_node *const *needs, size_t count, unsigned flags)
{
    if (s->capture == NULL) return 401;
    if (flags > 1) return SIM_INVALID_VALUE;
    if (flags == 1) sim_nodes_clear(&s->tail);
    for (size_t i = 0; i < count; i++) sim_nodes_add(&s->tail, needs[i]);
    return SIM_OK;
}

CU_API cuStreamUpdateCaptureDependencies(struct sim_stream *stream, struct sim_node **needs, size_t count,
                                         unsigned flags)
{
    CU_CALL(cuStreamUpdateCaptureDependencies, stream, needs, count, flags);
    CU_STREAM(s, stream);
    return DONE(update(s, needs, count, flags));
}

CU_API cuStreamUpdateCaptureDependencies_v2(struct sim_stream *stream, struct sim_node **needs, const void *edges,
                                            size_t count, unsigned flags)
{
    CU_CALL(cuStreamUpdateCaptureDependencies_v2, stream, needs, edges, count, flags);
    CU_STREAM(s, stream);
    return DONE(update(s, needs, count, flags));
}

CU_API cuThreadExchangeStreamCaptureMode(int *mode)
{
    CU_CALL(cuThreadExchangeStreamCaptureMode, mode);
    CU_NEEDS(mode && *mode >= SIM_MODE_GLOBAL && *mode <= SIM_MODE_RELAXED, SIM_INVALID_VALUE);
    *mode = sim_capture_exchange_mode(*mode);
    return DONE(SIM_OK);
}

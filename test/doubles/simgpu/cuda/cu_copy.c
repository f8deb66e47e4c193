// SPDX-License-Identifier: Apache-2.0
/* cu_copy.c - copies and fills of the driver's API, in all their forms */
#include "test/doubles/simgpu/cuda/cu.h"

enum { HTOD = 1, DTOH = 2, DTOD = 8, PTOP = 10 };

/* What a form of the function says of both sides; 0: find out. */
struct copy {
    void *dst;
    const void *src;
    size_t width, height, dst_pitch, src_pitch;
    void *stream;
    bool is_async;
    int src_device, dst_device; /* -1: not between devices */
};

static void name_peers(struct simgpu_work *w, const struct copy *c)
{
    w->is_peer = true;
    w->copy_kind = PTOP;
    w->peer_src_device = (uint32_t)c->src_device;
    w->peer_dst_device = (uint32_t)c->dst_device;
    w->peer_src_context = sim_core_table.context_of(c->src_device);
    w->peer_dst_context = sim_core_table.context_of(c->dst_device);
}

static int copy(const struct copy *c)
{
    struct sim_stream *s = sim_stream_of(c->stream);
    if (s == NULL) return sim_context_current() ? SIM_INVALID_HANDLE : SIM_INVALID_CONTEXT;
    if (c->width == 0 || c->height == 0) return SIM_OK;
    if (c->dst == NULL || c->src == NULL) return SIM_INVALID_VALUE;
    struct sim_op op = {.work = {.kind = SIMGPU_MEMCPY, .bytes = c->width * c->height, .is_async = c->is_async},
                        .data = {c->dst, c->src, c->width, c->height, c->dst_pitch, c->src_pitch, 0, 0}};
    struct simgpu_work *w = &op.work;
    w->copy_kind = sim_copy_kind(c->dst, c->src, &w->dst_kind, &w->src_kind);
    if (c->src_device >= 0 && c->src_device != c->dst_device) name_peers(w, c);
    bool is_captured = s->capture != NULL;
    if (is_captured && !c->is_async) return SIM_CAPTURE_UNSUPPORTED;
    int error = sim_enqueue(s, &op);
    /* The host waits for its own memory: always to read it, and in the synchronous forms unless both ends are the
     * device's. */
    bool is_waiting = (!c->is_async && w->copy_kind != DTOD) || (w->copy_kind == DTOH && w->dst_kind == SIM_PAGEABLE);
    if (error || is_captured || !is_waiting) return error;
    sim_sleep_until(w->end_ns);
    return sim_context_error(s->context);
}

static int flat(void *dst, const void *src, size_t bytes, void *stream, bool is_async)
{
    struct copy c = {dst, src, bytes, 1, bytes, bytes, stream, is_async, -1, -1};
    return copy(&c);
}

#define COPY(fn, dst_type, src_type)                     \
    CU_API fn(dst_type dst, src_type src, size_t bytes)  \
    {                                                    \
        CU_CALL(fn, dst, src, bytes);                    \
        return DONE(flat(dst, src, bytes, NULL, false)); \
    }
#define COPY_ASYNC(fn, dst_type, src_type)                            \
    CU_API fn(dst_type dst, src_type src, size_t bytes, void *stream) \
    {                                                                 \
        CU_CALL(fn, dst, src, bytes, stream);                         \
        return DONE(flat(dst, src, bytes, stream, true));             \
    }
COPY(cuMemcpy, void *, const void *)
COPY(cuMemcpyHtoD_v2, void *, const void *)
COPY(cuMemcpyDtoH_v2, void *, const void *)
COPY(cuMemcpyDtoD_v2, void *, const void *)
COPY_ASYNC(cuMemcpyAsync, void *, const void *)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, void *, const void *)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, void *, const void *)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, void *, const void *)

static int peer(void *dst, struct sim_context *dst_context, const void *src, struct sim_context *src_context,
                size_t bytes, void *stream, bool is_async)
{
    if (!dst_context || !src_context) return SIM_INVALID_CONTEXT;
    struct copy c = {dst, src, bytes, 1, bytes, bytes, stream, is_async, src_context->device, dst_context->device};
    return copy(&c);
}

CU_API cuMemcpyPeer(void *dst, struct sim_context *dst_context, const void *src, struct sim_context *src_context,
                    size_t bytes)
{
    CU_CALL(cuMemcpyPeer, dst, dst_context, src, src_context, bytes);
    return DONE(peer(dst, dst_context, src, src_context, bytes, NULL, false));
}

CU_API cuMemcpyPeerAsync(void *dst, struct sim_context *dst_context, const void *src, struct sim_context *src_context,
                         size_t bytes, void *stream)
{
    CU_CALL(cuMemcpyPeerAsync, dst, dst_context, src, src_context, bytes, stream);
    return DONE(peer(dst, dst_context, src, src_context, bytes, stream, true));
}

/* --- rectangles --- */
enum { TYPE_HOST = 1, TYPE_ARRAY = 3 };
struct side {
    size_t x, y;
    unsigned type;
    void *host;
    void *device;
    void *array;
    size_t pitch;
};
struct rectangle {
    struct side src, dst;
    size_t width, height;
};

static int copy_rectangle(const struct rectangle *r, void *stream, bool is_async)
{
    if (r == NULL) return SIM_INVALID_VALUE;
    if (r->src.type == TYPE_ARRAY || r->dst.type == TYPE_ARRAY) return SIM_NOT_SUPPORTED;
    size_t dst_pitch = r->dst.pitch ? r->dst.pitch : r->width, src_pitch = r->src.pitch ? r->src.pitch : r->width;
    unsigned char *dst = r->dst.type == TYPE_HOST ? r->dst.host : r->dst.device;
    unsigned char *src = r->src.type == TYPE_HOST ? r->src.host : r->src.device;
    struct copy c = {dst + r->dst.y * dst_pitch + r->dst.x,
                     src + r->src.y * src_pitch + r->src.x,
                     r->width,
                     r->height,
                     dst_pitch,
                     src_pitch,
                     stream,
                     is_async,
                     -1,
                     -1};
    return copy(&c);
}

CU_API cuMemcpy2D_v2(const struct rectangle *rectangle)
{
    CU_CALL(cuMemcpy2D_v2, rectangle);
    return DONE(copy_rectangle(rectangle, NULL, false));
}

CU_API cuMemcpy2DUnaligned_v2(const struct rectangle *rectangle)
{
    CU_CALL(cuMemcpy2DUnaligned_v2, rectangle);
    return DONE(copy_rectangle(rectangle, NULL, false));
}

CU_API cuMemcpy2DAsync_v2(const struct rectangle *rectangle, void *stream)
{
    CU_CALL(cuMemcpy2DAsync_v2, rectangle, stream);
    return DONE(copy_rectangle(rectangle, stream, true));
}

/* --- fills --- */
static int fill(void *dst, size_t pitch, uint32_t value, uint32_t value_bytes, size_t width, size_t height,
                void *stream, bool is_async)
{
    struct sim_stream *s = sim_stream_of(stream);
    struct sim_block block;
    if (s == NULL) return sim_context_current() ? SIM_INVALID_HANDLE : SIM_INVALID_CONTEXT;
    if (width == 0 || height == 0) return SIM_OK;
    if (!sim_memory_find(dst, &block)) return SIM_INVALID_VALUE;
    struct sim_op op = {
        .work = {.kind = SIMGPU_MEMSET, .bytes = width * height * value_bytes, .value = value, .is_async = is_async},
        .data = {dst, NULL, width * value_bytes, height, pitch, 0, value, value_bytes}};
    op.work.dst_kind = block.kind;
    return sim_enqueue(s, &op);
}

#define FILL(bits, type)                                                                                            \
    CU_API cuMemsetD##bits##_v2(void *dst, type value, size_t count)                                                \
    {                                                                                                               \
        CU_CALL(cuMemsetD##bits##_v2, dst, value, count);                                                           \
        return DONE(fill(dst, count * sizeof value, value, sizeof value, count, 1, NULL, false));                   \
    }                                                                                                               \
    CU_API cuMemsetD##bits##Async(void *dst, type value, size_t count, void *stream)                                \
    {                                                                                                               \
        CU_CALL(cuMemsetD##bits##Async, dst, value, count, stream);                                                 \
        return DONE(fill(dst, count * sizeof value, value, sizeof value, count, 1, stream, true));                  \
    }                                                                                                               \
    CU_API cuMemsetD2D##bits##_v2(void *dst, size_t pitch, type value, size_t width, size_t height)                 \
    {                                                                                                               \
        CU_CALL(cuMemsetD2D##bits##_v2, dst, pitch, value, width, height);                                          \
        return DONE(fill(dst, pitch, value, sizeof value, width, height, NULL, false));                             \
    }                                                                                                               \
    CU_API cuMemsetD2D##bits##Async(void *dst, size_t pitch, type value, size_t width, size_t height, void *stream) \
    {                                                                                                               \
        CU_CALL(cuMemsetD2D##bits##Async, dst, pitch, value, width, height, stream);                                \
        return DONE(fill(dst, pitch, value, sizeof value, width, height, stream, true));                            \
    }
FILL(8, uint8_t)
FILL(16, uint16_t)
FILL(32, uint32_t)

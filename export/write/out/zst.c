// SPDX-License-Identifier: Apache-2.0
/*
 * zst.c - a zstd stream into a sink
 *
 * Called by: heaptrack_write.c
 * Memory:    mapped: 1.5 MB. zstd takes its own from here, too.
 * On fail:   -errno; the sink stays as it is
 *
 * Level 1 of zstd makes a smaller file than zlib's level 5, in a seventh of the time (decision 051).
 */
#include "export/write/out/sink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#define ZSTD_STATIC_LINKING_ONLY /* memory that the caller provides; the library is linked statically */
#include <zstd.h>
#include <zstd_errors.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

enum { LEVEL = 1, OUT_BYTES = 256 << 10, HEAD = 64 };

struct kp_zst {
    ZSTD_CCtx *zstd;
    struct kp_sink *sink;
    ZSTD_outBuffer out;
    uint8_t bytes[OUT_BYTES];
};

/* zstd asks for these when it was built to be traced, and takes the program's own if there are any. */
unsigned long long ZSTD_trace_compress_begin(const ZSTD_CCtx *zstd);
void ZSTD_trace_compress_end(unsigned long long context, const void *trace);
__attribute__((visibility("hidden"))) unsigned long long ZSTD_trace_compress_begin(const ZSTD_CCtx *zstd)
{
    (void)zstd;
    return 0;
}
__attribute__((visibility("hidden"))) void ZSTD_trace_compress_end(unsigned long long context, const void *trace)
{
    (void)context, (void)trace;
}

/* The size stands in front, since zstd gives memory back without it. */
static void *memory_take(void *unused, size_t bytes)
{
    (void)unused;
    uint8_t *all = bytes <= SIZE_MAX - HEAD ? kp_map_alloc(bytes + HEAD) : NULL;
    if (!all) return NULL;
    *(size_t *)(void *)all = bytes + HEAD;
    return all + HEAD;
}

static void memory_give(void *unused, void *memory)
{
    (void)unused;
    uint8_t *all = memory ? (uint8_t *)memory - HEAD : NULL;
    if (all) kp_map_free(all, *(size_t *)(void *)all);
}

struct kp_zst *kp_zst_open(struct kp_sink *sink)
{
    struct kp_zst *z = kp_map_alloc(sizeof *z);
    if (!z) return NULL;
    z->sink = sink;
    z->out = (ZSTD_outBuffer){z->bytes, OUT_BYTES, 0};
    z->zstd = ZSTD_createCCtx_advanced((ZSTD_customMem){memory_take, memory_give, NULL});
    if (z->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(z->zstd, ZSTD_c_compressionLevel, LEVEL)) &&
        !ZSTD_isError(ZSTD_CCtx_setParameter(z->zstd, ZSTD_c_checksumFlag, 1)))
        return z;
    kp_zst_close(z);
    return NULL;
}

static int empty(struct kp_zst *z)
{
    const int rc = kp_sink_write(z->sink, z->bytes, z->out.pos);
    z->out.pos = 0;
    return rc;
}

/* Takes all of `in`. At the end also what zstd still holds. */
static int put(struct kp_zst *z, ZSTD_inBuffer *in, ZSTD_EndDirective how)
{
    for (;;) {
        const size_t left = ZSTD_compressStream2(z->zstd, &z->out, in, how);
        if (ZSTD_isError(left)) return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? -ENOMEM : -EIO;
        const bool is_done = how == ZSTD_e_end ? left == 0 : in->pos == in->size;
        const int rc = is_done && how != ZSTD_e_end && z->out.pos < OUT_BYTES ? 0 : empty(z);
        if (rc || is_done) return rc;
    }
}

int kp_zst_write(struct kp_zst *z, const void *data, size_t bytes)
{
    return put(z, &(ZSTD_inBuffer){data, bytes, 0}, ZSTD_e_continue);
}

int kp_zst_finish(struct kp_zst *z) { return put(z, &(ZSTD_inBuffer){NULL, 0, 0}, ZSTD_e_end); }

void kp_zst_close(struct kp_zst *z)
{
    if (!z) return;
    ZSTD_freeCCtx(z->zstd);
    kp_map_free(z, sizeof *z);
}

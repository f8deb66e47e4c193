// SPDX-License-Identifier: Apache-2.0
/*
 * gz.c - a gzip stream into a sink
 *
 * zlib gets its memory from here: a mapped block holds its state and the output buffer. A trace is
 * so repetitive that levels above 1 cost time and gain little (`make bench-export` has the figures).
 */
#include "export/write/out/sink.h"

#include <errno.h>
#include <stdint.h>
#include <zlib.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

#define OUT_BYTES (256u * 1024u)
#define STATE_BYTES (512u * 1024u) /* deflate asks for about 200 KB */

struct kp_gz {
    z_stream z;
    struct kp_sink *sink;
    size_t state_used;
    uint8_t out[OUT_BYTES];
    uint8_t state[STATE_BYTES] __attribute__((aligned(64)));
};

static void *state_take(void *opaque, uInt items, uInt size)
{
    struct kp_gz *gz = opaque;
    size_t bytes = ((size_t)items * size + 63) / 64 * 64;
    void *p = gz->state + gz->state_used;
    if (bytes > STATE_BYTES - gz->state_used) return Z_NULL;
    gz->state_used += bytes;
    return p;
}

static void state_give(void *opaque, void *p) { (void)opaque, (void)p; /* kp_gz frees the whole block */ }

struct kp_gz *kp_gz_open(struct kp_sink *sink)
{
    struct kp_gz *gz = kp_map_alloc(sizeof *gz);
    if (!gz) return NULL;
    gz->sink = sink;
    gz->z.zalloc = state_take;
    gz->z.zfree = state_give;
    gz->z.opaque = gz;
    gz->z.next_out = gz->out;
    gz->z.avail_out = OUT_BYTES;
    if (deflateInit2(&gz->z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 7, Z_DEFAULT_STRATEGY) != Z_OK) {
        kp_map_free(gz, sizeof *gz);
        return NULL;
    }
    return gz;
}

static int empty(struct kp_gz *gz)
{
    int rc = kp_sink_write(gz->sink, gz->out, OUT_BYTES - gz->z.avail_out);
    gz->z.next_out = gz->out;
    gz->z.avail_out = OUT_BYTES;
    return rc;
}

int kp_gz_write(struct kp_gz *gz, const void *data, size_t bytes)
{
    gz->z.next_in = (Bytef *)(uintptr_t)data;
    gz->z.avail_in = (uInt)bytes;
    while (gz->z.avail_in) {
        int rc = deflate(&gz->z, Z_NO_FLUSH) == Z_OK ? 0 : -EIO;
        if (!rc && !gz->z.avail_out) rc = empty(gz);
        if (rc) return rc;
    }
    return 0;
}

int kp_gz_finish(struct kp_gz *gz)
{
    for (;;) {
        int z = deflate(&gz->z, Z_FINISH), rc;
        if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR) return -EIO;
        rc = empty(gz);
        if (rc || z == Z_STREAM_END) return rc;
    }
}

void kp_gz_close(struct kp_gz *gz)
{
    if (gz) kp_map_free(gz, sizeof *gz);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_spool.c - whatever a spool holds, it opens or is refused, its walk ends, and its trace is valid JSON
 *
 * The first byte chooses: patches of a good spool (chunk, offset, value), bytes laid over the beginning of each chunk,
 * bytes as the whole file, or bytes as KPROF_METADATA.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/text/kp_jsonread.h"
#include "collector/format/kp_heap.h"
#include "collector/format/kp_python.h"
#include "collector/format/kp_symbol.h"
#include "export/kp_export.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"

#define LAID 512u /* bytes laid over one chunk */

static char dir[] = "/dev/shm/kprof-fuzz-XXXXXX";
static struct test_spool good;

/* A record of each kind of kp_device.h beside the golden spool; times are ticks of its window, 2000 to 5000. */
static void gpu_add(struct test_spool *s)
{
    const uint32_t name = test_spool_name(s, "_Z3addPfS_i", 11);
    const uint32_t lane = test_spool_chunk(s, KP_CHUNK_DEVICE, 1, 0, 9, "lane"),
                   meta = test_spool_chunk(s, KP_CHUNK_META, 0, 4242, 1, "");
#define PUT(chunk, type, kind_, ...)                                                                             \
    test_spool_put(                                                                                              \
        s, chunk,                                                                                                \
        &(struct type){                                                                                          \
            .head = {.kind = KP_KIND_##kind_, .size = sizeof(struct type), .name = name, .flags = KP_DEV_TICKS}, \
            __VA_ARGS__},                                                                                        \
        sizeof(struct type))
    PUT(meta, kp_rec_devclock, DEVCLOCK, .ticks = 1500, .device = 99000, .width = 5);
    PUT(meta, kp_rec_devclock, DEVCLOCK, .ticks = 60001500, .device = 60099000, .width = 5);
    PUT(meta, kp_rec_device, DEVICE, .major = 8, .sms = 108, .max_threads_per_sm = 2048, .max_threads_per_block = 1024,
        .regs_per_sm = 65536, .regs_per_block = 65536, .smem_per_sm = 167936, .smem_per_block = 49152);
    PUT(meta, kp_rec_context, CONTEXT, .context = 1);
    PUT(meta, kp_rec_threadid, THREADID, .thread_id = 7, .tid = 4250);
    PUT(lane, kp_rec_api, API, .start = 2120, .end = 2140, .correlation = 5, .cbid = 211, .tid = 4242);
    PUT(lane, kp_rec_kernel, KERNEL, .start = 2200, .end = 2300, .correlation = 5, .stream = 7, .grid = {9, 1, 1},
        .block = {64, 1, 1}, .has = 15);
    PUT(lane, kp_rec_copy, MEMCPY, .start = 2300, .end = 2400, .correlation = 6, .bytes = 64, .is_peer = 1);
    PUT(lane, kp_rec_copy, MEMSET, .start = 2300, .end = 2400, .correlation = 7, .bytes = 64);
    PUT(lane, kp_rec_cudaevent, CUDAEVENT, .correlation = 8, .event = 3, .stream = 7);
    PUT(lane, kp_rec_sync, SYNC, .start = 2400, .end = 2410, .correlation = 9, .type = 2, .event = 3, .stream = 7);
    PUT(lane, kp_rec_overhead, OVERHEAD, .start = 2400, .end = 2410, .type = 1u << 16);
    PUT(lane, kp_rec_graphrun, GRAPHRUN, .start = 2500, .end = 2600, .correlation = 10, .graph = 4);
    PUT(3, kp_rec_nvtx, NVTX, .start = 4900, .ticks = 50, .domain = name);
#undef PUT
}

/* Allocations and a call of a module, with the flags their sizes go with. */
static void python_and_memory_add(struct test_spool *s)
{
    const uint32_t name = test_spool_name(s, "nn.Module: Linear\0train.py(7): main", 35);
    struct kp_rec_memory m = {
        .head = {.kind = KP_KIND_MEMORY, .size = KP_MEMORY_SHORT_BYTES}, .start = 4910, .address = 4096, .bytes = 64};
    struct kp_rec_pymodule call = {
        .call = {.head = {.kind = KP_KIND_PYCALL, .size = sizeof call, .name = name, .flags = KP_PY_MODULE},
                 .start = 4940,
                 .ticks = 50},
        .self = 1,
        .type = 2};
    test_spool_put(s, 3, &m, m.head.size);
    m.head.flags = KP_MEMORY_FREE, m.start = 4920;
    test_spool_put(s, 3, &m, m.head.size);
    m.head = (struct kp_rec){.kind = KP_KIND_MEMORY, .flags = KP_MEMORY_TOTALS, .size = sizeof m}, m.start = 4930;
    test_spool_put(s, 3, &m, sizeof m);
    test_spool_put(s, 3, &call, sizeof call);
}

/* Two frames of machine code, of a file and of none; blocks of the heap with the inner one as their stack, all forms;
 * an op with it. */
static void heap_and_native_add(struct test_spool *s)
{
    static const char module[] = "/proc/self/exe\0- 1000 1000 9000";
    const uint32_t frames = test_spool_chunk(s, KP_CHUNK_FRAMES, 0, 0, 0, ""),
                   lane = test_spool_chunk(s, KP_CHUNK_DATA, 1, 4260, 3, "heap");
    const uint32_t cell =
        (uint32_t)((frames * (uint64_t)KP_CHUNK_BYTES + test_spool_at(s, frames)->used) / KP_STR_CELL);
    struct kp_rec_frame f = {.head = {.kind = KP_KIND_FRAME, .size = sizeof f}, .offset = 0x7f0012345678};
    struct kp_rec_heap b = {.head = {.kind = KP_KIND_HEAP, .name = cell + 1, .size = KP_HEAP_SHORT_BYTES},
                            .start = 2110};
    struct kp_rec_heapcount count = {.head = {.kind = KP_KIND_HEAPCOUNT, .size = sizeof count, .flags = KP_HEAP_LIVE},
                                     .start = 2600};
    static const uint16_t flags[] = {
        0, KP_HEAP_LONG, KP_HEAP_FREE, KP_HEAP_FREE | KP_HEAP_REALLOC, KP_HEAP_RESTORED, KP_HEAP_MAPPED | KP_HEAP_LONG};
    f.check = kp_frame_check(&f);
    test_spool_put(s, frames, &f, sizeof f);
    f.head.name = test_spool_name(s, module, sizeof module - 1), f.offset = 0x1234, f.around = cell;
    f.check = kp_frame_check(&f);
    test_spool_put(s, frames, &f, sizeof f);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++, b.start += 10) {
        b.head.flags = (__typeof__(b.head.flags))flags[i];
        b.head.size = flags[i] & KP_HEAP_LONG ? sizeof b : KP_HEAP_SHORT_BYTES;
        b.block = flags[i] & (KP_HEAP_FREE | KP_HEAP_LONG) ? 4096 : (UINT64_C(4096) >> 3 << KP_HEAP_BYTES_BITS) + 64;
        b.bytes = 4096;
        test_spool_put(s, lane, &b, b.head.size);
    }
    count.taken = 2, count.bytes = 64, count.live = 64;
    test_spool_put(s, lane, &count, sizeof count);
    test_spool_text(s, "KPROF_MALLOC=trace\n");
}

/*
 * Calls of functions by name, on the row of the golden spool's thread and on one of their own: in and across an op, in
 * and across each other on more rows than there are, without an end, with one before the beginning, of C++, of a name
 * that is lost.
 */
static void calls_by_name_add(struct test_spool *s)
{
    static const char names[3][64] = {"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE\0a",
                                      "SSL_read\0libssl.so.3", "f\0libx.so"};
    const uint32_t own = test_spool_chunk(s, KP_CHUNK_DATA, 1, 4270, 4, "calls");
    uint32_t id[4] = {0};
    for (size_t i = 0; i < 3; i++) id[i] = test_spool_name(s, names[i], (uint32_t)sizeof names[i] - 1);
    for (uint64_t i = 0; i < 12; i++) {
        struct kp_rec_symbol r = {.head = {.kind = KP_KIND_SYMBOL, .size = sizeof r, .name = id[i % 4]},
                                  .start = 2100 + i * 10};
        r.ticks = i < 10 ? 500 + i * 20 : i == 10 ? 0 : UINT64_MAX - 5;
        test_spool_put(s, own, &r, sizeof r);
        r.start = 4950 + i, r.ticks = i % 3 ? 20 : 0;
        test_spool_put(s, 3, &r, sizeof r); /* behind the ops of the golden spool */
    }
    test_spool_text(s, "KPROF_SYMBOLS=*\n");
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!mkdtemp(dir)) abort();
    test_spool_training(&good);
    gpu_add(&good);
    python_and_memory_add(&good);
    heap_and_native_add(&good);
    calls_by_name_add(&good);
    return 0;
}

static void patch(uint8_t *file, size_t bytes, const uint8_t *data, size_t size)
{
    for (; size >= 4; data += 4, size -= 4) {
        size_t at = (size_t)(data[0] % (bytes / KP_CHUNK_BYTES)) * KP_CHUNK_BYTES +
                    ((data[1] | (size_t)data[2] << 8) % (data[0] & 128 ? 65536u : 1024u));
        if (at < bytes) file[at] = data[3];
    }
}

static void lay(uint8_t *file, size_t bytes, const uint8_t *data, size_t size)
{
    for (size_t chunk = 1; chunk * KP_CHUNK_BYTES < bytes && size; chunk++) {
        size_t n = size < LAID ? size : LAID;
        memcpy(file + chunk * KP_CHUNK_BYTES + 4, data, n); /* the magic stays */
        data += n, size -= n;
    }
}

static void trace_check(struct kp_reader *r, uint32_t cycle, const char *metadata)
{
    static char text[1 << 22];
    struct kp_export_options options = {.dir = dir, .metadata = metadata};
    struct kp_export_result result;
    size_t n, offset;
    const char *why;
    FILE *f;
    if (kp_export_trace(r, cycle, &options, &result)) return;
    f = fopen(result.path, "rb");
    if (!f) abort();
    n = fread(text, 1, sizeof text, f);
    fclose(f);
    unlink(result.path);
    if (n < sizeof text && kp_jsonread_check_object(text, n, &offset, &why)) {
        fprintf(stderr, "not JSON at %zu: %s: %.80s\n", offset, why, text + (offset > 40 ? offset - 40 : 0));
        abort();
    }
}

static void walk(const char *path, const char *metadata)
{
    struct kp_reader *r;
    char why[256];
    struct kp_cycle c;
    if (test_reader_open(&r, path, why, sizeof why)) return;
    for (size_t i = 0; i < kp_reader_cycles(r) && i < 4; i++)
        if (!kp_reader_cycle(r, i, &c)) trace_check(r, c.number, metadata);
    kp_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bytes = (size_t)good.chunks * KP_CHUNK_BYTES;
    char path[64], *metadata = NULL;
    uint8_t *file;
    int fd, mode;
    if (size < 2) return 0;
    mode = data[0] & 3;
    if (mode == 2) bytes = size - 1 < sizeof(struct kp_file_head) ? sizeof(struct kp_file_head) : size - 1;
    fd = memfd_create("spool", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) abort();
    file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) abort();
    if (mode != 2) memcpy(file, good.bytes, bytes);
    if (mode == 0) patch(file, bytes, data + 1, size - 1);
    if (mode == 1) lay(file, bytes, data + 1, size - 1);
    if (mode == 2) memcpy(file, data + 1, size - 1);
    if (mode == 3) metadata = strndup((const char *)data + 1, size - 1);
    if (data[0] & 64 && ftruncate(fd, (off_t)(bytes - (data[0] >> 2 & 15) * 4099 % bytes))) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    walk(path, metadata);
    free(metadata);
    munmap(file, bytes);
    close(fd);
    return 0;
}

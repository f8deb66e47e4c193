// SPDX-License-Identifier: Apache-2.0
/*
 * bench_gpu.c - device records/s of the reader, and CPU time and memory of an export that joins them
 *
 * usage: bench_gpu DIR [MILLION_RECORDS]: makes a spool of launches (an op, a call and a kernel each; calls and kernels
 * count as device records), walks it, exports it with gzip, and removes what it wrote. One line a figure: name, value,
 * unit.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "export/kp_export.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"

#define WALL 1790857026000000000u
#define BEGIN (WALL + 1000000000u)
#define EVERY 4000u /* ns between two launches */

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void memory_now(long *anonymous_kb, long *file_kb)
{
    char line[128];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "RssAnon: %ld", anonymous_kb);
        sscanf(line, "RssFile: %ld", file_kb);
    }
    if (f) fclose(f);
}

static long most_anonymous_kb, most_file_kb;
static int watch(void *context, uint64_t events)
{
    static uint32_t calls;
    long anonymous = 0, file = 0;
    (void)context, (void)events;
    if (++calls % 8) return 0;
    memory_now(&anonymous, &file);
    if (anonymous > most_anonymous_kb) most_anonymous_kb = anonymous;
    if (file > most_file_kb) most_file_kb = file;
    return 0;
}

/* --- the spool: its end is written chunk by chunk, ten million records never lie in memory --- */

struct pen {
    int fd;
    uint64_t order;
    union {
        struct kp_chunk_head head;
        uint8_t bytes[KP_CHUNK_BYTES];
    } chunk;
};

static void pen_flush(struct pen *p)
{
    if (p->chunk.head.used > sizeof p->chunk.head &&
        write(p->fd, p->chunk.bytes, sizeof p->chunk) != (ssize_t)sizeof p->chunk)
        exit(1);
    p->chunk.head.used = sizeof p->chunk.head;
}

static void pen_put(struct pen *p, uint32_t kind, const void *record, uint32_t bytes)
{
    if (p->chunk.head.used + bytes > KP_CHUNK_BYTES) pen_flush(p);
    if (p->chunk.head.used == sizeof p->chunk.head) {
        memset(p->chunk.bytes, 0, sizeof p->chunk);
        p->chunk.head = (struct kp_chunk_head){.magic = KP_CHUNK_MAGIC,
                                               .kind = kind,
                                               .cycle = 1,
                                               .tid = 4242,
                                               .thread_no = kind == KP_CHUNK_DATA ? 1 : 9,
                                               .used = sizeof p->chunk.head,
                                               .order = ++p->order};
    }
    memcpy(p->chunk.bytes + p->chunk.head.used, record, bytes);
    p->chunk.head.used += bytes;
}

static void launches_write(const char *path, uint64_t launches, const uint32_t *ids)
{
    static struct pen ops, calls, kernels;
    int fd = open(path, O_WRONLY | O_APPEND);
    ops.fd = calls.fd = kernels.fd = fd;
    ops.order = calls.order = kernels.order = 100;
    ops.chunk.head.used = calls.chunk.head.used = kernels.chunk.head.used = sizeof(struct kp_chunk_head);
    for (uint64_t i = 0; i < launches; i++) {
        uint64_t at = BEGIN + i * EVERY;
        struct kp_rec_op op = {
            .head = {.kind = KP_KIND_OP, .size = sizeof op, .name = ids[0]}, .start = at, .ticks = 3500, .rt_tid = 1};
        struct kp_rec_api api = {.head = {.kind = KP_KIND_API, .size = sizeof api, .name = ids[1]},
                                 .start = at + 1000,
                                 .end = at + 2500,
                                 .correlation = (uint32_t)(i * 2 + 7),
                                 .cbid = 211,
                                 .tid = 4242,
                                 .stream = KP_DEV_NONE};
        struct kp_rec_kernel k = {.head = {.kind = KP_KIND_KERNEL, .size = sizeof k, .name = ids[2 + i % 16]},
                                  .start = at + 5000,
                                  .end = at + 8000,
                                  .correlation = api.correlation,
                                  .context = 1,
                                  .stream = 7,
                                  .grid = {(uint32_t)(i % 512 + 1), 1, 1},
                                  .block = {256, 1, 1},
                                  .registers = 32,
                                  .has = KP_KERNEL_SHAPE | KP_KERNEL_GRAPH};
        pen_put(&ops, KP_CHUNK_DATA, &op, sizeof op);
        pen_put(&calls, KP_CHUNK_DEVICE, &api, sizeof api);
        pen_put(&kernels, KP_CHUNK_DEVICE, &k, sizeof k);
    }
    pen_flush(&ops), pen_flush(&calls), pen_flush(&kernels);
    close(fd);
}

static void make(const char *path, uint64_t launches)
{
    struct test_spool s;
    uint32_t ids[18], meta;
    char name[64];
    test_spool_init(&s);
    test_spool_head(&s)->clock_kind = KP_CLOCK_MONO;
    ids[0] = test_spool_name(&s, "aten::addmm", 11);
    ids[1] = test_spool_name(&s, "cudaLaunchKernel", 16);
    for (uint32_t i = 0; i < 16; i++) {
        int n = snprintf(name, sizeof name, "_ZN2at6native8kernel%02uILi4EEEviPfS1_", i);
        ids[2 + i] = test_spool_name(&s, name, (uint32_t)n);
    }
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    for (uint64_t i = 0; i < 60; i++) {
        uint64_t t = WALL + i * 1000000000u;
        struct kp_rec_devclock d = {
            .head = {.kind = KP_KIND_DEVCLOCK, .size = sizeof d}, .ticks = t, .device = t, .width = 40};
        test_spool_clock(&s, meta, t, t, t);
        test_spool_put(&s, meta, &d, sizeof d);
    }
    test_spool_cycle(&s, meta, 1, BEGIN - 1, BEGIN + (launches + 10) * EVERY, 1);
    test_spool_save(&s, path, 0);
    test_spool_free(&s);
    launches_write(path, launches, ids);
}

/* --- the figures --- */

static int event_count(void *context, const struct kp_event *e)
{
    *(uint64_t *)context += e->kind == KP_KIND_API;
    return 0;
}

static int work_count(void *context, const struct kp_device_event *e)
{
    *(uint64_t *)context += e->start_ns > 0;
    return 0;
}

static void walk(struct kp_reader *r)
{
    uint64_t n = 0;
    double before = cpu_s();
    kp_reader_device(r, 1, work_count, &n);
    printf("gpu_read_work %.2f M/s\n", (double)n / (cpu_s() - before) * 1e-6);
    before = cpu_s(), n = 0;
    kp_reader_timeline(r, 1, event_count, &n, NULL);
    printf("gpu_read_calls_and_ops %.2f M/s\n", 2.0 * (double)n / (cpu_s() - before) * 1e-6);
}

int main(int argc, char **argv)
{
    static struct kp_export_result result;
    uint64_t records = argc > 2 ? (uint64_t)(atof(argv[2]) * 1e6) : 1000000;
    long anonymous_kb = 0, file_kb = 0;
    char path[512], why[256];
    struct kp_reader *r;
    struct stat st;
    if (argc < 2) return 2;
    snprintf(path, sizeof path, "%s/bench_gpu.kprof", argv[1]);
    make(path, records / 2);
    if (test_reader_open(&r, path, why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    walk(r);
    memory_now(&anonymous_kb, &file_kb);
    double before = cpu_s();
    int rc = kp_export_trace(
        r, 1, &(struct kp_export_options){.dir = argv[1], .gzip = true, .progress = watch, .loads_cpp = true}, &result);
    double took = cpu_s() - before;
    if (rc || stat(result.path, &st)) {
        fprintf(stderr, "export failed: %d\n", rc);
        return 1;
    }
    printf("gpu_gzip_us_per_record %.3f us\ngpu_gzip_bytes_per_record %.1f bytes\n", took * 1e6 / (double)records,
           (double)st.st_size / (double)records);
    printf("gpu_memory_anonymous %ld KB\ngpu_memory_of_files %ld KB\n", most_anonymous_kb - anonymous_kb,
           most_file_kb - file_kb);
    printf("gpu_memory_of_files_before %ld KB\n", file_kb);
    kp_reader_close(r);
    unlink(result.path);
    unlink(path);
    return 0;
}

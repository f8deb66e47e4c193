// SPDX-License-Identifier: Apache-2.0
/*
 * bench_export.c - events/s of the reader, and CPU time and memory of an export
 *
 * usage: bench_export DIR [MILLION_OPS]: makes a spool of a training loop (four threads, torch's names), walks it,
 * exports it plain and with gzip, and removes what it wrote. One line a figure: name, value, unit. CPU time, so a busy
 * machine matters little.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "export/kp_export.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"

static const char *const names[] = {"aten::linear",
                                    "aten::addmm",
                                    "aten::t",
                                    "aten::transpose",
                                    "aten::as_strided",
                                    "aten::empty",
                                    "aten::copy_",
                                    "aten::relu",
                                    "aten::clamp_min",
                                    "aten::_softmax",
                                    "aten::native_layer_norm",
                                    "aten::matmul",
                                    "aten::bmm",
                                    "aten::view",
                                    "aten::add_",
                                    "aten::mul_",
                                    "aten::convolution",
                                    "aten::mkldnn_convolution",
                                    "aten::to",
                                    "aten::_to_copy",
                                    "aten::empty_strided",
                                    "aten::fill_",
                                    "aten::zero_",
                                    "autograd::engine::evaluate_function: AddmmBackward0",
                                    "AddmmBackward0",
                                    "ReluBackward0",
                                    "aten::mm",
                                    "aten::sum",
                                    "aten::detach",
                                    "detach",
                                    "torch::autograd::AccumulateGrad",
                                    "aten::addcdiv_"};
#define NAMES (sizeof names / sizeof *names)
#define THREADS 4

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Memory that is not the mapped spool. */
static long anonymous_kb(void)
{
    char line[128];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "RssAnon: %ld", &kb);
    if (f) fclose(f);
    return kb;
}

static long most_kb;
static int watch(void *context, uint64_t events)
{
    long kb = events % (4096 * 8) ? 0 : anonymous_kb();
    (void)context;
    if (kb > most_kb) most_kb = kb;
    return 0;
}

static uint32_t any(uint32_t below)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (uint32_t)(x % below);
}

static void make(const char *path, uint64_t ops, int shapes)
{
    static const uint8_t inputs[] = {1, 6, 0, 2, 32, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0,  0, 64, 0,
                                     0, 0, 0, 0, 0,  0, 1, 0, 0, 0, 0, 0, 0,  0, 1, 6, 0, 1, 64, 0, 0,  0,
                                     0, 0, 0, 0, 1,  0, 0, 0, 0, 0, 0, 0, 3,  1, 0, 0, 0, 0, 0,  0, 0};
    struct test_spool s;
    uint32_t meta, id[NAMES], chunk[THREADS] = {0};
    uint64_t at[THREADS] = {2000, 2000, 2000, 2000}, end = 0;
    test_spool_init(&s);
    for (size_t i = 0; i < NAMES; i++) id[i] = test_spool_name(&s, names[i], (uint32_t)strlen(names[i]));
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    for (uint64_t t = 0; t < 400; t++)
        test_spool_clock(&s, meta, 1000 + t * 3000000000u, 1790857027000000000u + t * 1000000000u,
                         5000 + t * 1000000000u);
    for (uint64_t i = 0; i < ops; i++) {
        uint32_t t = i % 64 < 48 ? 0 : any(THREADS);
        struct test_op op = {.name = id[any(NAMES)],
                             .start = at[t] + 300 + any(8000),
                             .ticks = 1500 + any(30000),
                             .rt_tid = t + 1,
                             .seq = -1};
        if (i % 8 == 0) op.seq = (int64_t)(i / 16), op.fwd_tid = i % 16 ? 1 : 0;
        if (shapes) op.inputs = inputs, op.inputs_bytes = sizeof inputs, op.inputs_count = 3;
        if (!chunk[t] || KP_CHUNK_BYTES - test_spool_at(&s, chunk[t])->used < 256)
            chunk[t] = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 1000 + t, t + 1, "worker");
        test_spool_op(&s, chunk[t], &op);
        at[t] = op.start + op.ticks;
        if (at[t] > end) end = at[t];
    }
    test_spool_cycle(&s, meta, 1, 2000, end + 1, 1);
    test_spool_save(&s, path, 0);
    test_spool_free(&s);
}

static int count(void *context, const struct kp_event *e)
{
    *(uint64_t *)context += e->end_ns > 0;
    return 0;
}

static void export_once(const char *dir, struct kp_reader *r, bool gzip, const char *label)
{
    struct kp_export_options options = {.dir = dir, .gzip = gzip, .progress = watch};
    struct kp_export_result result;
    struct stat st;
    long base_kb = anonymous_kb();
    double before = cpu_s(), took;
    int rc;
    most_kb = base_kb;
    rc = kp_export_trace(r, 1, &options, &result);
    took = cpu_s() - before;
    if (rc || stat(result.path, &st)) {
        fprintf(stderr, "export failed: %d\n", rc);
        exit(1);
    }
    printf("%s_us_per_op %.3f us\n%s_bytes_per_op %.1f bytes\n", label, took * 1e6 / (double)result.events, label,
           (double)st.st_size / (double)result.events);
    printf("%s_memory %ld KB\n", label, most_kb - base_kb);
    unlink(result.path);
}

static void round_of(const char *dir, uint64_t ops, int shapes)
{
    char path[512], why[256];
    struct kp_reader *r;
    uint64_t n = 0;
    double before;
    snprintf(path, sizeof path, "%s/bench.kprof", dir);
    make(path, ops, shapes);
    if (test_reader_open(&r, path, why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    kp_reader_events(r, 1, count, &n);
    before = cpu_s(), n = 0;
    kp_reader_events(r, 1, count, &n);
    printf("%sread_events_per_s %.2f M/s\n", shapes ? "shapes_" : "", (double)n / (cpu_s() - before) * 1e-6);
    export_once(dir, r, false, shapes ? "shapes_plain" : "plain");
    export_once(dir, r, true, shapes ? "shapes_gzip" : "gzip");
    kp_reader_close(r);
    unlink(path);
}

int main(int argc, char **argv)
{
    uint64_t ops = argc > 2 ? (uint64_t)(atof(argv[2]) * 1e6) : 1000000;
    if (argc < 2) return 2;
    round_of(argv[1], ops, 0);
    round_of(argv[1], ops / 4, 1);
    return 0;
}

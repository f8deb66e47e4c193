// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_dense.c - dense input is unpacked to a whole spool, hashes and checks right, and goes through all that the
 * commands make of one
 *
 * Bytes laid over a spool (fuzz_spool.c) seldom get past the hash of a string or the check of a frame. Here they are
 * instructions: a chunk of a kind, a string, a frame around another, a record of a kind with its words small, near the
 * window, or any. What comes out is exported, and the trace goes straight to the reader, the tables, stacks, flame
 * graph and pages.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/report/folded.h"
#include "export/report/kineto.h"
#include "export/report/memory/memblocks.h"
#include "export/report/table.h"
#include "test/fuzz/dense.h"
#include "test/fuzz/export_bridge.h"

static FILE *sink;

static void stack_put(void *context, const char *stack, int64_t us)
{
    kp_flame_add(context, stack, us);
    fprintf(sink, "%s %lld\n", stack, (long long)us);
}

static void memory_show(struct kp_tree *tree)
{
    struct kp_memview view;
    if (!kp_memview_build(&view, tree)) {
        const struct kp_mem_show all = {
            .device = -1, .row_limit = 10, .from_ns = view.begin_ns, .to_ns = view.end_ns, .label = "f"};
        kp_memhtml_write(sink, &view, &all);
        kp_memjson_write(sink, &view, &all);
    }
    kp_memview_fini(&view);
}

static void trace_show(struct kp_kineto *trace)
{
    const struct kp_keyavg_options group = {
        .by_shape = true, .by_overload = true, .python_functions = true, .by_stack = 3};
    const struct kp_table_options table = KP_TABLE_DEFAULTS;
    struct kp_keyavg averages;
    struct kp_tree tree;
    if (kp_tree_build(&tree, trace)) return;
    kp_tree_fill_stacks(&tree, true);
    kp_tree_set_stacks(&tree);
    kp_keyavg_build(&averages, &tree, &group);
    kp_table_print(sink, &averages, &table);
    kp_keyavg_fini(&averages);
    struct kp_flame *flame = kp_flame_open();
    kp_folded_walk(&tree, false, stack_put, flame);
    kp_flame_write(flame, sink, &(struct kp_flame_show){.title = "f"});
    kp_flame_close(flame);
    memory_show(&tree);
    kp_tree_fini(&tree);
}

static int each(const void *from, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    (void)why, (void)why_bytes;
    return fuzz_export_each(from, take, context);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    sink = fopen("/dev/null", "w");
    return sink ? 0 : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct test_spool spool;
    char why[512];
    dense_unpack(&spool, data, size);
    const int fd = memfd_create("spool", MFD_CLOEXEC);
    const size_t bytes = (size_t)spool.chunks * KP_CHUNK_BYTES;
    if (fd < 0 || write(fd, spool.bytes, bytes) != (ssize_t)bytes) abort();
    struct fuzz_export from = {.fd = fd};
    for (; from.cycle < 4 && !from.refused; from.cycle++) {
        struct kp_kineto *trace;
        const struct kp_kineto_wish wish = {.texts = {each, &from}, .label = "f", .keep_args = from.cycle & 1};
        const int rc = kp_kineto_read(&trace, &wish, why, sizeof why);
        if (rc == -EINVAL && !from.refused) { /* what we write we can read */
            fprintf(stderr, "%s\n", why);
            abort();
        }
        if (trace) trace_show(trace);
        kp_kineto_close(trace);
    }
    close(fd);
    test_spool_free(&spool);
    return 0;
}

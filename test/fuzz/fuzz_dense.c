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

#include "export/answers/stacks/calltree.h"
#include "export/read/tree/chosen.h"
#include "export/answers/stacks/flame.h"
#include "export/answers/torchtable/keyavg.h"
#include "export/read/kineto/kineto.h"
#include "export/read/parse/kineto_parse.h"
#include "export/answers/memory/memblocks.h"
#include "export/answers/top/timeshares.h"
#include "export/answers/top/toprows.h"
#include "export/answers/top/toptable.h"
#include "export/answers/stacks/walltime.h"
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
        kp_mempage_write(sink, &view, &all, NULL);
        kp_memjson_write(sink, &view, &all);
    }
    kp_memview_fini(&view);
}

/* `kprof report`: the table by one kind of row, and the head and the rows as JSON. */
static void report_show(const struct kp_tree *tree, enum kp_top_by by)
{
    const struct kp_choice choice = {.first_step = -1, .last_step = -1};
    struct kp_chosen chosen;
    struct kp_summary summary;
    struct kp_top top;
    char why[256];
    if (kp_chosen_make(&chosen, tree, &choice, why, sizeof why)) abort(); /* all is chosen */
    kp_summary_make(&summary, tree, &chosen);
    kp_top_build(&top, tree, &chosen, by);
    kp_top_order(&top, KP_TOP_SELF);
    const struct kp_top_report report = {.label = "f",
                                         .summary = &summary,
                                         .top = &top,
                                         .choice = &choice,
                                         .chosen = &chosen,
                                         .sort = "self",
                                         .by = "op",
                                         .most = 20};
    kp_top_head_print(sink, &report);
    kp_top_table_print(sink, &report);
    kp_top_more_print(sink, &report);
    kp_top_json_print(sink, &report);
    kp_top_fini(&top);
    kp_chosen_fini(&chosen);
}

/* `kprof stacks`, folded and drawn. */
static void wall_show(struct kp_tree *tree, enum kp_wall_metric metric, bool at_forward)
{
    const struct kp_wall_options options = {.metric = metric, .at_forward = at_forward, .threads = at_forward};
    struct kp_calltree *paths = kp_calltree_open();
    struct kp_flame *flame = kp_flame_open();
    struct kp_wall_told told;
    kp_wall_add(paths, tree, &options, &told);
    kp_calltree_each(paths, 1000, stack_put, flame);
    kp_flame_write(flame, sink, &(struct kp_flame_show){.title = "f", .has_parts = true, .is_page = at_forward});
    kp_flame_close(flame);
    kp_calltree_close(paths);
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
    report_show(&tree, KP_TOP_BY_OP);
    report_show(&tree, KP_TOP_BY_LINE);
    kp_tree_set_forward_stacks(&tree);
    wall_show(&tree, KP_WALL_CPU, false);
    wall_show(&tree, KP_WALL_MEMORY, true);
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

// SPDX-License-Identifier: Apache-2.0
/* fuzz_trace.c - any bytes are a trace or a clear error, whole or in two pieces, and every table and page of it
 * prints */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/answers/heapview/heapview.h"
#include "export/read/parse/kineto_parse.h"
#include "export/answers/memory/memblocks.h"
#include "export/answers/torchtable/keyavg.h"
#include "test/support/kineto_text.h"

#define FILE_AT(path) ((const struct kp_texts){kp_text_file_each, path})

static void tables(struct kp_kineto *trace, const struct kp_keyavg_options *group, const struct kp_table_options *table)
{
    struct kp_tree tree;
    struct kp_keyavg averages;
    char *text = NULL;
    size_t bytes = 0;
    if (kp_tree_build(&tree, trace)) return;
    kp_tree_set_stacks(&tree);
    kp_keyavg_build(&averages, &tree, group);
    FILE *out = open_memstream(&text, &bytes);
    if (!out || kp_table_print(out, &averages, table)) abort();
    fclose(out);
    if (averages.count && !strstr(text, "Self CPU time total: ")) abort();
    free(text);
    kp_keyavg_fini(&averages);
    kp_tree_fini(&tree);
}

static void memory(struct kp_kineto *trace)
{
    struct kp_tree tree;
    struct kp_memview view;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) abort();
    if (!kp_tree_build(&tree, trace)) {
        kp_tree_fill_stacks(&tree, true);
        kp_tree_set_stacks(&tree);
        if (!kp_memview_build(&view, &tree)) {
            const struct kp_mem_show all = {
                .device = -1, .row_limit = 10, .from_ns = view.begin_ns, .to_ns = view.end_ns, .label = "<f>"};
            const struct kp_mem_show one = {
                .device = 0, .row_limit = -1, .from_ns = view.begin_ns, .to_ns = view.begin_ns, .label = "f"};
            kp_mempage_write(out, &view, &all, NULL);
            kp_memjson_write(out, &view, &all);
            kp_memtable_write(out, &view, &one);
            kp_memjson_raw(out, &view, 0);
        }
        kp_memview_fini(&view);
        kp_tree_fini(&tree);
    }
    fclose(out);
    free(text);
}

/* Something stands at every second frame. */
static int places(void *context, const struct kp_frame *frame, uint64_t at, struct kp_place *out, int most)
{
    (void)context;
    if (at & 1 || most < 2) return 0;
    out[0] = (struct kp_place){frame->path, frame->build_id[0] ? "a \"b\".c" : NULL, (uint32_t)at, true};
    out[1] = (struct kp_place){NULL, NULL, 0, false};
    return 2;
}

static const char *plain(void *context, const char *mangled)
{
    (void)context;
    return mangled;
}

/* The file as a heap's profile: it is read or refused with a reason, and written in every form. */
static void profile(const char *path, FILE *out, const struct kp_places *asked)
{
    struct kp_profile *p;
    char why[256] = "";
    if (kp_profile_read(&p, &FILE_AT(path), path, why, sizeof why)) {
        if (!why[0]) abort();
        return;
    }
    kp_profile_name(p, asked);
    for (enum kp_profile_by by = KP_BY_PEAK; by < KP_BY_N; by++) kp_profile_folded(p, out, by);
    kp_profile_json(p, out);
    kp_profile_pprof(p, out);
    kp_heapview_profile(out, p, -1, asked);
    if (kp_profile_heaptrack(p, out, &FILE_AT(path), why, sizeof why)) abort();
    kp_profile_close(p);
}

/* The heap's key is looked for in the text of the file. */
static void heap(const uint8_t *data, size_t size)
{
    char path[64], *text = NULL;
    size_t bytes = 0;
    int fd = memfd_create("trace", MFD_CLOEXEC);
    FILE *out = open_memstream(&text, &bytes);
    if (fd < 0 || !out || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const struct kp_places asked = {NULL, places, plain, true};
    const struct kp_texts texts = {kp_text_file_each, path};
    kp_heapview_write(out, &texts, 2, false, NULL, NULL, NULL);
    kp_heapview_write(out, &texts, 2, size & 1, &asked, NULL, "torch,a");
    profile(path, out, &asked);
    fclose(out);
    close(fd);
    free(text);
}

/* A trace read in two pieces has the events of the one read whole. */
static void pieces(const uint8_t *data, size_t size, size_t events)
{
    struct kp_kineto trace = {.strings = kp_strings_open()};
    struct kp_kineto_parser *parser = kp_kineto_parser_open(&trace, false);
    size_t half = size / 2;
    int rc = kp_kineto_parser_feed(parser, (const char *)data, half);
    if (rc == 0) rc = kp_kineto_parser_feed(parser, (const char *)data + half, size - half);
    if (rc == 0) rc = kp_kineto_parser_end(parser);
    if (rc || trace.count != events) abort();
    kp_kineto_parser_close(parser);
    kp_strings_close(trace.strings);
    free(trace.events);
    free(trace.memory);
    free(trace.args_text);
}

/* Threads that read blocks of the text find the events, and the words of an error, that one reader finds. */
static void blocks(const uint8_t *data, size_t size, int rc, const struct kp_kineto *whole, const char *words)
{
    const struct kp_kineto_cutting before = kp_kineto_cutting;
    struct kp_kineto *trace;
    char why[256] = "";
    kp_kineto_cutting = (struct kp_kineto_cutting){2, 64};
    if (kineto_text_read(&trace, (const char *)data, size, true, why, sizeof why) != rc || strcmp(why, words)) abort();
    kp_kineto_cutting = before;
    if (!trace != !whole) abort();
    if (trace && (trace->count != whole->count || trace->seen != whole->seen)) abort();
    if (trace && trace->count && memcmp(trace->events, whole->events, trace->count * sizeof *trace->events)) abort();
    if (trace && kp_strings_count(trace->strings) != kp_strings_count(whole->strings)) abort();
    kp_kineto_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_keyavg_options plain = {0};
    struct kp_keyavg_options grouped = {.by_shape = true, .by_overload = true, .python_functions = true, .by_stack = 2};
    struct kp_table_options defaults = KP_TABLE_DEFAULTS;
    struct kp_table_options narrow = {.row_limit = -1,
                                      .name_width = 2,
                                      .shapes_width = 3,
                                      .source_width = 2,
                                      .sort_by = "self_cpu_time_total",
                                      .header = "h",
                                      .time_unit = 'm'};
    struct kp_kineto *trace;
    char why[256] = "";
    int rc = kineto_text_read(&trace, (const char *)data, size, true, why, sizeof why);
    if (rc && !strstr(why, "byte ")) abort();
    if (rc == 0) pieces(data, size, trace->count);
    blocks(data, size, rc, trace, why);
    if (trace) {
        tables(trace, &plain, &defaults);
        tables(trace, &grouped, &narrow);
        memory(trace);
    }
    heap(data, size);
    kp_kineto_close(trace);
    return 0;
}

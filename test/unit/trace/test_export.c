// SPDX-License-Identifier: Apache-2.0
/* test_export.c - a spool becomes a trace of Kineto's shape */
#include "export/kp_export.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/text/kp_jsonread.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"
#include "test/support/support.h"

static char text[1 << 20]; /* the last trace that was read */
static struct kp_export_result result;

static const char *in_dir(const char *name)
{
    static char path[4][512];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, 512, "%s/%s", kp_test_tmpdir(), name);
    return p;
}

static struct kp_reader *open_spool(const struct test_spool *s)
{
    struct kp_reader *r;
    char why[256] = "";
    test_spool_save(s, in_dir("t.kprof"), 0);
    if (test_reader_open(&r, in_dir("t.kprof"), why, sizeof why)) fail_msg("%s", why);
    return r;
}

static void slurp(const char *path)
{
    gzFile f = gzopen(path, "rb");
    int n;
    assert_non_null(f);
    n = gzread(f, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = 0;
    gzclose(f);
}

static int export_as(const struct test_spool *s, const struct kp_export_options *options)
{
    struct kp_reader *r = open_spool(s);
    int rc = kp_export_trace(r, 1, options, &result);
    kp_reader_close(r);
    if (!rc) slurp(result.path);
    return rc;
}

static const char *plain_dir(void) { return in_dir("out"); }

static int export_plain(const struct test_spool *s, const char *metadata)
{
    return export_as(s, &(struct kp_export_options){.dir = plain_dir(), .metadata = metadata});
}

static void assert_has(const char *part)
{
    if (!strstr(text, part)) fail_msg("not in the trace: %s\n%.3000s", part, text);
}

static void assert_valid(void)
{
    size_t offset = 0;
    const char *why = "";
    if (kp_jsonread_check_object(text, strlen(text), &offset, &why))
        fail_msg("%s at %zu: %.60s", why, offset, text + offset);
}

static int files_in(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d));) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

/* --- content --- */

/* The expected file lies in test/golden; KPROF_GOLDEN_UPDATE=1 rewrites it. traceName, the version and nothing else
 * vary. */
static void a_small_training_run_gives_the_golden_trace(void **state)
{
    static char expected[1 << 20];
    struct test_spool s;
    char *name, *version;
    FILE *f;
    (void)state;
    test_spool_training(&s);
    assert_int_equal(export_plain(&s, "{\"job\": \"a\\\"b\"}"), 0);
    assert_int_equal(result.events, 15);
    assert_int_equal(result.steps, 3);
    name = strstr(text, "  \"traceName\"");
    assert_non_null(name);
    *name = 0;
    version = strstr(text, "\"version\": \"" KP_VERSION "\"");
    assert_non_null(version);
    memset(version + strlen("\"version\": \""), '0', strlen(KP_VERSION));
    if (getenv("KPROF_GOLDEN_UPDATE")) {
        f = fopen("test/golden/training.trace", "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
    }
    f = fopen("test/golden/training.trace", "r");
    assert_non_null(f);
    expected[fread(expected, 1, sizeof expected - 1, f)] = 0;
    fclose(f);
    assert_string_equal(text, expected);
    test_spool_free(&s);
}

static void gzip_holds_the_same_text(void **state)
{
    static char plain[1 << 20];
    struct test_spool s;
    char *a, *b;
    (void)state;
    test_spool_training(&s);
    assert_int_equal(export_plain(&s, NULL), 0);
    strcpy(plain, text);
    assert_int_equal(export_as(&s, &(struct kp_export_options){.dir = plain_dir(), .gzip = true}), 0);
    assert_non_null(strstr(result.path, ".pt.trace.json.gz"));
    a = strstr(plain, "  \"traceName\""), b = strstr(text, "  \"traceName\"");
    assert_non_null(a);
    assert_non_null(b);
    *a = *b = 0;
    assert_string_equal(text, plain);
    test_spool_free(&s);
}

static void metadata_is_merged_but_cannot_replace_our_keys(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    test_spool_text(&s, "meta.lr=0.1\nmeta.lr=0.2\nmeta.bad=[1,\nmeta.traceEvents=[]\n");
    assert_int_equal(
        export_plain(
            &s,
            " { \"a\" : { \"b\":[1, \"}\" ]} , \"traceEvents\":[], \"\\u0074raceEvents\":1,\"lr\":9, \"z\":null } "),
        0);
    assert_valid();
    assert_has("\n  \"a\": { \"b\":[1, \"}\" ]},\n");
    assert_has("\n  \"z\": null,\n");
    assert_has("\n  \"lr\": 0.2,\n");
    assert_null(strstr(text, "\"lr\": 9"));
    assert_null(strstr(text, "\"lr\": 0.1"));
    assert_null(strstr(text, "bad"));
    assert_null(strstr(text, "\\u0074"));
    assert_null(strstr(strstr(text, "\"traceEvents\"") + 5, "\"traceEvents\""));
    assert_int_equal(export_plain(&s, "{\"a\":}"), 0); /* refused as a whole */
    assert_valid();
    test_spool_free(&s);
}

/* Exports with this setting and this line of the spool, and returns the trace_id with its quotes. */
static const char *trace_id_of(const char *setting, const char *line)
{
    static char id[64];
    struct test_spool s;
    test_spool_training(&s);
    test_spool_text(&s, line);
    assert_int_equal(export_plain(&s, setting), 0);
    assert_valid();
    const char *at = strstr(text, "\"trace_id\": ") + strlen("\"trace_id\": ");
    snprintf(id, sizeof id, "%.*s", (int)strcspn(at, "\n,"), at);
    assert_null(strstr(at, "\n  \"trace_id\""));
    test_spool_free(&s);
    return id;
}

static void a_trace_id_of_ones_own_replaces_ours(void **state)
{
    (void)state;
    assert_string_equal(trace_id_of("{\"a\":1,\"trace_id\":\"run-1\",\"trace_id\":\"run \\\"2\\\"\"}", ""),
                        "\"run \\\"2\\\"\"");
    assert_string_equal(trace_id_of("{\"trace_id\":\"run-1\"}", "meta.trace_id=\"window-7\"\n"), "\"window-7\"");
    assert_int_equal(strlen(trace_id_of("{\"trace_id\":7,\"b\":{\"trace_id\":\"x\"}}", "meta.trace_id=[1]\n")),
                     34); /* no text */
}

static void of_a_key_said_twice_the_last_value_counts(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    test_spool_text(&s, "meta.\xc3\xa9t\xc3\xa9=\"said later\"\n");
    assert_int_equal(export_plain(&s, "{\"a\":1,\"b\":{\"a\":2},\"\\u0061\":[3],\"\\u00e9t\\u00e9\":4,"
                                      "\"\\ud83d\\ude00\":5,\"\xf0\x9f\x98\x80\":6,"
                                      "\"\\u00e8\":7,\"\\u00e9\":8}"),
                     0);
    assert_valid();
    assert_null(strstr(text, "\"a\": 1"));
    assert_has("\n  \"b\": {\"a\":2},\n  \"\\u0061\": [3],\n");
    assert_null(strstr(text, ": 4,\n"));
    assert_has("\": \"said later\",\n");
    assert_null(strstr(text, ": 5,\n"));
    assert_has("\": 6,\n  \"\\u00e8\": 7,\n  \"\\u00e9\": 8,\n");
    test_spool_free(&s);
}

static void a_lone_process_is_rank_0_of_1(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    test_spool_head(&s)->text_bytes = 0;
    assert_int_equal(export_plain(&s, NULL), 0);
    assert_has("\"distributedInfo\": {\"rank\": 0, \"world_size\": 1}");
    assert_null(strstr(text, "record_shapes"));
    test_spool_text(&s, "env.SLURM_PROCID=5\nenv.SLURM_NTASKS=16\n");
    assert_int_equal(export_plain(&s, NULL), 0);
    assert_has("\"distributedInfo\": {\"rank\": 5, \"world_size\": 16}");
    assert_has("_r5_4242."); /* the file's own name, in traceName */
    test_spool_text(&s, "env.RANK=x\nenv.OMPI_COMM_WORLD_RANK=2\n");
    assert_int_equal(export_plain(&s, NULL), 0);
    assert_has("\"distributedInfo\": {\"rank\": 2, \"world_size\": 3}");
    test_spool_free(&s);
}

/* Where steps have ranges of their own, no other range is marked. */
static void a_range_that_ended_a_step_says_so(void **state)
{
    struct test_spool s;
    (void)state;
    for (int with_step = 0; with_step < 2; with_step++) {
        test_spool_init(&s);
        const uint32_t meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 0, 0, "");
        test_spool_clock(&s, meta, 1000, 1000, 1000);
        test_spool_cycle(&s, meta, 1, 1000, 1000000000, 0);
        const uint32_t id = test_spool_name(&s, "Optimizer.step#Adam.step", 24);
        const uint32_t chunk = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 77, 3, "w");
        test_spool_text(&s, "step_ends=1\n");
        if (with_step) test_spool_step(&s, chunk, 2900, 3400, 3);
        test_spool_op(&s, chunk, &(struct test_op){.name = id, .start = 3000, .ticks = 50, .seq = -1, .scope = 7});
        test_spool_op(
            &s, chunk,
            &(struct test_op){.name = id, .start = 3100, .ticks = 50, .seq = -1, .scope = 7, .ends_step = true});
        assert_int_equal(export_plain(&s, NULL), 0);
        assert_has(", \"step_ends\": true");
        const char *const mark = strstr(text, ",\"step\":\"ended\",\"Ev Idx\":");
        assert_int_equal(mark == NULL, with_step);
        if (mark) assert_null(strstr(mark + 8, "\"step\":\"ended\""));
        test_spool_free(&s);
    }
}

/* The last line of a key counts. What is no JSON object comes from elsewhere. */
static void what_the_process_group_said_is_the_rank(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    test_spool_head(&s)->text_bytes = 0;
    test_spool_text(&s, "env.RANK=0\nenv.group.rank=1\nenv.group.size=4\n"
                        "distributed={\"backend\": \"gloo\", \"rank\": 0, \"world_size\": 1}\n"
                        "distributed={\"backend\": \"gloo\", \"rank\": 1, \"world_size\": 4, \"pg_count\": 1}\n");
    assert_int_equal(export_plain(&s, NULL), 0);
    assert_has("  \"distributedInfo\": {\"backend\": \"gloo\", \"rank\": 1, \"world_size\": 4, \"pg_count\": 1},\n");
    assert_has("_r1_4242.");
    for (const char *const *bad = (const char *const[]){"{\"rank\": 1", " {\"rank\": 9}", "[1]", NULL}; *bad; bad++) {
        char line[64];
        snprintf(line, sizeof line, "distributed=%s\n", *bad);
        test_spool_text(&s, line);
        assert_int_equal(export_plain(&s, NULL), 0);
        assert_has("\"distributedInfo\": {\"rank\": 1, \"world_size\": 4}");
    }
    test_spool_free(&s);
}

static void an_unfinished_op_ends_with_the_window_and_says_so(void **state)
{
    struct test_spool s;
    uint32_t id, chunk;
    (void)state;
    test_spool_training(&s);
    id = test_spool_name(&s, "aten::slow", 10);
    chunk = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 77, 3, "w");
    test_spool_op(&s, chunk, &(struct test_op){.name = id, .start = 3000, .seq = -1});
    assert_int_equal(export_plain(&s, NULL), 0);
    assert_has("\"name\":\"aten::slow\",\"pid\":4242,\"tid\":77,\"ts\":1000002.000,\"dur\":2.256,");
    assert_has("\"finished\":false,\"Ev Idx\"");
    test_spool_free(&s);
}

static void lost_names_and_drops_are_told(void **state)
{
    struct test_spool s;
    uint32_t chunk;
    (void)state;
    test_spool_training(&s);
    chunk = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 77, 3, "w");
    test_spool_op(&s, chunk, &(struct test_op){.name = 999, .start = 3000, .ticks = 5, .seq = -1});
    test_spool_head(&s)->loss[KP_KIND_OP][KP_LOSS_NO_CHUNK] = 3;
    test_spool_head(&s)->loss[KP_KIND_OP][KP_LOSS_REENTRY] = 1;
    test_spool_head(&s)->loss[31][KP_LOSS_CAP] = 2;
    assert_int_equal(export_plain(&s, NULL), 0);
    assert_valid();
    assert_has("\"name\":\"name lost\"");
    assert_has("\"drops\": {\"OP\": {\"no chunk\": 3, \"re-entry\": 1}, \"unknown\": {\"cap\": 2}}}");
    test_spool_free(&s);
}

/* --- files --- */

static void a_cycle_without_events_writes_no_file(void **state)
{
    struct test_spool s;
    uint32_t meta;
    (void)state;
    test_spool_init(&s);
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_cycle(&s, meta, 1, 100, 200, 0);
    assert_int_equal(export_as(&s, &(struct kp_export_options){.dir = in_dir("none")}), -ENODATA);
    assert_int_equal(access(in_dir("none"), F_OK), -1);
    assert_string_equal(result.path, "");
    test_spool_free(&s);
}

static void every_failing_call_leaves_no_file_behind(void **state)
{
    static const char *const calls[] = {"open:2", "write:1", "fsync:1", "rename:1", "mmap:4", "mmap:6", "mmap:8"};
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct kp_reader *r = open_spool(&s);
        int rc;
        kp_fail_set(strchr(calls[i], 'o') == calls[i] ? "open:1:28" : calls[i]);
        rc = kp_export_trace(r, 1, &(struct kp_export_options){.dir = in_dir("failing"), .gzip = true}, &result);
        kp_fail_set(NULL);
        kp_reader_close(r);
        if (strncmp(calls[i], "mmap", 4) != 0) assert_true(rc < 0);
        if (rc) assert_int_equal(files_in(in_dir("failing")), 0);
        else unlink(result.path);
    }
    test_spool_free(&s);
}

static int stop_it(void *context, uint64_t events)
{
    (void)context, (void)events;
    return 1;
}

static void progress_may_stop_the_export(void **state)
{
    struct test_spool s;
    uint32_t chunk = 0;
    (void)state;
    test_spool_training(&s);
    for (uint64_t i = 0; i < 5000; i++) {
        if (!chunk || !test_spool_op(&s, chunk, &(struct test_op){.name = 1, .start = 3000, .ticks = 5, .seq = -1}))
            chunk = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 77, 3, "w");
    }
    assert_int_equal(export_as(&s, &(struct kp_export_options){.dir = in_dir("stopped"), .progress = stop_it}),
                     -ECANCELED);
    assert_int_equal(files_in(in_dir("stopped")), 0);
    test_spool_free(&s);
}

static void files_never_replace_each_other(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    for (int i = 0; i < 20; i++) {
        struct kp_reader *r = open_spool(&s);
        assert_int_equal(
            kp_export_trace(r, 1, &(struct kp_export_options){.dir = in_dir("many"), .worker_name = "a/b c"}, &result),
            0);
        kp_reader_close(r);
        assert_non_null(strstr(result.path, "/many/a_b_c."));
    }
    assert_int_equal(files_in(in_dir("many")), 20);
    test_spool_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_training_run_gives_the_golden_trace),
        cmocka_unit_test(gzip_holds_the_same_text),
        cmocka_unit_test(metadata_is_merged_but_cannot_replace_our_keys),
        cmocka_unit_test(a_trace_id_of_ones_own_replaces_ours),
        cmocka_unit_test(of_a_key_said_twice_the_last_value_counts),
        cmocka_unit_test(a_lone_process_is_rank_0_of_1),
        cmocka_unit_test(what_the_process_group_said_is_the_rank),
        cmocka_unit_test(a_range_that_ended_a_step_says_so),
        cmocka_unit_test(an_unfinished_op_ends_with_the_window_and_says_so),
        cmocka_unit_test(lost_names_and_drops_are_told),
        cmocka_unit_test(a_cycle_without_events_writes_no_file),
        cmocka_unit_test(every_failing_call_leaves_no_file_behind),
        cmocka_unit_test(progress_may_stop_the_export),
        cmocka_unit_test(files_never_replace_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

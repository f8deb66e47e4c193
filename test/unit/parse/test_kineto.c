// SPDX-License-Identifier: Apache-2.0
/* test_kineto.c - reading Kineto-shaped JSON */
#include "export/read/kineto/kineto_facts.h"
#include "export/read/parse/kineto_parse.h"
#include "test/support/support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "export/read/kineto/kineto.h"
#include "test/support/kineto_text.h"

static struct kp_kineto *parse(const char *json)
{
    struct kp_kineto *trace;
    char why[256] = "";
    int rc = kineto_text_read(&trace, json, strlen(json), true, why, sizeof why);
    if (rc) fail_msg("%s", why);
    return trace;
}

static int64_t ns(const char *text) { return kp_kineto_ns(text, strlen(text)); }

static void times_are_exact_nanoseconds(void **state)
{
    (void)state;
    assert_int_equal(ns("4360071032877.539"), 4360071032877539);
    assert_int_equal(ns("12"), 12000);
    assert_int_equal(ns("0.5"), 500);
    assert_int_equal(ns("0.0015"), 2);
    assert_int_equal(ns("0.00149"), 1);
    assert_int_equal(ns("-1.250"), -1250);
    assert_int_equal(ns("1621401187223005.25"), 1621401187223005250);
    assert_int_equal(ns("1.5e3"), 1500000);
    assert_int_equal(ns(""), 0);
}

static void events_tell_what_old_heads_do_not(void **state)
{
    (void)state;
    struct kp_kineto *t =
        parse("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::mm\",\"pid\":7,\"tid\":8,"
              "\"ts\":1,\"dur\":2,\"args\":{\"Input dims\":[[2,3],[]]}},"
              "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":7,\"tid\":8,\"ts\":2,"
              "\"args\":{\"Device Type\":1,\"Device Id\":0,\"Bytes\":-512}}]}");
    assert_true(t->record_shapes);
    assert_int_equal(t->count, 2);
    assert_int_equal(t->events[1].kind, KP_KINETO_MEMORY);
    assert_int_equal(t->events[1].number, -512);
    assert_int_equal(t->memory_count, 1);
    kp_kineto_close(t);
    t = parse("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":7,\"tid\":8,"
              "\"ts\":1,\"dur\":2,\"args\":{\"Input Dims\":[[],[]]}}]}");
    assert_false(t->record_shapes);
    kp_kineto_close(t);
}

static void an_event_has_all_its_fields(void **state)
{
    (void)state;
    struct kp_kineto *t = parse(
        "{\"schemaVersion\":1,\"with_flops\":1,\"other\":{\"traceEvents\":[1,[2]]},\"baseTimeNanoseconds\":1000000,"
        "\"traceEvents\":[{\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"x\"}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::\\u00e4\",\"pid\":7,\"tid\":8,\"ts\":1.5,\"dur\":2.25,"
        "\"args\":"
        "{\"External id\":3,\"Sequence number\":4,\"Fwd thread id\":1,\"Ev Idx\":9,"
        "\"Input Dims\":[[2,3],[[1],[2,2]],[]],\"deep\":{\"Ev Idx\":5},\"Call stack\":\"a;b;\"}}],\"tail\":[]}");
    assert_int_equal(t->count, 1);
    const struct kp_kineto_event *e = &t->events[0];
    assert_int_equal(e->kind, KP_KINETO_OP);
    assert_string_equal(kp_kineto_text(t, e->name), "aten::\xc3\xa4");
    assert_int_equal(t->args_bytes, e->args_bytes); /* what is not kept leaves no text */
    assert_int_equal(e->start_ns, 1000000 + 1500);
    assert_int_equal(e->dur_ns, 2250);
    assert_int_equal(e->pid, 7);
    assert_int_equal(e->tid, 8);
    assert_int_equal(e->external_id, 3);
    assert_int_equal(e->number, 4);
    assert_int_equal(e->fwd_tid, 1);
    assert_int_equal(e->index, 9);
    assert_string_equal(kp_kineto_text(t, e->shapes), "[[2, 3], [], []]");
    assert_string_equal(kp_kineto_text(t, e->stack), "a;b;");
    assert_true(t->with_flops);
    assert_memory_equal(t->args_text, "{\"External id\":3,\"Seq", 20);
    assert_int_equal(t->args_text[e->args_bytes - 1], '}');
    kp_kineto_close(t);
}

static void the_program_is_the_first_process_that_is_no_device(void **state)
{
    (void)state;
    struct kp_kineto *t =
        parse("{\"traceEvents\":[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":9,\"args\":{\"name\":\"MTIA 9\"}},"
              "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":71,\"args\":{\"name\":\"worker 3\"}},"
              "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":72,\"args\":{\"name\":\"other\"}},"
              "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":71,\"tid\":8,\"ts\":1,\"dur\":2}]}");
    assert_string_equal(kp_kineto_text(t, t->program), "worker 3");
    kp_kineto_close(t);
}

static void arguments_are_kept_as_they_stood(void **state)
{
    static const char args[] =
        "{\"External id\":3,\"Concrete Inputs\":[\"[6, 3]\",\"\"],\"Input type\":[\"float\",[\"c\",1]],\"Input "
        "Strides\":[[3,1],[]],"
        "\"Input "
        "Dims\":[[6,3],[[1],[2]]],\"grid\":[1,2,3],\"occupancy\":{\"a\":[],\"b\":null},\"x\":1.50,\"finished\":false}";
    char text[1024];
    (void)state;
    snprintf(text, sizeof text,
             "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"ts\":1,\"dur\":2,\"args\":%s}]}",
             args);
    struct kp_kineto *t = parse(text);
    assert_int_equal(t->events[0].args_bytes, sizeof args - 1);
    assert_memory_equal(t->args_text, args, sizeof args - 1);
    kp_kineto_close(t);
}

static bool is_kept(const void *context, const struct kp_kineto *trace, const struct kp_kineto_event *event)
{
    return strcmp(kp_kineto_text(trace, event->name), context) == 0;
}

static void events_that_are_not_wanted_take_no_memory(void **state)
{
    char path[512], why[256];
    struct kp_kineto *t;
    (void)state;
    snprintf(path, sizeof path, "%s/some.json", kp_test_tmpdir());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"early\",\"ts\":5,\"dur\":1,\"args\":{\"k\":1}},"
          "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"asked\",\"ts\":9,\"dur\":1,\"args\":{\"k\":2}},"
          "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"late\",\"ts\":12,\"dur\":1,\"args\":{\"k\":3}}]",
          file);
    fclose(file);
    const struct kp_kineto_wish wish = {
        .texts = {kp_text_file_each, path}, .label = path, .keep_args = true, .keep = is_kept, .context = "asked"};
    assert_int_equal(kp_kineto_read(&t, &wish, why, sizeof why), 0);
    assert_int_equal(t->count, 1);
    assert_int_equal(t->args_bytes, sizeof "{'k':2}" - 1);
    assert_memory_equal(t->args_text, "{\"k\":2}", 7);
    assert_int_equal(t->start_ns, 5000); /* of all events */
    kp_kineto_close(t);
    unlink(path);
}

static void a_trace_without_a_profiler_span_starts_at_its_first_event(void **state)
{
    (void)state;
    struct kp_kineto *t = parse("[{\"ph\":\"X\",\"name\":\"b\",\"ts\":9,\"dur\":1,\"pid\":\"p\",\"tid\":\"stream 7\"},"
                                "{\"ph\":\"X\",\"name\":\"a\",\"ts\":5,\"dur\":1,\"pid\":1,\"tid\":1}]");
    assert_int_equal(t->count, 2);
    assert_int_equal(t->start_ns, 5000);
    assert_true(t->events[0].flags & KP_KINETO_TEXT_TID);
    assert_string_equal(kp_kineto_text(t, (uint32_t)t->events[0].tid), "stream 7");
    kp_kineto_close(t);
}

static void old_files_have_their_own_names_for_things(void **state)
{
    (void)state;
    struct kp_kineto *t =
        parse("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::mm\",\"pid\":\"1\",\"tid\":\"2\","
              "\"ts\":1621401187223005,\"dur\":40,\"args\":{\"external id\":12,\"Input dims\":[[1]]}}]}");
    assert_int_equal(t->events[0].kind, KP_KINETO_OP);
    assert_int_equal(t->events[0].external_id, 12);
    assert_int_equal(t->events[0].start_ns, 1621401187223005000);
    assert_string_equal(kp_kineto_text(t, t->events[0].shapes), "[[1]]");
    kp_kineto_close(t);
}

static void every_cut_of_a_file_is_refused_and_none_crashes(void **state)
{
    const char *json =
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\\u00e9\",\"ts\":1.0,\"dur\":2.0,"
        "\"args\":{\"Input Dims\":[[2,3],[[1]]],\"Concrete Inputs\":[\"\",\"x\"]}}]}";
    (void)state;
    for (size_t bytes = 0; bytes < strlen(json); bytes++) {
        struct kp_kineto *t;
        char why[256], *copy = malloc(bytes + 1);
        memcpy(copy, json, bytes);
        assert_int_equal(kineto_text_read(&t, copy, bytes, true, why, sizeof why), -EINVAL);
        char wanted[32];
        snprintf(wanted, sizeof wanted, "byte %zu:", bytes);
        assert_non_null(strstr(why, wanted));
        kp_kineto_close(t);
        free(copy);
    }
}

static void trash_is_told_with_its_byte(void **state)
{
    struct kp_kineto *t;
    char why[256];
    (void)state;
    assert_int_equal(kineto_text_read(&t, "{\"a\": nope}", 11, false, why, sizeof why), -EINVAL);
    assert_null(t);
    assert_non_null(strstr(why, "byte "));
    assert_null(strchr(why, '\n'));
}

/* Python writes NaN and Infinity, C inf and nan. */
static void what_is_no_number_in_json_is_told_as_that(void **state)
{
    static const char *const words[] = {"NaN", "-Infinity", "inf", "-inf", "nan", "-nan", "-nan(ind)", "INF"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct kp_kineto *t;
        char text[128], why[256];
        snprintf(text, sizeof text, "{\"traceEvents\":[{\"ph\":\"X\",\"dur\":%s}]}", words[i]);
        assert_int_equal(kineto_text_read(&t, text, strlen(text), false, why, sizeof why), -EINVAL);
        assert_non_null(strstr(why, "place of a number"));
    }
}

static void json_without_a_list_of_events_is_no_trace(void **state)
{
    static const char *const foreign[] = {"{\"a\":1}", "{}", "5", "{\"a\":{\"traceEvents\":[]}}"};
    struct kp_kineto *t;
    char why[256];
    (void)state;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        assert_int_equal(kineto_text_read(&t, foreign[i], strlen(foreign[i]), false, why, sizeof why), -EINVAL);
        assert_null(t);
        assert_non_null(strstr(why, "not a trace"));
        char wanted[32];
        snprintf(wanted, sizeof wanted, "byte %zu:", strlen(foreign[i]));
        assert_non_null(strstr(why, wanted));
    }
    kp_kineto_close(parse("{\"traceEvents\":[]}"));
    kp_kineto_close(parse("[]"));
}

static void a_missing_file_and_a_folder_are_errors(void **state)
{
    struct kp_kineto *t;
    char why[256];
    (void)state;
    assert_int_equal(kineto_file_read(&t, "does/not/exist", why, sizeof why), -ENOENT);
    assert_non_null(strstr(why, "does/not/exist"));
    assert_true(kineto_file_read(&t, ".", why, sizeof why) < 0);
    assert_true(why[0] != 0);
}

static void a_gzip_file_is_read_like_a_plain_one(void **state)
{
    char path[512], why[256];
    struct kp_kineto *t;
    (void)state;
    snprintf(path, sizeof path, "%s/t.json.gz", kp_test_tmpdir());
    gzFile file = gzopen(path, "wb");
    gzputs(file, "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":2}]}");
    gzclose(file);
    assert_int_equal(kineto_file_read(&t, path, why, sizeof why), 0);
    assert_int_equal(t->count, 1);
    assert_int_equal(t->events[0].kind, KP_KINETO_GPU);
    kp_kineto_close(t);
    assert_int_equal(truncate(path, 40), 0);
    assert_int_equal(kineto_file_read(&t, path, why, sizeof why), -EINVAL);
    assert_non_null(strstr(why, "byte "));
    kp_kineto_close(t);
    unlink(path);
}

/* Enough of it that it is read in several pieces, and unpacked in more. */
static void a_zstd_file_is_read_like_a_plain_one(void **state)
{
    enum { KERNELS = 20000 };
    static const char event[] = "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%06d\",\"ts\":%d,\"dur\":2}%s";
    char path[512], why[256] = "", *text;
    size_t bytes;
    struct kp_kineto *t;
    (void)state;
    FILE *out = open_memstream(&text, &bytes);
    fputs("{\"traceEvents\":[", out);
    for (int i = 0; i < KERNELS; i++) fprintf(out, event, i * 7919 % 999983, 10 * i, i + 1 < KERNELS ? "," : "]}");
    fclose(out);
    const size_t room = ZSTD_compressBound(bytes);
    char *packed = malloc(room);
    const size_t packed_bytes = ZSTD_compress(packed, room, text, bytes, 1);
    assert_false(ZSTD_isError(packed_bytes));
    for (int damage = 0; damage < 3; damage++) {
        snprintf(path, sizeof path, "%s/t.json.zst", kp_test_tmpdir());
        if (damage == 2) memset(packed + packed_bytes / 2, 0x5a, 64);
        out = fopen(path, "w");
        assert_non_null(out);
        fwrite(packed, 1, damage == 1 ? packed_bytes / 2 : packed_bytes, out);
        fclose(out);
        const int rc = kineto_file_read(&t, path, why, sizeof why);
        if (damage == 0) assert_int_equal(rc, 0);
        if (damage == 0) assert_int_equal(t->count, KERNELS);
        if (damage == 1) assert_int_equal(rc, -EINVAL); /* the JSON is cut, too */
        if (damage == 2) assert_true(rc == -EIO || rc == -EINVAL);
        if (damage) assert_non_null(strstr(why, "byte "));
        kp_kineto_close(t);
        unlink(path);
    }
    free(packed);
    free(text);
}

static void equal_strings_share_an_id(void **state)
{
    struct kp_strings *s = kp_strings_open();
    char name[16];
    (void)state;
    assert_int_equal(kp_strings_put(s, "", 0), 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            int bytes = snprintf(name, sizeof name, "n%d", i);
            assert_int_equal(kp_strings_put(s, name, (size_t)bytes), i + 1);
        }
    assert_string_equal(kp_strings_get(s, 4321), "n4320");
    kp_strings_close(s);
}

static void a_chain_has_an_id_at_once_and_a_text_when_asked(void **state)
{
    struct kp_strings *s = kp_strings_open(), *other = kp_strings_open();
    const uint32_t a = kp_strings_put(s, "a", 1), b = kp_strings_put(s, "bb", 2);
    const uint32_t outer = kp_strings_chain(s, a, 0), inner = kp_strings_chain(s, b, outer);
    uint32_t head, tail, at = 0;
    (void)state;
    assert_int_equal(kp_strings_chain(s, b, outer), inner);
    assert_int_not_equal(kp_strings_chain(s, a, outer), inner);
    assert_true(kp_strings_is_chain(s, inner, &head, &tail) && head == b && tail == outer);
    assert_false(kp_strings_is_chain(s, a, &head, &tail));
    assert_false(kp_strings_is_chain(s, 0, &head, &tail));
    assert_string_equal(kp_strings_get(s, inner), "bb;a;");
    assert_string_equal(kp_strings_get(s, kp_strings_chain(s, a, inner)), "a;bb;a;"); /* from the text of its tail */
    assert_string_equal(kp_strings_get(s, outer), "a;");
    assert_string_equal(kp_strings_get(other, kp_strings_put_from(other, s, inner)), "bb;a;");
    for (int i = 0; i < 5000; i++) at = kp_strings_chain(s, i % 2 ? a : b, at); /* the table of slots grows */
    assert_true(kp_strings_is_chain(s, at, &head, &tail));
    assert_int_equal(kp_strings_chain(s, head, tail), at);
    assert_int_equal(strlen(kp_strings_get(s, at)), 2500 * 5);
    kp_strings_close(s);
    kp_strings_close(other);
}

/* A key may hold a NUL: what stands before it is not the key, and nothing behind the table's text is looked at. */
static void a_key_with_a_nul_in_it_is_another_key(void **state)
{
    enum { LONG = 1 << 20 };
    static const char
        begin[] = "{\"kprof\\u0000",
        middle[] = "\":1,\"traceEvents\":[{\"ph\":\"X\",\"name\\u0000x\":\"no\",\"name\":\"yes\",\"ts\":1,\"dur\":1}]}";
    char *json = malloc(LONG + sizeof begin + sizeof middle);
    size_t n = sizeof begin - 1;
    (void)state;
    memcpy(json, begin, n);
    memset(json + n, 'A', LONG);
    memcpy(json + n + LONG, middle, sizeof middle);
    struct kp_kineto *t = parse(json);
    assert_false(t->is_ours);
    assert_int_equal(t->count, 1);
    assert_string_equal(kp_kineto_text(t, t->events[0].name), "yes");
    kp_kineto_close(t);
    free(json);
}

/* ---- all cores ---- */

struct pieces {
    const char *text;
    size_t bytes, piece;
};

static int pieces_each(const void *from, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    const struct pieces *p = from;
    (void)why, (void)why_bytes;
    for (size_t at = 0; at < p->bytes; at += p->piece) {
        const int rc = take(context, p->text + at, p->bytes - at < p->piece ? p->bytes - at : p->piece);
        if (rc) return rc;
    }
    return 0;
}

static int cut_read(struct kp_kineto **out, const char *text, size_t bytes, size_t piece, unsigned workers, char *why)
{
    const struct kp_kineto_cutting before = kp_kineto_cutting;
    const struct pieces from = {text, bytes, piece};
    const struct kp_kineto_wish wish = {
        .texts = {pieces_each, &from}, .label = "text", .keep_args = piece != 64, .keep_works = true};
    kp_kineto_cutting = (struct kp_kineto_cutting){workers, 700};
    const int rc = kp_kineto_read(out, &wish, why, 256);
    kp_kineto_cutting = before;
    return rc;
}

static void same_text(const struct kp_kineto *a, uint32_t in_a, const struct kp_kineto *b, uint32_t in_b)
{
    assert_int_equal(in_a, in_b);
    assert_string_equal(kp_kineto_text(a, in_a), kp_kineto_text(b, in_b));
}

static void same_trace(const struct kp_kineto *a, const struct kp_kineto *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->seen, b->seen);
    for (size_t i = 0; i < a->count; i++) {
        assert_memory_equal(&a->events[i], &b->events[i], sizeof a->events[i]);
        same_text(a, a->events[i].name, b, b->events[i].name);
        same_text(a, a->events[i].stack, b, b->events[i].stack);
    }
    assert_int_equal(a->memory_count, b->memory_count);
    assert_true(!a->memory_count || !memcmp(a->memory, b->memory, a->memory_count * sizeof *a->memory));
    assert_int_equal(a->work_count, b->work_count);
    for (size_t i = 0; i < a->work_count; i++) {
        const struct kp_kineto_work *x = &a->works[i], *y = &b->works[i];
        assert_true(x->event == y->event && x->stream == y->stream && x->bytes == y->bytes);
        assert_memory_equal(x->grid, y->grid, sizeof x->grid);
        assert_memory_equal(x->block, y->block, sizeof x->block);
    }
    assert_int_equal(a->args_bytes, b->args_bytes);
    assert_true(!a->args_bytes || !memcmp(a->args_text, b->args_text, a->args_bytes));
    assert_int_equal(kp_strings_count(a->strings), kp_strings_count(b->strings));
    same_text(a, a->program, b, b->program);
    assert_int_equal(a->start_ns, b->start_ns);
    assert_int_equal(a->first_ns, b->first_ns);
    assert_int_equal(a->end_ns, b->end_ns);
    assert_int_equal(a->fact_count, b->fact_count);
    assert_int_equal(a->has_stacks, b->has_stacks);
}

/* One thread and three, in pieces of several lengths: the same trace, or the same line of error. */
static void same_by_cores(const char *text, size_t bytes)
{
    static const size_t pieces[] = {1000000, 997, 64};
    char why[256], why_cut[256];
    struct kp_kineto *whole, *cut;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        const int rc = cut_read(&whole, text, bytes, pieces[i], 1, why);
        assert_int_equal(cut_read(&cut, text, bytes, pieces[i], 3, why_cut), rc);
        assert_string_equal(why, why_cut);
        assert_int_equal(whole != NULL, cut != NULL);
        if (whole) same_trace(whole, cut);
        kp_kineto_close(whole);
        kp_kineto_close(cut);
    }
}

/* Events of each kind, with what a cut could be mistaken for: in strings, in lists of args, in other lists. */
static char *many_events(const char *odd, size_t *bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);
    fputs("{\"host_name\":\"h\",\"list\":[{\"ph\":1}, {\"ph\":2}],\"traceEvents\":[\n", out);
    for (int i = 0; i < 400; i++) {
        if (i) fputs(i % 2 ? ",\n  " : " , ", out);
        if (i == 250) fputs(odd, out);
        if (i % 50 == 20) fputs("{\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"python\"}}", out);
        else if (i % 7 == 3)
            fprintf(out,
                    "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"ts\":%d.5,\"pid\":1,"
                    "\"tid\":\"stream %d\",\"args\":{\"Bytes\":-%d,\"Addr\":%d}}",
                    5000 - i, i % 3, i, i);
        else if (i % 7 == 4)
            fprintf(out,
                    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\\n\\/%d\",\"ts\":%d.25e1,\"dur\":-0.5,\"args\":{"
                    "\"stream\":%d,\"grid\":[%d,2,1],\"block\":[64,1,1],\"est. achieved occupancy %%\":75.5}}",
                    i % 3, 9000 - i, i % 4, i + 1);
        else
            fprintf(out,
                    "{\"ph\": \"X\",\"cat\":\"cpu_op\",\"name\":\"}, {\\\"ph\\\" %d %s\",\"ts\":%d,\"dur\":2,"
                    "\"args\":{\"l\":[{\"ph\":1}, {\"ph\":2}],\"Input Dims\":[[%d,2]],\"Call stack\":\"a%d;\"}}",
                    i % 11, i % 40 == 1 ? "\\u0000z" : "\\tz", 9000 - i, i % 5, i % 13);
    }
    fputs("\n],\"more\":[{\"a\":1}, {\"ph\":2}],\"traceName\":\"t\"}", out);
    fclose(out);
    return text;
}

static void works_and_the_first_device_are_kept_where_they_are_wanted(void **state)
{
    static const char text[] =
        "{\"deviceProperties\":[{\"id\":0,\"name\":\"A\",\"deep\":{\"a\":1}},{\"id\":1,\"name\":\"B\"}],"
        "\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"ts\":1,\"dur\":1,\"args\":{\"stream\":5}},"
        "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"c\",\"ts\":2,\"dur\":1,\"args\":{\"stream\":7,\"bytes\":4096}}"
        ","
        "{\"args\":{\"stream\":9,\"grid\":[2,3,4],\"block\":[8],\"shared memory\":16,\"registers per "
        "thread\":40,\"blocks per "
        "SM\":0.25},\"ph\":\"X\",\"ts\":3,\"dur\":1,"
        "\"name\":\"k\",\"cat\":\"kernel\"},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"nccl\",\"ts\":4,\"dur\":1,\"args\":{\"stream\":9,\"Collective "
        "name\":"
        "\"allreduce\",\"dtype\":\"BFloat16\",\"In msg nelems\":1000,\"Out msg nelems\":1000,\"Group size\":4,"
        "\"Process Group Name\":\"1\",\"Seq\":17}}],\"with_stack\":1}";
    struct kp_kineto *t;
    char why[256];
    (void)state;
    assert_int_equal(cut_read(&t, text, sizeof text - 1, 64, 1, why), 0);
    assert_int_equal(t->count, 4);
    assert_int_equal(t->work_count, 3);
    assert_int_equal(t->args_bytes, 0);
    assert_null(kp_kineto_work_of(t, 0));
    assert_int_equal(kp_kineto_work_of(t, 2)->sequence, -1);
    assert_int_equal(kp_kineto_work_of(t, 3)->sequence, 17);
    assert_int_equal(kp_kineto_work_of(t, 3)->bus_bytes, 3000); /* 2000 bytes, 2 x 3/4 */
    assert_true(kp_kineto_work_of(t, 3)->group && !kp_kineto_work_of(t, 2)->group);
    assert_int_equal(kp_kineto_work_of(t, 1)->bytes, 4096);
    assert_int_equal(kp_kineto_work_of(t, 1)->stream, 7);
    static const uint32_t grid[] = {2, 3, 4}, block[] = {8, 1, 1}, none[3];
    assert_memory_equal(kp_kineto_work_of(t, 2)->grid, grid, sizeof grid);
    assert_memory_equal(kp_kineto_work_of(t, 2)->block, block, sizeof block);
    assert_memory_equal(kp_kineto_work_of(t, 3)->grid, none, sizeof none);
    assert_int_equal(kp_kineto_work_of(t, 2)->registers, 40);
    assert_int_equal(kp_kineto_work_of(t, 2)->shared, 16);
    assert_int_equal(kp_kineto_work_of(t, 3)->shared, -1);
    assert_float_equal(kp_kineto_work_of(t, 2)->blocks_per_sm, 0.25, 0);
    assert_float_equal(kp_kineto_work_of(t, 2)->occupancy, -1, 0);
    assert_string_equal(kp_kineto_fact(t, "deviceProperties.name"), "A");
    assert_string_equal(kp_kineto_fact(t, "deviceProperties.deep.a"), "1");
    assert_true(t->with_stack);
    kp_kineto_close(t);
}

/* No args were read before it, so there is no text of them at all. */
static void a_work_without_args_may_come_first(void **state)
{
    static const char text[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":1}]}";
    struct kp_kineto *t;
    char why[256];
    (void)state;
    assert_int_equal(cut_read(&t, text, sizeof text - 1, 64, 1, why), 0);
    assert_int_equal(t->work_count, 1);
    assert_int_equal(t->works[0].stream, kp_kineto_work_of(t, 0)->stream);
    kp_kineto_close(t);
}

/* A quote behind an event begins a string, and in it stands what a cut looks for, at all places in a block. */
static void a_cut_in_a_string_behind_an_event_is_none(void **state)
{
    (void)state;
    for (int pad = 0; pad < 760; pad += 40) {
        char odd[900];
        size_t bytes;
        snprintf(odd, sizeof odd, "{\"ph\":\"X\",\"pad\":\"%0*d\"}\"}, ", pad, 0);
        char *text = many_events(odd, &bytes);
        same_by_cores(text, bytes);
        free(text);
    }
}

static void all_cores_read_what_one_reads(void **state)
{
    static const char *const odd[] = {
        "",
        "5, [{\"ph\":1}, {\"ph\":2}], ",
        "{\"ph\":\"X\",,}, ",
        "NaN, ",
        "-inf, ",
        "nan, ",
        "{\"ph\":\"X\",\"ts\":NaN}, ",
        "{\"ph\":\"X\",\"ts\":01}, ",
        "{\"ph\":\"X\",\"ts\":1.}, ",
        "{\"ph\":\"X\",\"args\":{\"a\":\"\\q\"}}, ",
        "{\"ph\":\"X\",\"args\":{\"a\":\"\t\"}}, ",
        "{\"ph\":\"X\",\"args\":{\"a\":truest}}, ",
        "{\"ph\":\"X\",\"args\":{\"a\" 1}}, ",
        "{\"ph\":\"X\",\"args\":{1:1}}, ",
        "{\"ph\":\"X\",\"args\":[1}, ",
        "-1.5E+30, true, false, null, \"a\", [[], {}], ",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]], ",
        "], \"traceEvents\":[",
        "]",
        "}, ",
        "{\"ph\":\"X",
        "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"ts\":-7.25,\"dur\":9},"};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        size_t bytes;
        char *text = many_events(odd[i], &bytes);
        same_by_cores(text, bytes);
        for (size_t cut = 1; cut < bytes && !odd[i][0]; cut += 1009) same_by_cores(text, cut);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_exact_nanoseconds),
        cmocka_unit_test(an_event_has_all_its_fields),
        cmocka_unit_test(events_tell_what_old_heads_do_not),
        cmocka_unit_test(the_program_is_the_first_process_that_is_no_device),
        cmocka_unit_test(arguments_are_kept_as_they_stood),
        cmocka_unit_test(events_that_are_not_wanted_take_no_memory),
        cmocka_unit_test(a_trace_without_a_profiler_span_starts_at_its_first_event),
        cmocka_unit_test(old_files_have_their_own_names_for_things),
        cmocka_unit_test(every_cut_of_a_file_is_refused_and_none_crashes),
        cmocka_unit_test(trash_is_told_with_its_byte),
        cmocka_unit_test(what_is_no_number_in_json_is_told_as_that),
        cmocka_unit_test(json_without_a_list_of_events_is_no_trace),
        cmocka_unit_test(a_missing_file_and_a_folder_are_errors),
        cmocka_unit_test(a_gzip_file_is_read_like_a_plain_one),
        cmocka_unit_test(a_zstd_file_is_read_like_a_plain_one),
        cmocka_unit_test(equal_strings_share_an_id),
        cmocka_unit_test(a_chain_has_an_id_at_once_and_a_text_when_asked),
        cmocka_unit_test(a_key_with_a_nul_in_it_is_another_key),
        cmocka_unit_test(works_and_the_first_device_are_kept_where_they_are_wanted),
        cmocka_unit_test(all_cores_read_what_one_reads),
        cmocka_unit_test(a_cut_in_a_string_behind_an_event_is_none),
        cmocka_unit_test(a_work_without_args_may_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

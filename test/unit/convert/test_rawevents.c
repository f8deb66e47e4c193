// SPDX-License-Identifier: Apache-2.0
/* test_rawevents.c - text in pieces of any size, its events and what is around them */
#include "export/answers/convert/convert.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/parse/kineto_parse.h"
#include "test/support/support.h"

struct source {
    const char *text;
    size_t piece;
};
struct seen {
    char events[4096], rest[4096];
};

static int pieces_each(const void *from, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    const struct source *s = from;
    (void)why, (void)why_bytes;
    for (size_t at = 0, bytes = strlen(s->text); at < bytes; at += s->piece) {
        /* each piece ends where its memory ends, so that reading beyond it is caught */
        const size_t now = bytes - at < s->piece ? bytes - at : s->piece;
        char *copy = malloc(now);
        memcpy(copy, s->text + at, now);
        const int rc = take(context, copy, now);
        free(copy);
        if (rc) return rc;
    }
    return 0;
}

static int event_take(void *context, const struct kp_raw_event *e)
{
    struct seen *s = context;
    char name[256];
    kp_jsonvalue_text(name, sizeof name, e->of[KP_RAW_NAME]);
    snprintf(s->events + strlen(s->events), sizeof s->events - strlen(s->events), "%c %s %lld-%lld|", e->phase, name,
             (long long)e->start_ns, (long long)e->end_ns);
    return 0;
}

static int rest_take(void *context, const char *text, size_t bytes, bool is_before)
{
    struct seen *s = context;
    snprintf(s->rest + strlen(s->rest), sizeof s->rest - strlen(s->rest), "%s%.*s", is_before ? "" : "~", (int)bytes,
             text);
    return 0;
}

static struct seen read_all(const char *text, size_t piece)
{
    const struct source source = {text, piece};
    struct seen seen = {{0}, {0}};
    char why[128];
    assert_int_equal(kp_raw_read(&(struct kp_texts){pieces_each, &source},
                                 &(struct kp_raw_calls){event_take, rest_take}, &seen, why, sizeof why),
                     0);
    return seen;
}

#define TRACE                                                                              \
    "{\"a\":{\"traceEvents\":[1]},\"traceEvents\" : [\n{\"ph\":\"X\",\"name\":\"a \\\"}] " \
    "\\u00e9\",\"ts\":1.5,\"dur\":2,"                                                      \
    "\"args\":{\"name\":\"no\",\"x\":[{}]}}, 7, {\"ts\":\"3\",\"ph\":\"i\",\"name\":\"b\"}\n],\"z\":[{\"ph\":\"X\"}]}"

static void events_are_the_same_in_pieces_of_any_size(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < sizeof TRACE; piece++) {
        const struct seen seen = read_all(TRACE, piece);
        assert_string_equal(seen.events, "X a \"}] \xc3\xa9 1500-3500|i b 3000-3000|");
    }
    assert_string_equal(read_all(TRACE, sizeof TRACE).rest,
                        "{\"a\":{\"traceEvents\":[1]},\"traceEvents\" : [~],\"z\":[{\"ph\":\"X\"}]}");
}

static void a_list_alone_is_a_trace(void **state)
{
    (void)state;
    assert_string_equal(read_all("[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"n\"}]", 7).events, "X n 1000-2000|");
}

static void what_is_no_trace_gives_nothing(void **state)
{
    static const char *const texts[] = {
        "", "{}", "\"", "]]]}}}", "{\"traceEvents\":[{\"ph\":\"X\"", "[[{}]]", "{\"traceEvents\":{}}", "\\\\\"[{"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t piece = 1; piece < 9; piece++) assert_string_equal(read_all(texts[i], piece).events, "");
    (void)read_all("[{\"name\"}{\"name\":}{\"name\":\"\\u12\"}{\"name\":\"\\", 3);
}

/* ---- cuts ---- */

struct written {
    char text[4096];
    size_t used;
};

static int text_put(void *context, const char *text, size_t bytes)
{
    struct written *w = context;
    assert_true(w->used + bytes < sizeof w->text);
    memcpy(w->text + w->used, text, bytes);
    w->used += bytes;
    return 0;
}

#define X(name, ts, dur) "{\"ph\":\"X\",\"name\":\"" name "\",\"ts\":" #ts ",\"dur\":" #dur ",\"pid\":1}"
#define FLOW(ph, id, ts) "{\"ph\":\"" ph "\",\"cat\":\"ac2g\",\"id\":" #id ",\"ts\":" #ts "}"

static void a_cut_shortens_what_sticks_out_and_keeps_whole_flows(void **state)
{
    static const char text[] = "{\"traceEvents\":[" X("main", 0, 100) "," X("early", 0, 10) "," X("in", 12, 3) "," X(
        "late", 18, 9) ",{\"ph\":\"M\",\"name\":\"m\"}," FLOW("s", 1, 12) "," FLOW("f", 1,
                                                                                   19) "," FLOW("s", 2,
                                                                                                13) "," FLOW("f", 2,
                                                                                                             20) "]}";
    const struct source source = {text, 5};
    struct kp_spans spans = {0};
    struct written w = {{0}, 0};
    size_t kept;
    char why[128];
    (void)state;
    kp_spans_add(&spans, 10000, 20000);
    kp_spans_settle(&spans);
    const struct kp_cut cut = {.spans = &spans, .first_step = -1, .last_step = -1};
    assert_int_equal(kp_tracecut(&(struct kp_texts){pieces_each, &source}, &cut, text_put, &w, &kept, why, sizeof why),
                     0);
    kp_spans_fini(&spans);
    assert_int_equal(kept, 3);
    assert_string_equal(
        w.text, "{\"traceEvents\":[\n"
                "{\"ph\":\"X\",\"name\":\"main\",\"ts\":10.000,\"dur\":10.000,\"pid\":1},\n" X(
                    "in", 12, 3) ",\n"
                                 "{\"ph\":\"X\",\"name\":\"late\",\"ts\":18.000,\"dur\":2.000,\"pid\":1},\n"
                                 "{\"ph\":\"M\",\"name\":\"m\"},\n" FLOW("s", 1, 12) ",\n" FLOW("f", 1, 19) "]}");
}

/* A GPU does work when the part is over: it belongs to its call. What it does there for earlier ones stays, too. */
static void work_of_a_gpu_is_cut_by_its_call(void **state)
{
#define CALL(id, ts) \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"ts\":" #ts ",\"dur\":1,\"args\":{\"correlation\":" #id "}}"
#define WORK(id, ts) "{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":" #ts ",\"dur\":9,\"args\":{\"correlation\":" #id "}}"
#define SHORT(id, ts, dur) \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{\"correlation\":" #id "}}"
#define MORE "{\"ph\":\"X\",\"name\":\"ProfilerStep#1\",\"ts\":10,\"dur\":10}"
    static const char text[] = "{\"traceEvents\":[" CALL(1, 5) "," WORK(1, 12) "," CALL(2, 12) "," WORK(2, 25) "," FLOW(
        "s", 1, 5) "," FLOW("f", 1, 12) "," FLOW("s", 2, 12) "," FLOW("f", 2, 25) "," WORK(3, 18) "]}";
    const struct source source = {text, 5};
    struct kp_spans spans = {0};
    struct written w = {{0}, 0};
    size_t kept;
    char why[128];
    (void)state;
    kp_spans_add(&spans, 10000, 20000);
    kp_spans_settle(&spans);
    const struct kp_cut cut = {.spans = &spans, .first_step = -1, .last_step = -1, .more = MORE};
    assert_int_equal(kp_tracecut(&(struct kp_texts){pieces_each, &source}, &cut, text_put, &w, &kept, why, sizeof why),
                     0);
    kp_spans_fini(&spans);
    assert_string_equal(w.text,
                        "{\"traceEvents\":[\n" MORE ",\n" SHORT(1, 12.000, 8.000) ",\n" CALL(2, 12) ",\n" WORK(
                            2, 25) ",\n" FLOW("s", 2, 12) ",\n" FLOW("f", 2, 25) ",\n" SHORT(3, 18.000, 2.000) "]}");
    assert_int_equal(kept, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_the_same_in_pieces_of_any_size),
        cmocka_unit_test(a_list_alone_is_a_trace),
        cmocka_unit_test(what_is_no_trace_gives_nothing),
        cmocka_unit_test(a_cut_shortens_what_sticks_out_and_keeps_whole_flows),
        cmocka_unit_test(work_of_a_gpu_is_cut_by_its_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

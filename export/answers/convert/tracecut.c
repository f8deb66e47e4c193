// SPDX-License-Identifier: Apache-2.0
/*
 * tracecut.c - writes a part of a trace as a trace of its own
 *
 * Work of a GPU belongs to the part by the call that launched it, as in the profiler's own windows: it often runs when
 * the part is over. Work in the part for earlier calls stays as well, shortened to the part: else the GPU would look
 * idle there. If the trace has no such call, and for all else, the time decides.
 *
 * Events that were open when a span begins come first, the outer ones first: cut to the span they begin at one time,
 * and may last as long as those inside of them.
 */
#include "export/answers/convert/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "collector/base/kp_search.h"
#include "collector/base/kp_fnv.h"
#include "export/read/store/keyindex.h"
#include "export/read/parse/kineto_parse.h"

enum { FLOW_OPENS = 1, FLOW_ENDS = 2, FLOW_OUTSIDE = 4 };
enum { CALL_INSIDE = 1, CALL_OUTSIDE = 2 };
struct held_event {
    struct kp_raw_event of;
    char *text; /* its own */
    size_t order;
};
struct trace_cut {
    const struct kp_cut *cut;
    kp_convert_fn put;
    void *context;
    struct kp_keyindex flows; /* rows: bits, of category and id */
    struct kp_keyindex calls; /* rows: bits, of correlation */
    struct held_event *held;  /* what is open when a span begins */
    size_t held_count, held_capacity;
    bool are_held_put;
    char *head; /* what stands before the events, until it is written */
    size_t head_bytes;
    const char *more; /* events that are still to be written before the first; NULL: none */
    size_t kept;
    bool any, in_object; /* in_object: the list of events is a member of an object */
    int put_rc;          /* the first error of put */
};

/* ---- what is inside ---- */

static bool is_flow(const struct kp_raw_event *e) { return e->phase == 's' || e->phase == 't' || e->phase == 'f'; }

/* torch's marks of its own window, under names instead of pids, belong to every part. */
static bool is_mark(const struct kp_raw_event *e)
{
    return e->phase == 'i' && kp_jsonvalue_is_string(e->of[KP_RAW_PID]);
}

static bool is_other_step(const struct trace_cut *t, const struct kp_raw_event *e)
{
    static const char step[] = "\"ProfilerStep#";
    const struct kp_jsonvalue name = e->of[KP_RAW_NAME];
    if (t->cut->first_step < 0 || name.bytes < sizeof step || memcmp(name.at, step, sizeof step - 1) != 0) return false;
    const long number = strtol(name.at + sizeof step - 1, NULL, 10);
    return number < t->cut->first_step || number > t->cut->last_step;
}

static bool has_ended(const void *span, const void *ns)
{
    return ((const struct kp_time_span *)span)->end_ns <= *(const int64_t *)ns;
}

/* The first span that ends after a time. */
static size_t span_after(const struct kp_spans *spans, int64_t at_ns)
{
    return kp_search(spans->of, sizeof *spans->of, spans->count, has_ended, &at_ns);
}

static uint64_t text_hash(uint64_t hash, struct kp_jsonvalue text)
{
    hash = kp_fnv64(hash, text.at, text.bytes);
    return hash ^ hash >> 29;
}

static uint8_t *mark_of(struct kp_keyindex *marks, uint64_t hash)
{
    return kp_keyindex_row(marks, hash, &(uint8_t){0}, 1);
}

static uint8_t *flow_of(struct trace_cut *t, const struct kp_raw_event *e)
{
    return mark_of(&t->flows, text_hash(text_hash(KP_FNV64, e->of[KP_RAW_CAT]), e->of[KP_RAW_ID]));
}

static bool is_cat(const struct kp_raw_event *e, const char *const *cats)
{
    const struct kp_jsonvalue cat = e->of[KP_RAW_CAT];
    for (; *cats; cats++)
        if (cat.bytes == strlen(*cats) && memcmp(cat.at, *cats, cat.bytes) == 0) return true;
    return false;
}

static uint8_t *call_of(struct trace_cut *t, const struct kp_raw_event *e)
{
    const struct kp_jsonvalue id = kp_jsonvalue_member(e->of[KP_RAW_ARGS], "correlation");
    return id.at ? mark_of(&t->calls, text_hash(KP_FNV64, id)) : NULL;
}

static void call_note(struct trace_cut *t, const struct kp_raw_event *e)
{
    static const char *const calls[] = {"\"cuda_runtime\"", "\"cuda_driver\"", "\"Runtime\"", NULL};
    uint8_t *const call = is_cat(e, calls) ? call_of(t, e) : NULL;
    if (call) *call |= kp_spans_has(t->cut->spans, e->start_ns) ? CALL_INSIDE : CALL_OUTSIDE;
}

static bool is_work(const struct kp_raw_event *e)
{
    static const char *const works[] = {
        "\"kernel\"", "\"gpu_memcpy\"", "\"gpu_memset\"", "\"Kernel\"", "\"Memcpy\"", "\"Memset\"", NULL};
    return is_cat(e, works);
}

/* The bits of the call that launched this work of a GPU; 0: it is none, or nobody knows. */
static uint8_t launch_of(struct trace_cut *t, const struct kp_raw_event *e)
{
    const uint8_t *const call = is_work(e) ? call_of(t, e) : NULL;
    return call ? *call : 0;
}

/* Was it open when a span begins? Work of a GPU is cut by its call. */
static bool is_open_at_begin(const struct trace_cut *t, const struct kp_raw_event *e)
{
    if (e->phase != 'X' || !e->of[KP_RAW_TS].at || is_work(e) || is_other_step(t, e)) return false;
    const struct kp_spans *const spans = t->cut->spans;
    const size_t at = span_after(spans, e->start_ns);
    return at < spans->count && e->start_ns < spans->of[at].start_ns && e->end_ns > spans->of[at].start_ns;
}

static void hold(struct trace_cut *t, const struct kp_raw_event *e)
{
    struct held_event held = {.of = *e, .text = kp_kineto_room(e->whole.bytes + 1, 1), .order = t->held_count};
    memcpy(held.text, e->whole.at, e->whole.bytes);
    for (size_t i = 0; i < sizeof e->of / sizeof *e->of; i++)
        if (e->of[i].at) held.of.of[i].at = held.text + (e->of[i].at - e->whole.at);
    held.of.whole.at = held.text;
    *KP_KINETO_NEXT(t->held, t->held_count, t->held_capacity) = held;
}

KP_ORDERED(held_order, struct held_event, KP_UP(of.start_ns) KP_DOWN(of.end_ns) KP_UP(order))

static int flow_note(void *context, const struct kp_raw_event *e)
{
    struct trace_cut *t = context;
    if (e->phase == 'X') call_note(t, e);
    if (is_open_at_begin(t, e)) hold(t, e);
    if (!is_flow(e)) return 0;
    uint8_t *const ends = flow_of(t, e);
    if (!kp_spans_has(t->cut->spans, e->start_ns)) *ends |= FLOW_OUTSIDE;
    else *ends |= e->phase == 's' ? FLOW_OPENS : e->phase == 'f' ? FLOW_ENDS : 0;
    return 0;
}

/* ---- writing ---- */

static int put(struct trace_cut *t, const char *text, size_t bytes)
{
    const int rc = t->put(t->context, text, bytes);
    if (rc && !t->put_rc) t->put_rc = rc;
    return rc;
}

static int us_put(struct trace_cut *t, int64_t ns)
{
    char text[32];
    const uint64_t positive = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    const int bytes =
        snprintf(text, sizeof text, "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "", positive / 1000, positive % 1000);
    return put(t, text, (size_t)bytes);
}

/* The number of the cut whose key begins at `at`, with its quotes. `digits`: where the old one begins. NULL: none. */
static const struct kp_cut_number *number_find(const struct trace_cut *t, const char *at, const char **digits)
{
    for (size_t i = 0; i < t->cut->number_count; i++) {
        const size_t bytes = strlen(t->cut->numbers[i].key);
        if (strncmp(at + 1, t->cut->numbers[i].key, bytes) != 0 || at[1 + bytes] != '"') continue;
        *digits = at + bytes + 2;
        *digits += strspn(*digits, ": ");
        return &t->cut->numbers[i];
    }
    return NULL;
}

/* Writes the head with the numbers of the part. */
static int head_put(struct trace_cut *t)
{
    char *const head = t->head, number[24];
    const char *from = head, *digits;
    int rc = 0;
    if (!head) return 0;
    t->head = NULL;
    for (const char *at = head; rc == 0 && (at = strchr(at, '"')); at++) {
        const struct kp_cut_number *const of = number_find(t, at, &digits);
        if (!of) continue;
        rc = put(t, from, (size_t)(digits - from));
        snprintf(number, sizeof number, "%" PRId64, of->value);
        if (rc == 0) rc = put(t, number, strlen(number));
        from = at = digits + strspn(digits, "0123456789");
        if (!*at) break;
    }
    if (rc == 0) rc = put(t, from, strlen(from));
    free(head);
    return rc;
}

static void head_keep(struct trace_cut *t, const char *text, size_t bytes)
{
    char *const head = kp_kineto_room(t->head_bytes + bytes + 1, 1);
    if (t->head) memcpy(head, t->head, t->head_bytes);
    free(t->head);
    t->head = head;
    memcpy(head + t->head_bytes, text, bytes);
    head[t->head_bytes += bytes] = 0;
}

/* Writes the event with another start and length. */
static int shortened_put(struct trace_cut *t, const struct kp_raw_event *e, int64_t start_ns, int64_t end_ns)
{
    struct kp_jsonvalue first = e->of[KP_RAW_TS], second = e->of[KP_RAW_DUR];
    int64_t values[2] = {start_ns, end_ns - start_ns};
    if (first.at > second.at) {
        const struct kp_jsonvalue swapped = first;
        first = second;
        second = swapped;
        values[0] = end_ns - start_ns;
        values[1] = start_ns;
    }
    const char *end = e->whole.at + e->whole.bytes, *between = first.at + first.bytes,
               *after = second.at + second.bytes;
    int rc = put(t, e->whole.at, (size_t)(first.at - e->whole.at));
    if (rc == 0) rc = us_put(t, values[0]);
    if (rc == 0) rc = put(t, between, (size_t)(second.at - between));
    if (rc == 0) rc = us_put(t, values[1]);
    return rc ? rc : put(t, after, (size_t)(end - after));
}

static int event_put(struct trace_cut *t, const struct kp_raw_event *e, int64_t start_ns, int64_t end_ns)
{
    int rc = t->any ? put(t, ",\n", 2) : put(t, "\n", 1);
    t->any = true;
    if (rc == 0 && t->more && t->more[0]) {
        rc = put(t, t->more, strlen(t->more));
        if (rc == 0) rc = put(t, ",\n", 2);
        t->more = NULL;
    }
    if (rc) return rc;
    if (start_ns == e->start_ns && end_ns == e->end_ns) return put(t, e->whole.at, e->whole.bytes);
    return shortened_put(t, e, start_ns, end_ns);
}

/* Writes the pieces of an event that are inside: one in each span. */
static int pieces_put(struct trace_cut *t, const struct kp_raw_event *e)
{
    const struct kp_spans *spans = t->cut->spans;
    int rc = 0;
    if (e->start_ns == e->end_ns) {
        if (!kp_spans_has(spans, e->start_ns)) return 0;
        t->kept++;
        return event_put(t, e, e->start_ns, e->end_ns);
    }
    for (size_t i = span_after(spans, e->start_ns); i < spans->count && rc == 0; i++) {
        const struct kp_time_span *span = &spans->of[i];
        if (span->start_ns >= e->end_ns) break;
        t->kept++;
        rc = event_put(t, e, e->start_ns > span->start_ns ? e->start_ns : span->start_ns,
                       e->end_ns < span->end_ns ? e->end_ns : span->end_ns);
    }
    return rc;
}

/* Whether it is an arrow from a call inside to its work, which stays, too. */
static bool is_launch_inside(struct trace_cut *t, const struct kp_raw_event *e)
{
    static const char *const launching[] = {"\"ac2g\"", NULL};
    return is_cat(e, launching) && *mark_of(&t->calls, text_hash(KP_FNV64, e->of[KP_RAW_ID])) & CALL_INSIDE;
}

static int held_put(struct trace_cut *t)
{
    int rc = 0;
    if (t->held_count) qsort(t->held, t->held_count, sizeof *t->held, held_order);
    for (size_t i = 0; i < t->held_count && rc == 0; i++) rc = pieces_put(t, &t->held[i].of);
    t->are_held_put = true;
    return rc;
}

static int event_cut(void *context, const struct kp_raw_event *e)
{
    struct trace_cut *t = context;
    int rc = head_put(t);
    if (rc == 0 && !t->are_held_put) rc = held_put(t);
    if (rc || is_open_at_begin(t, e)) return rc;
    if (e->phase == 'M' || is_mark(e) || !e->of[KP_RAW_TS].at) return event_put(t, e, e->start_ns, e->end_ns);
    if (is_flow(e)) {
        const bool is_whole = *flow_of(t, e) == (FLOW_OPENS | FLOW_ENDS) || is_launch_inside(t, e);
        return is_whole ? event_put(t, e, e->start_ns, e->end_ns) : 0;
    }
    if (is_other_step(t, e)) return 0;
    if (!(launch_of(t, e) & CALL_INSIDE)) return pieces_put(t, e);
    t->kept++;
    return event_put(t, e, e->start_ns, e->end_ns);
}

static int rest_take(void *context, const char *text, size_t bytes, bool is_before)
{
    struct trace_cut *t = context;
    if (is_before) {
        t->in_object |= memchr(text, '{', bytes) != NULL;
        head_keep(t, text, bytes);
        return 0;
    }
    const int rc = head_put(t);
    return rc || t->cut->is_torn ? rc : put(t, text, bytes); /* a torn file's may end in a string: torn_close */
}

/* Ends a file that has no end. That the text could not be read to its end is no error of the part. */
static int torn_close(struct trace_cut *t) { return t->put_rc ? t->put_rc : put(t, "\n]}\n", t->in_object ? 4 : 2); }

int kp_tracecut(const struct kp_texts *texts, const struct kp_cut *cut, kp_convert_fn put_fn, void *context,
                size_t *kept, char *why, size_t why_bytes)
{
    struct trace_cut t = {.cut = cut, .put = put_fn, .context = context};
    int rc = kp_raw_read(texts, &(struct kp_raw_calls){flow_note, NULL}, &t, why, why_bytes);
    t.more = cut->more;
    if (rc == 0 || cut->is_torn)
        rc = kp_raw_read(texts, &(struct kp_raw_calls){event_cut, rest_take}, &t, why, why_bytes);
    if (rc == 0 || cut->is_torn) rc = head_put(&t) ? t.put_rc : rc;
    if (cut->is_torn) rc = torn_close(&t);
    free(t.head);
    for (size_t i = 0; i < t.held_count; i++) free(t.held[i].text);
    free(t.held);
    kp_keyindex_fini(&t.flows);
    kp_keyindex_fini(&t.calls);
    *kept = t.kept;
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * speedscope.c - writes a trace as a file of speedscope: a profile a thread, of frames that open and close
 *
 * speedscope demands that frames nest. If a slice ends after the one it began in, as a range of torch.profiler's after
 * the call that opened it, it closes and opens again there, so all have their full times.
 *
 * The JSON is written by hand: names go on as the trace has them, escapes and all, and kp_jsonout would escape them
 * again.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/convert/convert.h"

struct open_frame {
    int64_t end_ns;
    uint32_t frame;
};
struct kp_speedscope {
    kp_convert_fn put;
    void *context;
    struct kp_strings *frames; /* id - 1 is the frame's number */
    struct open_frame *open;
    size_t depth, capacity, profiles, events;
    bool is_crossed; /* an open frame may end before one that is open inside it */
    int error;
};

static void text_put(struct kp_speedscope *w, const char *text, size_t bytes)
{
    if (!w->error) w->error = w->put(w->context, text, bytes);
}

static void line_put(struct kp_speedscope *w, const char *text) { text_put(w, text, strlen(text)); }

/* Microseconds, with all of three decimals. */
static void event_put(struct kp_speedscope *w, char type, uint32_t frame, int64_t ns)
{
    const uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    char line[96];
    snprintf(line, sizeof line, "%s{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%s%" PRIu64 ".%03u}",
             w->events++ ? ",\n" : "", type, frame, ns < 0 ? "-" : "", size / 1000, (unsigned)(size % 1000));
    line_put(w, line);
}

/* The open frame that ends first, the innermost of several. */
static size_t first_to_end(const struct kp_speedscope *w)
{
    size_t first = w->depth - 1;
    for (size_t i = first; w->is_crossed && i-- > 0;)
        if (w->open[i].end_ns < w->open[first].end_ns) first = i;
    return first;
}

/* Closes the frame, and what is open inside it for a moment. */
static void close_at(struct kp_speedscope *w, size_t at)
{
    const int64_t ns = w->open[at].end_ns;
    for (size_t i = w->depth; i-- > at;) event_put(w, 'C', w->open[i].frame, ns);
    for (size_t i = at + 1; i < w->depth; i++) {
        event_put(w, 'O', w->open[i].frame, ns);
        w->open[i - 1] = w->open[i];
    }
    if (--w->depth == 0) w->is_crossed = false;
}

static void close_until(struct kp_speedscope *w, int64_t ns)
{
    for (size_t at; w->depth && w->open[at = first_to_end(w)].end_ns <= ns;) close_at(w, at);
}

struct kp_speedscope *kp_speedscope_open(kp_convert_fn put, void *context)
{
    struct kp_speedscope *const w = kp_kineto_zeros(1, sizeof *w);
    *w = (struct kp_speedscope){.put = put, .context = context, .frames = kp_strings_open()};
    line_put(
        w,
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"kprof\",\"profiles\":[\n");
    return w;
}

void kp_speedscope_thread(struct kp_speedscope *w, const char *pid, const char *tid, int64_t start_ns, int64_t end_ns)
{
    char line[512];
    snprintf(line, sizeof line,
             "%s{\"type\":\"evented\",\"name\":\"%.100s, thread %.100s\",\"unit\":\"microseconds\",\"startValue\":%.3f,"
             "\"endValue\":%.3f,\"events\":[\n",
             w->profiles++ ? ",\n" : "", pid, tid, (double)start_ns / 1000, (double)end_ns / 1000);
    line_put(w, line);
    w->events = 0;
}

int kp_speedscope_event(struct kp_speedscope *w, const struct kp_raw_event *e)
{
    close_until(w, e->start_ns);
    if (w->depth && e->end_ns > w->open[w->depth - 1].end_ns) w->is_crossed = true;
    const struct kp_jsonvalue name = e->of[KP_RAW_NAME];
    const bool is_text = kp_jsonvalue_is_string(name) && name.bytes > 2;
    const uint32_t id = kp_strings_put(w->frames, is_text ? name.at + 1 : "?", is_text ? name.bytes - 2 : 1);
    *KP_KINETO_NEXT(w->open, w->depth, w->capacity) = (struct open_frame){e->end_ns, id - 1};
    event_put(w, 'O', id - 1, e->start_ns);
    return w->error;
}

int kp_speedscope_thread_end(struct kp_speedscope *w)
{
    close_until(w, INT64_MAX);
    line_put(w, "]}");
    return w->error;
}

/* The names are as the trace has them, escapes and all. */
int kp_speedscope_close(struct kp_speedscope *w)
{
    line_put(w, "\n],\"shared\":{\"frames\":[");
    for (uint32_t id = 1; id < kp_strings_count(w->frames); id++) {
        const char *name = kp_strings_get(w->frames, id);
        line_put(w, id > 1 ? ",\n{\"name\":\"" : "\n{\"name\":\"");
        line_put(w, name);
        line_put(w, "\"}");
    }
    line_put(w, "]}}\n");
    const int error = w->error;
    kp_strings_close(w->frames);
    free(w->open);
    free(w);
    return error;
}

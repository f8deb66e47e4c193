// SPDX-License-Identifier: Apache-2.0
/* cmd_events.c - `kprof events`: one line an event, in order of time, filtered */
#include "export/cli/cli.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/kineto.h"

struct filter {
    const char *glob, *cat;
    regex_t regex;
    bool has_regex, json, has_from, has_to, has_tid, partial;
    int64_t from_ns, to_ns; /* after the profiler's start */
    int64_t tid;
    long first_step, last_step; /* -1: no */
};
struct span {
    int64_t start_ns, end_ns;
};
struct spans {
    struct span *spans;
    size_t count, capacity;
};

static const char usage[] =
    "usage: kprof events [options] FILE...\n"
    "  --json          one JSON object a line, args included\n"
    "  --name PATTERN  a glob (aten::*), or /REGEX/\n"
    "  --cat C         category: cpu_op, user_annotation, python_function, kernel...\n"
    "  --step A-B      events that start within ProfilerStep#A to #B; A alone: one step\n"
    "  --from US --to US   start within, in microseconds after the profiler's start\n"
    "  --tid N         one thread\n"
    "  --partial       of a file that ends early, list what is there\n";

enum option_id { JSON = 256, NAME, CAT, STEP, FROM, TO, TID, PARTIAL, HELP };

static const struct option options[] = {
    {"json", no_argument, NULL, JSON},
    {"name", required_argument, NULL, NAME},
    {"cat", required_argument, NULL, CAT},
    {"step", required_argument, NULL, STEP},
    {"from", required_argument, NULL, FROM},
    {"to", required_argument, NULL, TO},
    {"tid", required_argument, NULL, TID},
    {"partial", no_argument, NULL, PARTIAL},
    {"help", no_argument, NULL, HELP},
    {0},
};

static int usage_error(const char *what, const char *value)
{
    fprintf(stderr, "kprof events: %s%s\n", what, value);
    return KP_EXIT_USAGE;
}

static int name_set(struct filter *f, const char *pattern)
{
    size_t bytes = strlen(pattern);
    if (bytes < 2 || pattern[0] != '/' || pattern[bytes - 1] != '/') {
        f->glob = pattern;
        return 0;
    }
    char *inner = strndup(pattern + 1, bytes - 2);
    if (f->has_regex)
        regfree(&f->regex);
    int rc = inner ? regcomp(&f->regex, inner, REG_EXTENDED | REG_NOSUB) : REG_ESPACE;
    f->has_regex = rc == 0;
    free(inner);
    return rc ? usage_error("no regular expression: ", pattern) : 0;
}

static int step_set(struct filter *f, const char *text)
{
    char *end;
    f->first_step = f->last_step = strtol(text, &end, 10);
    bool good = end != text;
    if (good && *end == '-') {
        const char *last = end + 1;
        f->last_step = strtol(last, &end, 10);
        good = end != last;
    }
    if (!good || *end || f->first_step < 0 || f->last_step < f->first_step)
        return usage_error("steps are A or A-B, not ", text);
    return 0;
}

static int time_set(int64_t *out, bool *has, const char *text)
{
    char *end;
    (void)strtod(text, &end);
    if (end == text || *end)
        return usage_error("a time is in microseconds, not ", text);
    *out = kp_kineto_ns(text, strlen(text));
    *has = true;
    return 0;
}

static int option_take(struct filter *f, int id, const char *value)
{
    char *end;
    switch (id) {
    case JSON: f->json = true; return 0;
    case NAME: return name_set(f, value);
    case CAT: f->cat = value; return 0;
    case STEP: return step_set(f, value);
    case FROM: return time_set(&f->from_ns, &f->has_from, value);
    case TO: return time_set(&f->to_ns, &f->has_to, value);
    case TID:
        f->tid = strtoll(value, &end, 10);
        f->has_tid = true;
        return end == value || *end ? usage_error("a thread is a number, not ", value) : 0;
    case PARTIAL: f->partial = true; return 0;
    default: fputs(usage, stderr); return KP_EXIT_USAGE;
    }
}

/* ---- choosing ---- */

static void steps_find(struct spans *out, const struct kp_trace *trace, const struct filter *f)
{
    for (size_t i = 0; f->first_step >= 0 && i < trace->count; i++) {
        const struct kp_trace_event *e = &trace->events[i];
        const char *name = kp_trace_text(trace, e->name);
        if (e->kind != KP_TRACE_ANNOTATION || strncmp(name, "ProfilerStep#", 13) != 0)
            continue;
        long step = strtol(name + 13, NULL, 10);
        if (step < f->first_step || step > f->last_step)
            continue;
        out->spans = kp_kineto_grow(out->spans, &out->capacity, out->count + 1, sizeof *out->spans);
        out->spans[out->count++] = (struct span){e->start_ns, e->start_ns + e->dur_ns};
    }
}

static bool is_in_steps(const struct spans *steps, int64_t at_ns)
{
    for (size_t i = 0; i < steps->count; i++)
        if (at_ns >= steps->spans[i].start_ns && at_ns < steps->spans[i].end_ns)
            return true;
    return false;
}

static bool is_wanted(const struct kp_trace *trace, const struct kp_trace_event *e, const struct filter *f,
                      const struct spans *steps)
{
    const char *name = kp_trace_text(trace, e->name);
    int64_t at_ns = e->start_ns - trace->start_ns;
    if (f->glob && fnmatch(f->glob, name, 0) != 0)
        return false;
    if (f->has_regex && regexec(&f->regex, name, 0, NULL, 0) != 0)
        return false;
    if (f->cat && strcmp(f->cat, kp_trace_text(trace, e->cat)) != 0)
        return false;
    if (f->has_tid && (e->tid != f->tid || e->flags & KP_TRACE_TEXT_TID))
        return false;
    if ((f->has_from && at_ns < f->from_ns) || (f->has_to && at_ns > f->to_ns))
        return false;
    return f->first_step < 0 || is_in_steps(steps, e->start_ns);
}

static int time_order(const void *a, const void *b, void *context)
{
    const struct kp_trace_event *events = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct kp_trace_event *x = &events[i], *y = &events[j];
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->dur_ns != y->dur_ns)
        return x->dur_ns > y->dur_ns ? -1 : 1;
    return (i > j) - (i < j);
}

/* ---- printing ---- */

static void put_json_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void put_us(int64_t ns)
{
    uint64_t positive = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    printf("%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "", positive / 1000, positive % 1000);
}

static void put_json_id(const struct kp_trace *trace, int64_t id, bool is_text)
{
    if (is_text)
        put_json_text(kp_trace_text(trace, (uint32_t)id));
    else
        printf("%" PRId64, id);
}

static void put_json(const struct kp_trace *trace, const struct kp_trace_event *e)
{
    printf("{\"ph\":\"%c\",\"cat\":", e->phase);
    put_json_text(kp_trace_text(trace, e->cat));
    fputs(",\"name\":", stdout);
    put_json_text(kp_trace_text(trace, e->name));
    fputs(",\"pid\":", stdout);
    put_json_id(trace, e->pid, e->flags & KP_TRACE_TEXT_PID);
    fputs(",\"tid\":", stdout);
    put_json_id(trace, e->tid, e->flags & KP_TRACE_TEXT_TID);
    fputs(",\"ts\":", stdout);
    put_us(e->start_ns - trace->base_ns);
    if (e->phase == 'X') {
        fputs(",\"dur\":", stdout);
        put_us(e->dur_ns);
    }
    if (e->args_bytes) {
        fputs(",\"args\":", stdout);
        fwrite(trace->args_text + e->args, 1, e->args_bytes, stdout);
    }
    puts("}");
}

static void put_line(const struct kp_trace *trace, const struct kp_trace_event *e)
{
    char at[32], dur[32] = "-", thread[32];
    int64_t ns = e->start_ns - trace->start_ns;
    uint64_t positive = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    snprintf(at, sizeof at, "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "", positive / 1000, positive % 1000);
    if (e->phase == 'X')
        snprintf(dur, sizeof dur, "%" PRId64 ".%03" PRId64, e->dur_ns / 1000, e->dur_ns % 1000);
    if (e->flags & KP_TRACE_TEXT_TID)
        snprintf(thread, sizeof thread, "%.31s", kp_trace_text(trace, (uint32_t)e->tid));
    else
        snprintf(thread, sizeof thread, "%" PRId64, e->tid);
    printf("%15s  %13s  %10s  %-17s  %s\n", at, dur, thread, kp_trace_text(trace, e->cat),
           kp_trace_text(trace, e->name));
}

static void events_list(const struct kp_trace *trace, const struct filter *f)
{
    struct spans steps = {0};
    size_t capacity = 0, count = 0;
    uint32_t *order = NULL;
    steps_find(&steps, trace, f);
    for (size_t i = 0; i < trace->count; i++) {
        const struct kp_trace_event *e = &trace->events[i];
        if ((e->kind == KP_TRACE_OTHER && !e->cat) || !is_wanted(trace, e, f, &steps))
            continue;
        order = kp_kineto_grow(order, &capacity, count + 1, sizeof *order);
        order[count++] = (uint32_t)i;
    }
    if (count)
        qsort_r(order, count, sizeof *order, time_order, trace->events);
    if (!f->json)
        printf("%15s  %13s  %10s  %-17s  %s\n", "start us", "duration us", "thread", "category", "name");
    for (size_t i = 0; i < count; i++) {
        if (f->json)
            put_json(trace, &trace->events[order[i]]);
        else
            put_line(trace, &trace->events[order[i]]);
    }
    free(order);
    free(steps.spans);
}

static int events_of(const struct filter *f, const char *path)
{
    struct kp_trace *trace;
    char why[512];
    int rc = kp_trace_open(&trace, path, f->json, why, sizeof why);
    if (rc)
        fprintf(stderr, "kprof: %s\n", why);
    if (trace && (rc == 0 || f->partial)) {
        events_list(trace, f);
        rc = 0;
    }
    kp_trace_close(trace);
    return rc ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
}

static int events_of_one(void *context, const char *path, const char *label, bool several)
{
    (void)label, (void)several;
    return events_of(context, path);
}

int kp_cmd_events(int argc, char **argv)
{
    struct filter f = {.first_step = -1};
    int id;
    optind = 0;
    while ((id = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (id == HELP || id == 'h') {
            fputs(usage, stdout);
            return KP_EXIT_DONE;
        }
        int rc = option_take(&f, id, optarg);
        if (rc)
            return rc;
    }
    if (optind == argc)
        return usage_error("no file given", "");
    int worst = kp_input_each(argv + optind, argc - optind, events_of_one, &f);
    if (f.has_regex)
        regfree(&f.regex);
    return worst;
}

// SPDX-License-Identifier: Apache-2.0
/* cmd_events.c - `kprof events`: a line for each event, in order of time, filtered */
#include "export/cli/cli.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "export/answers/runadvice/advised.h"
#include "export/read/frames/framename.h"
#include "export/read/files/budget.h"
#include "export/answers/jobs/latest.h"
#include "export/read/symbols/lines.h"
#include "export/read/files/sorted.h"
#include "export/read/folder/trace_source.h"
#include "export/read/parse/kineto_parse.h"
#include "export/read/frames/nameguess.h"
#include "export/show/plain.h"
#include "export/read/tree/stepspans.h"

struct event_filter {
    const char *glob, *cat, *evidence; /* evidence: the id of a finding, which sets what is NULL and -1 here */
    char place[1024];                  /* a whole name; "": any */
    regex_t regex;
    bool has_regex, json, has_from, has_to, has_tid, partial;
    int64_t from_ns, to_ns; /* after the profiler's start */
    int64_t tid;
    long first_step, last_step; /* -1: no */
    struct kp_lines_options wish;
};

enum option_id { JSON, NAME, CAT, EVIDENCE, STEP, FROM, TO, TID, PARTIAL, LINES, DEBUGINFO_PATH };

#define INTO(member) KP_OPT_INTO(struct event_filter, member)
static const struct kp_opt flags[] = {
    [JSON] = {"json", 0, KP_OPT_FLAG, NULL, "one JSON object a line, args included", INTO(json)},
    [NAME] = {"name", 0, KP_OPT_VALUE, "PATTERN", "only events of this name; a glob such as 'aten::*', or /REGEX/", 0},
    [CAT] = {"cat", 0, KP_OPT_VALUE, "C", "category: cpu_op, user_annotation, python_function, kernel...", INTO(cat)},
    [EVIDENCE] = {"evidence", 0, KP_OPT_VALUE, "ID",
                  "events of that finding of kprof advise --json, in the step where it costs most", INTO(evidence)},
    [STEP] = {"step", 0, KP_OPT_VALUE, "A-B", "events that start within steps A to B; A alone: one step", 0},
    [FROM] = {"from", 0, KP_OPT_VALUE, "US",
              "only events that start US microseconds after the profiler's start, or later", 0},
    [TO] = {"to", 0, KP_OPT_VALUE, "US",
            "only events that start US microseconds after the profiler's start, or earlier", 0},
    [TID] = {"tid", 0, KP_OPT_VALUE, "N", "one thread, or stream of a GPU", 0},
    [PARTIAL] = {"partial", 0, KP_OPT_FLAG, NULL, "list what is there of a file that ends early", INTO(partial)},
    KP_LINES_OPTIONS("off; of spools only", INTO(wish.lines), INTO(wish.debug_path)),
    {0}};

static int name_set(struct event_filter *f, const char *pattern)
{
    size_t bytes = strlen(pattern);
    if (bytes < 2 || pattern[0] != '/' || pattern[bytes - 1] != '/') {
        f->glob = pattern;
        return 0;
    }
    char *inner = strndup(pattern + 1, bytes - 2);
    if (f->has_regex) regfree(&f->regex);
    int rc = inner ? regcomp(&f->regex, inner, REG_EXTENDED | REG_NOSUB) : REG_ESPACE;
    f->has_regex = rc == 0;
    free(inner);
    return rc ? kp_cli_misuse("events", "--name %s is no regular expression", pattern) : 0;
}

static int tid_set(struct event_filter *f, const char *text)
{
    char *end;
    f->tid = strtoll(text, &end, 10);
    f->has_tid = true;
    return end == text || *end ? kp_cli_misuse("events", "--tid is a number, not %s", text) : 0;
}

static int option_take(void *filter, const struct kp_opt_scan *scan, int id, const char *value)
{
    struct event_filter *const f = filter;
    switch (id) {
    case NAME: return name_set(f, value);
    case STEP: return kp_opt_steps(scan->command, value, &f->first_step, &f->last_step);
    case FROM: return kp_opt_time(scan->command, "from", value, &f->from_ns, &f->has_from);
    case TO: return kp_opt_time(scan->command, "to", value, &f->to_ns, &f->has_to);
    default: return tid_set(f, value);
    }
}

/* ---- choosing ---- */

/* By what an event says of itself, but for its name. The profiler's own marks have no category and no length. */
static bool is_asked(const struct kp_kineto *trace, const struct kp_kineto_event *e, const struct event_filter *f)
{
    if (e->kind == KP_KINETO_OTHER && !e->cat && e->phase != 'X') return false;
    if (f->cat && strcmp(f->cat, kp_kineto_text(trace, e->cat)) != 0) return false;
    return !f->has_tid || (e->tid == f->tid && !(e->flags & KP_KINETO_TEXT_TID));
}

static bool fits(const struct event_filter *f, const char *name)
{
    if (*f->place && strcmp(f->place, name) != 0) return false;
    if (f->glob && fnmatch(f->glob, name, 0) != 0) return false;
    return !f->has_regex || regexec(&f->regex, name, 0, NULL, 0) == 0;
}

/* By its name as the file has it, or as other commands show it: without an address. */
static bool is_named(const struct kp_kineto *trace, const struct kp_kineto_event *e, const struct event_filter *f)
{
    const char *const name = kp_kineto_text(trace, e->name);
    struct kp_frametext room = {0};
    size_t bytes = strlen(name);
    const bool is = fits(f, name);
    const char *const lasting = is ? name : kp_framename_lasting(&room, name, &bytes);
    const bool is_lasting = lasting != name && fits(f, lasting);
    kp_frametext_fini(&room);
    return is || is_lasting;
}

/* ---- printing ---- */

static const char *us_text(char room[32], int64_t ns)
{
    uint64_t positive = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    snprintf(room, 32, "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "", positive / 1000, positive % 1000);
    return room;
}

struct event_line {
    const struct kp_kineto *trace;
    const struct kp_kineto_event *event;
};

static void id_put(struct kp_jsonout *j, const char *key, const struct kp_kineto *trace, int64_t id, bool is_text)
{
    if (is_text) kp_jsonout_text(j, key, kp_kineto_text(trace, (uint32_t)id));
    else kp_jsonout_whole(j, key, id);
}

static void time_put(struct kp_jsonout *j, const char *key, int64_t ns)
{
    char room[32];
    kp_jsonout_key(j, key);
    fputs(us_text(room, ns), j->out);
}

static void args_put(struct kp_jsonout *j, const char *key, const struct event_line *r)
{
    kp_jsonout_key(j, key);
    fwrite(r->trace->args_text + r->trace->args_bytes - r->event->args_bytes, 1, r->event->args_bytes, j->out);
}

static const char *phase_of(const struct kp_kineto_event *e, char *room)
{
    room[0] = e->phase, room[1] = 0;
    return room;
}

#define ID_TYPE "{\"type\":[\"integer\",\"string\"]}"
#define ID(id, flag) (ID_TYPE, id_put, r->trace, r->event->id, r->event->flags & KP_KINETO_TEXT_##flag)
/* clang-format off */
#define EVENT(F, IF) \
    F(TEXT, ph, phase_of(r->event, room)) \
    F(TEXT, cat, kp_kineto_text(r->trace, r->event->cat)) \
    F(TEXT, name, kp_kineto_text(r->trace, r->event->name)) \
    F(OTHER, pid, ID(pid, PID)) \
    F(OTHER, tid, ID(tid, TID)) \
    F(OTHER, ts, (KP_TYPE("number"), time_put, r->event->start_ns)) \
    IF(r->event->phase == 'X', OTHER, dur, (KP_TYPE("number"), time_put, r->event->dur_ns)) \
    IF(r->event->args_bytes, OTHER, args, (KP_TYPE("object"), args_put, r))
KP_FIELDS(event, struct event_line, EVENT)
/* clang-format on */

const struct kp_fields *const kp_events_schema = &event_fields;

static void put_json(FILE *out, const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    kp_fields_line(out, &event_fields, &(struct event_line){trace, e});
}

/* Writes a line without its time, which is only known once the whole file was read. */
static void put_line(FILE *out, const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    char dur[32] = "-", thread[32];
    if (e->phase == 'X') (void)us_text(dur, e->dur_ns);
    if (e->flags & KP_KINETO_TEXT_TID)
        kp_plain_text(thread, sizeof thread, kp_kineto_text(trace, (uint32_t)e->tid),
                      strlen(kp_kineto_text(trace, (uint32_t)e->tid)));
    else snprintf(thread, sizeof thread, "%" PRId64, e->tid);
    char category[32];
    const char *cat = kp_kineto_text(trace, e->cat);
    const size_t letters = kp_plain_text(category, sizeof category, cat, strlen(cat));
    fprintf(out, "  %13s  %10s  ", dur, thread);
    kp_plain_put(out, cat);
    fprintf(out, "%*s", letters < 17 ? (int)(17 - letters) : 0, "");
    kp_plain_fmt(out, "  %s\n", kp_kineto_text(trace, e->name));
}

/* ---- the walk: each event becomes a line while the file is read, and the lines are put in order ---- */

enum { CATS_MOST = 32 };

struct event_listing {
    const struct event_filter *f;
    struct kp_sorted *lines;
    FILE *line; /* writes to text */
    char *text;
    size_t bytes;
    struct kp_stepspans marks;
    struct kp_spans steps;
    int64_t since_ns;         /* profiler's start, as the file counts time */
    size_t given;             /* events */
    int error;                /* its lines cannot be kept */
    uint32_t cats[CATS_MOST]; /* categories that there are, where one was asked for */
    size_t cat_count;
    struct kp_nameguess guess; /* of events that are asked for but for their name */
    bool has_named;            /* one is asked for by its name, too */
};

static void category_see(struct event_listing *w, const struct kp_kineto_event *e)
{
    size_t i = 0;
    if (!w->f->cat || !e->cat) return;
    while (i < w->cat_count && w->cats[i] != e->cat) i++;
    if (i == w->cat_count && i < CATS_MOST) w->cats[w->cat_count++] = e->cat;
}

/* Events that have the name may all be at other times: then no other name is meant. */
static int unnamed_tell(const struct event_listing *w, const char *path)
{
    char meant[KP_NAMEGUESS_MOST + 24] = "";
    if (!w->has_named) kp_nameguess_text(&w->guess, meant, sizeof meant);
    return kp_cli_fail("events", "%s: no such event in it%s", path, *meant ? meant : "; kprof events FILE lists all");
}

/* Says that no event was found: without the category that was asked for, which ones there are. */
static int none_tell(const struct event_listing *w, const struct kp_kineto *trace, const char *path)
{
    char list[CATS_MOST * 40] = "", shown[sizeof list * 2] = "", near[40] = "";
    if (!trace->seen) return kp_cli_fail("events", "%s: no event with a begin and a length (ph X) in it", path);
    for (size_t i = 0, used = 0; i < w->cat_count; i++) {
        const char *const cat = kp_kineto_text(trace, w->cats[i]);
        if (strcmp(cat, w->f->cat) == 0) return unnamed_tell(w, path);
        if (strlen(cat) >= sizeof near) continue;
        snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%s%s", *shown ? ", " : "", cat);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "", cat);
    }
    if (!*list || w->cat_count == CATS_MOST) return unnamed_tell(w, path);
    kp_config_near(list, w->f->cat, near, sizeof near);
    return kp_cli_fail("events", "%s: no event of category %s%s%s%s; it has %s", path, w->f->cat,
                       *near ? " (did you mean " : "", near, *near ? "?)" : "", shown);
}

/* Prints the event. The trace keeps no event. */
static bool event_take(const void *context, const struct kp_kineto *trace, const struct kp_kineto_event *event)
{
    struct event_listing *w = *(struct event_listing *const *)context;
    if (w->f->first_step >= 0) kp_stepspans_see(&w->marks, trace, event);
    category_see(w, event);
    if (!is_asked(trace, event, w->f)) return false;
    if (!is_named(trace, event, w->f)) {
        if (!w->has_named) kp_nameguess_see(&w->guess, trace, event->name);
        return false;
    }
    w->has_named = true;
    rewind(w->line);
    if (w->f->json) put_json(w->line, trace, event);
    else put_line(w->line, trace, event);
    if (fflush(w->line) != 0) w->error = -ENOMEM;
    else w->error = kp_sorted_add(w->lines, event->start_ns, event->dur_ns, w->text, w->bytes);
    return false;
}

static void line_give(void *context, int64_t start_ns, const char *line, size_t bytes)
{
    struct event_listing *w = context;
    const struct event_filter *f = w->f;
    const int64_t at_ns = start_ns - w->since_ns;
    if ((f->has_from && at_ns < f->from_ns) || (f->has_to && at_ns > f->to_ns)) return;
    if (f->first_step >= 0 && !kp_spans_has(&w->steps, start_ns)) return;
    if (!w->given++ && !f->json)
        printf("%15s  %13s  %10s  %-17s  %s\n", "start us", "duration us", "thread", "category", "name");
    char at[32];
    if (!f->json) printf("%15s", us_text(at, at_ns));
    fwrite(line, 1, bytes, stdout);
}

static int lines_print(struct event_listing *w, const struct kp_kineto *trace, const char *path)
{
    w->since_ns = trace->start_ns - trace->base_ns;
    const struct event_filter *f = w->f;
    char why[160];
    if (f->first_step >= 0 &&
        kp_stepspans_cut(&w->marks, trace, f->first_step, f->last_step, &w->steps, why, sizeof why))
        return kp_cli_fail("events", "%s: no event of step %ld-%ld: %s", path, f->first_step, f->last_step, why);
    kp_spans_settle(&w->steps);
    const int rc = kp_sorted_each(w->lines, line_give, w);
    if (rc) return kp_cli_fail("events", "%s: its events cannot be put in order: %s", path, kp_budget_explain(rc));
    return w->given || f->json ? 0 : none_tell(w, trace, path);
}

static int events_of(const struct event_filter *f, const struct kp_trace_source *source)
{
    struct kp_kineto *trace;
    struct event_listing walk = {.f = f, .lines = kp_sorted_open(0, kp_budget_now()->disk)}, *w = &walk;
    const struct kp_kineto_wish wish = {.texts = kp_trace_source_texts(source),
                                        .label = source->path,
                                        .keep_args = f->json,
                                        .keep = event_take,
                                        .context = &w,
                                        .stop = &walk.error};
    char why[512];
    int rc = -ENOMEM;
    kp_nameguess_begin(&w->guess, f->glob ? f->glob : "");
    w->guess.is_whole = true;
    w->line = open_memstream(&w->text, &w->bytes);
    if (!w->line) return kp_cli_fail("events", "%s: no memory", source->path);
    rc = kp_kineto_read(&trace, &wish, why, sizeof why);
    const bool is_left = rc && trace && trace->torn && !f->partial;
    if (rc) kp_cli_say(stderr, "kprof: %s%s", why, is_left ? "; --partial lists those" : "");
    if (trace && (rc == 0 || f->partial)) rc = lines_print(w, trace, source->path);
    kp_kineto_close(trace);
    kp_sorted_close(w->lines);
    fclose(w->line);
    free(w->text);
    kp_spans_fini(&w->steps);
    kp_stepspans_fini(&w->marks);
    kp_nameguess_fini(&w->guess);
    return rc ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
}

/* ---- what a finding is of ---- */

static bool has_event(const struct kp_advised *a, const struct event_filter *f)
{
    for (size_t i = 0; i < a->chosen.step_count; i++) {
        const struct kp_step *const step = &a->chosen.steps[i];
        if (f->first_step >= 0 && step->number != f->first_step) continue;
        for (size_t e = 0; e < a->trace->count; e++)
            if (a->trace->events[e].start_ns >= step->start_ns && a->trace->events[e].start_ns < step->end_ns &&
                is_named(a->trace, &a->trace->events[e], f))
                return true;
    }
    return false;
}

/* Asks for the step where the finding costs most, and in it for its op, range or call, where that begins there. */
static void evidence_set(struct event_filter *f, const struct kp_advised *a, const struct kp_finding *finding)
{
    const bool is_once = finding->once_ns > 0;
    if (f->first_step < 0 && (is_once || finding->has_most_step))
        f->first_step = f->last_step = is_once ? finding->once_step : finding->most_step;
    if (f->glob || f->has_regex || !finding->where) return;
    snprintf(f->place, sizeof f->place, "%s", finding->where);
    if (!has_event(a, f)) f->place[0] = 0;
}

static int evidence_find(struct event_filter *f, const struct kp_trace_source *source)
{
    struct kp_advised advised;
    char why[512];
    const struct kp_texts texts = kp_trace_source_texts(source);
    int rc = kp_advised_open(&advised, &texts, source->path, f->partial, why, sizeof why);
    size_t i = 0;
    if (rc) kp_cli_say(stderr, "kprof: %s", why);
    while (rc == 0 && i < advised.advice.count && strcmp(advised.advice.findings[i].id, f->evidence) != 0) i++;
    if (rc == 0 && i == advised.advice.count)
        rc = kp_cli_fail("events", "%s: kprof advise does not find %s in it", source->path, f->evidence);
    else if (rc == 0) evidence_set(f, &advised, &advised.advice.findings[i]);
    kp_advised_close(&advised);
    return rc;
}

static int events_of_one(void *context, const struct kp_trace_source *source, bool several)
{
    struct event_filter f = *(const struct event_filter *)context;
    (void)several;
    if (f.evidence && evidence_find(&f, source)) return KP_EXIT_BAD_INPUT;
    return events_of(&f, source);
}

int kp_cmd_events(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "events", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct event_filter f = {.first_step = -1};
    const int i = kp_opt_flags(&scan, &f, option_take);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (kp_opt_times_check("events", f.has_from && f.has_to, f.from_ns, f.to_ns)) return KP_EXIT_USAGE;
    const int count = kp_latest_take("events", &argv, scan.count, f.wish.lines ? KP_LATEST_SPOOL : 0);
    if (!count) return KP_EXIT_USAGE;
    struct kp_lines *lines = kp_lines_open("events", &f.wish);
    int worst = kp_input_each("events", argv, count, kp_lines_places(lines), events_of_one, &f);
    kp_lines_close(lines);
    if (f.has_regex) regfree(&f.regex);
    return worst;
}

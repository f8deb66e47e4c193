// SPDX-License-Identifier: Apache-2.0
/* cmd_slice.c - `kprof slice`: a part of a trace as a smaller trace */
#include "export/cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "export/read/files/budget.h"
#include "export/answers/jobs/latest.h"
#include "export/read/files/outfile.h"
#include "export/read/folder/trace_source.h"
#include "export/read/folder/written.h"
#include "export/answers/convert/convert.h"
#include "export/read/facts/steps/nocore.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/tree/chosen.h"
#include "export/read/parse/kineto_parse.h"
#include "export/read/frames/modulename.h"
#include "export/read/frames/nameguess.h"
#include "export/read/tree/stepspans.h"
#include "export/show/units.h"

struct slice_command {
    bool has_python; /* some call of Python was seen */
    const char *within, *out;
    bool has_from, has_to, is_json, partial, is_torn;
    int64_t from_ns, to_ns;     /* after the profiler's start */
    long first_step, last_step; /* -1: not asked for */
    struct kp_stepspans marks;
    struct kp_spans spans;        /* of steps, or of the name; then what is cut out */
    char *more;                   /* events for the new file; NULL: none */
    struct kp_cut_number core[3]; /* what the thread of the steps had of a core, in the part */
    size_t core_count;
    struct kp_nameguess guess;
};

enum option_id { STEP, FROM, TO, WITHIN, OUT, JSON, PARTIAL };
#define INTO(member) KP_OPT_INTO(struct slice_command, member)
static const struct kp_opt flags[] = {
    [STEP] = {"step", 0, KP_OPT_VALUE, "A-B", "steps A to B; A alone: one step", 0},
    [FROM] = {"from", 0, KP_OPT_VALUE, "US", "from US microseconds after the profiler's start", 0},
    [TO] = {"to", 0, KP_OPT_VALUE, "US", "up to US microseconds after the profiler's start", 0},
    [WITHIN] = {"within", 0, KP_OPT_VALUE, "NAME", "while a range, op or Python function of that name (or glob) runs",
                INTO(within)},
    [OUT] = {"output", 'o', KP_OPT_VALUE, "FILE", "the new trace; .gz: packed. Default, or -: standard output",
             INTO(out)},
    [JSON] = {"json", 0, KP_OPT_FLAG, NULL, "say what was written as a line of JSON", INTO(is_json)},
    [PARTIAL] = {"partial", 0, KP_OPT_FLAG, NULL, "cut what is there of a file that ends early", INTO(partial)},
    {0}};

static int option_take(void *command, const struct kp_opt_scan *scan, int id, const char *value)
{
    struct slice_command *const s = command;
    if (id == STEP) return kp_opt_steps(scan->command, value, &s->first_step, &s->last_step);
    if (id == FROM) return kp_opt_time(scan->command, "from", value, &s->from_ns, &s->has_from);
    return kp_opt_time(scan->command, "to", value, &s->to_ns, &s->has_to);
}

/* ---- what is cut out ---- */

static bool is_on_host(const struct kp_kineto_event *e)
{
    return e->phase == 'X' && e->kind != KP_KINETO_GPU && e->kind != KP_KINETO_GPU_ANNOTATION;
}

static bool is_wanted(const struct slice_command *s, const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    return is_on_host(e) && s->within && kp_modulename_is_meant(trace, s->within, e->name);
}

/* Keeps no event, only its time. */
static bool event_look(const void *context, const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    struct slice_command *s = *(struct slice_command *const *)context;
    s->has_python |= e->kind == KP_KINETO_PYTHON;
    kp_stepspans_see(&s->marks, trace, e);
    if (s->first_step >= 0) return false;
    if (is_wanted(s, trace, e)) kp_spans_add(&s->spans, e->start_ns, e->start_ns + e->dur_ns);
    else if (s->within && !s->spans.count && is_on_host(e)) kp_nameguess_see(&s->guess, trace, e->name);
    return false;
}

static int spans_make(struct slice_command *s, const struct kp_kineto *trace, const char *label)
{
    const int64_t since_ns = trace->start_ns - trace->base_ns;
    struct kp_spans time = {0};
    char why[160], meant[KP_NAMEGUESS_MOST + 24];
    if (s->first_step >= 0 &&
        kp_stepspans_cut(&s->marks, trace, s->first_step, s->last_step, &s->spans, why, sizeof why))
        return kp_cli_fail("slice", "%s: %s", label, why);
    kp_spans_settle(&s->spans);
    if (s->within && !s->spans.count)
        return kp_cli_fail("slice", "%s: no range, op or Python function is named %s%s%s", label, s->within,
                           kp_nameguess_text(&s->guess, meant, sizeof meant), s->has_python ? "" : KP_CHOSEN_NO_CALLS);
    if (!s->has_from && !s->has_to) return KP_EXIT_DONE;
    kp_spans_add(&time, s->has_from ? since_ns + s->from_ns : INT64_MIN / 2,
                 s->has_to ? since_ns + s->to_ns : INT64_MAX / 2);
    kp_spans_settle(&time);
    if (s->first_step >= 0 || s->within) kp_spans_cut(&s->spans, &time);
    else if (time.count) kp_spans_add(&s->spans, time.of[0].start_ns, time.of[0].end_ns), kp_spans_settle(&s->spans);
    kp_spans_fini(&time);
    if (s->spans.count) return KP_EXIT_DONE;
    return kp_cli_fail("slice", "%s: no time is left to cut out; --from and --to are microseconds after its start",
                       label);
}

/* Steps that the trace tells by its optimizer's steps begin at one that is cut off. So the part gets marks of them. By
 * hand: kp_jsonout has no number with all digits of a time in ns. */
static char *marks_make(const struct slice_command *s)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = s->first_step < 0 || s->marks.has_steps ? NULL : open_memstream(&text, &bytes);
    for (size_t i = 0; to && i < s->marks.count; i++) {
        const struct kp_stepmark *m = &s->marks.of[i];
        if (m->number < s->first_step || m->number > s->last_step || m->pid < 0) continue;
        fprintf(to,
                "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%ld\",\"pid\":%" PRId64
                ",\"tid\":%" PRId64 ",\"ts\":%" PRId64 ".%03d,\"dur\":%" PRId64 ".%03d,\"args\":{}}",
                ftell(to) ? ",\n" : "", m->number, m->pid, m->tid, m->start_ns / 1000, (int)(m->start_ns % 1000),
                (m->end_ns - m->start_ns) / 1000, (int)((m->end_ns - m->start_ns) % 1000));
    }
    if (to) fclose(to);
    return text;
}

/* ---- what its head says of waits for a core ---- */

/* Numbers the steps of the file. Returns how many. */
static size_t steps_make(struct slice_command *s, const struct kp_kineto *trace, struct kp_step **out)
{
    struct kp_spans all = {0};
    char why[160];
    size_t count = 0;
    if (s->first_step < 0 && s->marks.count)
        (void)kp_stepspans_cut(&s->marks, trace, 0, LONG_MAX, &all, why, sizeof why);
    kp_spans_fini(&all);
    *out = kp_kineto_zeros(s->marks.count + 1, sizeof **out);
    for (size_t i = 0; i < s->marks.count; i++) {
        const struct kp_stepmark *const m = &s->marks.of[i];
        if (m->number < 0) continue; /* of an optimizer, where the trace marks steps itself */
        (*out)[count++] = (struct kp_step){.start_ns = m->start_ns, .end_ns = m->end_ns, .number = m->number};
    }
    return count;
}

/* Steps that did not wait must not look as if they had: the head's sums are of the part, and where waits are not known
 * by step the part of its time. */
static void core_make(struct slice_command *s, const struct kp_kineto *trace)
{
    static const char *const keys[] = {"core_had_us", "core_waited_us", "core_others_us"};
    struct kp_nocore_times times;
    struct kp_step *steps;
    const size_t count = steps_make(s, trace, &steps);
    bool *const is_in = kp_kineto_zeros(count + 1, sizeof *is_in);
    double all_ns = 0, in_ns = 0, cut_ns = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t ns = steps[i].end_ns - steps[i].start_ns,
                      cut = kp_spans_between(&s->spans, steps[i].start_ns, steps[i].end_ns);
        is_in[i] = 2 * cut >= ns;
        all_ns += (double)ns;
        cut_ns += (double)cut;
        in_ns += is_in[i] ? (double)ns : 0;
    }
    kp_nocore_times_of(&times, trace, steps, count, is_in);
    const double part = all_ns > 0 ? cut_ns / all_ns : 0, of = times.is_of_all || !(in_ns > 0) ? part : cut_ns / in_ns;
    const double us[] = {of * times.had_ns / 1e3, of * times.waited_ns / 1e3,
                         part * (double)kp_kineto_number(trace, "kprof.core_others_us")};
    for (size_t i = 0; i < 3 && part > 0 && part < 1; i++)
        s->core[s->core_count++] = (struct kp_cut_number){keys[i], (int64_t)us[i]};
    free(is_in);
    free(steps);
}

/* ---- the new file ---- */

struct slice_out {
    struct kp_outfile file;
    gzFile gz; /* NULL: plain */
};

static bool ends_in_gz(const char *path) { return path && kp_input_has_end(path, ".gz"); }

static int out_open(struct slice_out *out, const char *path)
{
    int rc = kp_outfile_open(&out->file, path);
    if (rc || !ends_in_gz(path)) return rc;
    const int fd = dup(fileno(out->file.to));
    out->gz = fd < 0 ? NULL : gzdopen(fd, "wb5");
    return out->gz ? 0 : -(errno ? errno : ENOMEM);
}

static int out_put(void *context, const char *text, size_t bytes)
{
    struct slice_out *out = context;
    kp_budget_print(out->gz ? 0 : bytes);
    if (out->gz) return gzwrite(out->gz, text, (unsigned)bytes) == (int)bytes ? 0 : -EIO;
    return fwrite(text, 1, bytes, out->file.to) == bytes ? 0 : -(errno ? errno : EIO);
}

static int slice_write(struct slice_command *s, const struct kp_trace_source *source)
{
    const struct kp_texts texts = kp_trace_source_texts(source);
    const struct kp_cut cut = {&s->spans,    s->within ? -1 : s->first_step, s->last_step, s->more, s->is_torn, s->core,
                               s->core_count};
    struct slice_out out = {0};
    size_t kept = 0;
    char why[512] = "";
    int rc = out_open(&out, s->out);
    if (rc) return kp_cli_fail("slice", "%s: %s", s->out, kp_cli_write_why(-rc));
    rc = kp_tracecut(&texts, &cut, out_put, &out, &kept, why, sizeof why);
    if (out.gz && gzclose(out.gz) != Z_OK && rc == 0) rc = -EIO;
    const int closed = kp_outfile_close(&out.file, rc == 0 && kept);
    if (rc || closed)
        return kp_cli_fail("slice", "%s: %s", s->out ? s->out : "standard output",
                           rc ? why : kp_cli_write_why(-closed));
    if (!kept)
        return kp_cli_fail("slice", "%s: no event in that time; kprof events lists them, in ms after the same start",
                           source->label);
    if (s->is_json) {
        kp_written_say(&(struct kp_written){.name = s->out, .events = kept});
        return KP_EXIT_DONE;
    }
    kp_cli_say(stderr, "kprof: %zu event%s of %s%s%s", kept, kp_units_s(kept), source->label, s->out ? " in " : "",
               s->out ? s->out : "");
    return KP_EXIT_DONE;
}

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct slice_command *s = context;
    struct kp_kineto *trace;
    char why[768];
    const struct kp_kineto_wish wish = {
        .texts = kp_trace_source_texts(source), .label = source->path, .keep = event_look, .context = &s};
    if (several) return kp_cli_misuse("slice", "name one trace, such as %s", source->label);
    kp_nameguess_begin(&s->guess, s->within ? s->within : "");
    int rc = kp_kineto_read(&trace, &wish, why, sizeof why);
    s->is_torn = rc && s->partial && kp_trace_source_take_torn(trace, why, sizeof why);
    if (s->is_torn) kp_cli_say(stderr, "kprof: %s", why);
    else if (rc) {
        const bool is_torn = trace && trace->torn;
        kp_spans_fini(&s->spans);
        kp_stepspans_fini(&s->marks);
        kp_kineto_close(trace);
        kp_nameguess_fini(&s->guess);
        return kp_cli_fail("slice", "%s%s", why, is_torn ? "; --partial cuts those" : "");
    }
    rc = spans_make(s, trace, source->label);
    if (rc == KP_EXIT_DONE) core_make(s, trace);
    kp_kineto_close(trace);
    kp_nameguess_fini(&s->guess);
    s->more = s->has_from || s->has_to ? NULL : marks_make(s);
    kp_stepspans_fini(&s->marks);
    if (rc == KP_EXIT_DONE) rc = slice_write(s, source);
    free(s->more);
    kp_spans_fini(&s->spans);
    return rc;
}

int kp_cmd_slice(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "slice", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct slice_command s = {.first_step = -1, .last_step = -1};
    const int i = kp_opt_flags(&scan, &s, option_take);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (s.first_step < 0 && !s.within && !s.has_from && !s.has_to)
        return kp_cli_misuse("slice", "say which part: --step, --from, --to or --within");
    if (kp_opt_times_check("slice", s.has_from && s.has_to, s.from_ns, s.to_ns)) return KP_EXIT_USAGE;
    if (s.is_json && kp_written_check("slice", s.out)) return KP_EXIT_USAGE;
    if (s.first_step >= 0 && s.within) return kp_cli_misuse("slice", "--step and --within do not go together");
    const int count = kp_latest_take("slice", &argv, scan.count, KP_LATEST_ONE);
    return count ? kp_input_each("slice", argv, count, NULL, trace_take, &s) : KP_EXIT_USAGE;
}

// SPDX-License-Identifier: Apache-2.0
/* cmd_why.c - kprof why: of a job that ended, which rank went first and how, and which followed */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_path.h"
#include "export/answers/hang/hangjudge.h"
#include "export/answers/ranks/lastwords.h"
#include "export/answers/ranks/rankwaits.h"
#include "export/answers/ranks/why.h"
#include "export/answers/runadvice/advised.h"
#include "export/answers/watch/watch.h"
#include "export/cli/cli.h"
#include "export/answers/jobs/whereask.h"
#include "export/read/folder/jobends.h"
#include "export/answers/memory/oomfiles.h"
#include "export/answers/jobs/latest.h"
#include "export/answers/jobs/stood.h"
#include "export/read/folder/trace_source.h"
#include "export/read/kineto/ended.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/files/procstate.h"

enum { SECOND_NS = 1000000000 };
#define RANKS_APART_NS (60 * INT64_C(1000000000)) /* ranks of one job end within this time of each other */

static const struct kp_opt flags[] = {{"json", 0, KP_OPT_FLAG, NULL, "a line of JSON", KP_OPT_ALONE}, {0}};

struct why_command {
    struct kp_why why;
    struct kp_watch watch; /* lines a step (KPROF_SUMMARY) */
    struct kp_jobends ends;
    struct kp_stuck stuck;
};

/* An exception that Python's own end did not tell, as that of a function that torch started as a rank. */
static void error_take(struct kp_kineto *trace)
{
    const char *const path = kp_kineto_fact(trace, "kprof.error_file");
    struct kp_errorfile e;
    if (!path || kp_ended_exception(trace) || !kp_errorfile_open(&e, path)) return;
    if (e.at_ns + SECOND_NS < trace->start_ns) return; /* of a run before */
    kp_fact_put(trace, "kprof.exception", e.type);
    if (*e.place) kp_fact_put(trace, "kprof.exception_at", e.place);
    if (e.has_lost_peer) kp_fact_put(trace, "kprof.lost_peer", "1");
}

/* Lines a step are there also behind the windows. */
static void lines_look(struct kp_why_known *known, const struct kp_watch *watch, long pid)
{
    for (size_t i = 0; i < watch->count; i++) {
        const struct kp_watch_rank *const r = &watch->ranks[i];
        if (r->head.pid != pid) continue;
        known->is_running |= r->state == KP_WATCH_RUNS || r->state == KP_WATCH_SILENT;
        if (r->state == KP_WATCH_ENDED) known->end = KP_WHY_EXITED;
        if (r->state == KP_WATCH_GONE) known->end = KP_WHY_GONE;
        known->step = r->last.count ? (long)r->last.step : -1;
    }
}

/* A process of this machine that was there before the trace is the one that made it. */
static bool is_there(struct kp_kineto *trace)
{
    struct timespec up;
    const uint64_t start = kp_procstate_start((long)kp_kineto_pid(trace)), ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    clock_gettime(CLOCK_BOOTTIME, &up);
    const int64_t booted_ns = (int64_t)kp_clock_ns(CLOCK_REALTIME) - up.tv_sec * (int64_t)SECOND_NS;
    return start && booted_ns + (int64_t)(start * ((uint64_t)SECOND_NS / ticks)) <= trace->start_ns + SECOND_NS;
}

/* As a process said at its exit, where its trace does not. */
static void exception_take(struct kp_kineto *trace, const struct kp_jobend *end)
{
    if (!*end->exception || kp_ended_exception(trace)) return;
    kp_fact_put(trace, "kprof.exception", end->exception);
    if (*end->place) kp_fact_put(trace, "kprof.exception_at", end->place);
    if (*end->text) kp_fact_put(trace, "kprof.exception_text", end->text);
    if (*end->root) kp_fact_put(trace, "kprof.exception_root", end->root);
    if (end->has_lost_peer) kp_fact_put(trace, "kprof.lost_peer", "1");
}

/* A process that notes its end after its first window (HOST_PID.ends), and did not, was killed if it is gone. */
static void end_look(const struct why_command *w, struct kp_kineto *trace, struct kp_jobend *end,
                     struct kp_why_known *known)
{
    const char *const host = kp_kineto_fact(trace, "host_name");
    char here[65] = "";
    gethostname(here, sizeof here - 1);
    kp_jobends_child(trace, &w->ends);
    if (!kp_jobends_find(&w->ends, host, (long)kp_kineto_pid(trace), trace->start_ns, end)) return;
    known->by = *end->by ? end->by : NULL;
    if (end->is_pending) {
        known->is_running |= host && strcmp(host, here) == 0 && is_there(trace);
        if (!known->is_running && host && strcmp(host, here) == 0) known->end = KP_WHY_GONE;
        return;
    }
    known->gone_ns = end->at_ns;
    if (end->is_own && !known->by) known->end = KP_WHY_EXITED;
    if (end->step >= 0) known->step = end->step, known->is_last_step = true;
    exception_take(trace, end);
}

static void trace_add(struct why_command *w, struct kp_advised *a, const struct kp_trace_source *source)
{
    struct kp_why_known known = {.is_running = source->is_spool && kp_input_is_running(source->path), .step = -1};
    struct kp_jobend end;
    lines_look(&known, &w->watch, (long)kp_kineto_pid(a->trace));
    end_look(w, a->trace, &end, &known);
    if (!known.is_running) error_take(a->trace);
    kp_why_add(&w->why, &a->tree, &a->chosen, &known);
    kp_stood_look(&w->stuck, &a->tree, &a->chosen, source->path, source->is_spool);
}

struct glance {
    long rank, pid;
    bool has_exited;
    int stop;
};

/* Takes no event. The head is known once the first op comes. */
static bool head_look(const void *context, const struct kp_kineto *trace, const struct kp_kineto_event *event)
{
    struct glance *const g = *(struct glance *const *)context;
    if (g->stop || event->kind != KP_KINETO_OP) return false;
    const bool is_open = kp_ended_went_on(trace) || kp_ended_is_kept(trace);
    const bool has_cause = kp_ended_badly(trace) || kp_ended_by(trace) || kp_kineto_fact(trace, "kprof.exit_status") ||
                           kp_kineto_fact(trace, "kprof.error_file");
    g->stop = -ECANCELED;
    g->rank = kp_rankwaits_rank(trace);
    g->pid = (long)event->pid;
    g->has_exited = kp_kineto_fact(trace, "kprof.complete") && !is_open && !has_cause;
    return false;
}

/*
 * Whether the head of a lone trace says that its program ended by itself. Nothing else is asked of the trace then, so
 * its events are not read: a large one takes minutes.
 */
static bool exit_take(struct why_command *w, const struct kp_trace_source *source)
{
    struct glance glance = {.rank = -1}, *const g = &glance;
    const struct kp_kineto_wish wish = {.texts = kp_trace_source_texts(source),
                                        .label = source->path,
                                        .keep = head_look,
                                        .context = &g,
                                        .stop = &glance.stop};
    struct kp_kineto *trace;
    char why[512];
    if (source->is_spool || w->ends.count || w->watch.count) return false;
    (void)kp_kineto_read(&trace, &wish, why, sizeof why);
    kp_kineto_close(trace);
    if (!glance.has_exited) return false;
    kp_why_add_untraced(&w->why, &(struct kp_jobend){.rank = glance.rank, .pid = glance.pid, .step = -1});
    return true;
}

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct why_command *const w = context;
    struct kp_advised a;
    char why[512];
    if (!several && exit_take(w, source)) return KP_EXIT_DONE;
    const int rc = kp_stood_open(&a, source, why, sizeof why);
    if (rc == 0) trace_add(w, &a, source);
    kp_advised_close(&a);
    return rc ? kp_cli_fail("why", "%s", why) : KP_EXIT_DONE;
}

/*
 * Processes that left no trace: ranks that KPROF_RANKS leaves out, or all where nothing was recorded. The last one
 * counts if the folder has several jobs.
 */
static void untraced_take(struct why_command *w)
{
    int64_t since_ns = INT64_MAX, last_ns = 0;
    for (size_t i = 0; i < w->why.count; i++)
        if (w->why.of[i].begun_ns < since_ns) since_ns = w->why.of[i].begun_ns;
    for (size_t i = 0; i < w->ends.count; i++)
        if (w->ends.of[i].is_own && w->ends.of[i].at_ns > last_ns) last_ns = w->ends.of[i].at_ns;
    if (!w->why.count) since_ns = last_ns - RANKS_APART_NS;
    for (size_t i = w->ends.count; i-- > 0;) {
        struct kp_jobend end;
        const struct kp_jobend *const e = &w->ends.of[i];
        if (!e->is_own || e->is_pending || e->at_ns < since_ns || kp_why_has(&w->why, e->rank, e->pid)) continue;
        (void)kp_jobends_find(&w->ends, e->host, e->pid, since_ns, &end);
        if (w->why.count ? *end.by || *end.exception : true) kp_why_add_untraced(&w->why, &end);
    }
}

/* The folder of a path, which may be one itself. */
static void folder_of(char *out, size_t bytes, const char *path)
{
    struct stat st;
    const bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (is_folder) snprintf(out, bytes, "%s", path);
    else kp_path_folder(out, bytes, path);
}

/* Reads the files of KPROF_HANG that lie beside the traces. They are all that is known if there is no trace. */
static void stood_find(struct kp_why *why, const char *folder)
{
    struct kp_hang hang = {0};
    struct kp_hang_verdict verdict;
    bool has_stood = false;
    const size_t count = kp_where_files(&hang, folder);
    for (size_t i = 0; i < count; i++)
        has_stood |= kp_why_stood(why, hang.of[i].pid, (int64_t)(1e6 * hang.of[i].time_ms), hang.of[i].step);
    if (has_stood || (count && !why->count)) {
        kp_hang_judge(&verdict, &hang, NULL);
        snprintf(why->stood, sizeof why->stood, "%s", verdict.text);
        kp_hang_verdict_fini(&verdict);
    }
    kp_hang_fini(&hang);
}

/* The judgement of report and advise on the same traces: they have it if no file of KPROF_HANG does. */
static void stuck_find(struct why_command *w)
{
    struct kp_stuck_told told;
    const bool stands = kp_stood_tell(&told, &w->stuck);
    if (w->stuck.is_running && *told.what)
        snprintf(w->why.now, sizeof w->why.now, "%s%s", stands ? "it is stuck: " : "", told.what);
    if (!stands || w->stuck.is_running) return;
    if (!*w->why.stood) (void)kp_why_stand(&w->why, told.what);
    else if (*w->stuck.stood) snprintf(w->why.stood, sizeof w->why.stood, "%s", told.what);
}

static void oom_take(void *context, const struct kp_oom *oom)
{
    kp_why_oom(context, oom->pid, oom->time_ms, oom->text);
}

int kp_cmd_why(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "why", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct why_command w = {0};
    char folder[4400];
    bool is_json = false;
    const int i = kp_opt_flags(&scan, &is_json, NULL);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    const int count = kp_latest_take("why", &argv, scan.count, 0);
    if (!count) return KP_EXIT_USAGE;
    folder_of(folder, sizeof folder, argv[0]);
    kp_jobends_read(&w.ends, folder);
    (void)kp_watch_read(&w.watch, folder, kp_clock_ns(CLOCK_REALTIME));
    const int worst = kp_input_each("why", argv, count, NULL, trace_take, &w);
    const bool has_trace = w.why.count;
    untraced_take(&w);
    kp_why_settle(&w.why);
    stood_find(&w.why, folder);
    stuck_find(&w);
    (void)kp_oomfile_each(folder, oom_take, &w.why);
    const bool is_any = w.why.count || *w.why.stood || *w.why.oom, is_without_trace = !has_trace && is_any;
    if (is_any && is_json) kp_why_json(stdout, &w.why);
    else if (is_any) kp_why_print(stdout, &w.why);
    kp_why_fini(&w.why);
    kp_stuck_fini(&w.stuck);
    kp_jobends_fini(&w.ends);
    kp_watch_free(&w.watch);
    return is_without_trace ? KP_EXIT_DONE : worst;
}

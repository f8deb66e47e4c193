// SPDX-License-Identifier: Apache-2.0
/*
 * why.c - why a job ended: the rank that went first, and those that followed
 *
 * A launcher ends the ranks that are left by SIGTERM, so such a rank is no cause where another went by itself. Among
 * the others one whose exception says that another rank was gone is no cause either. Among the rest the one whose last
 * op or step ended first is: the others went on until they missed it. If a process wrote before it ended that it stands
 * (KPROF_HANG), and did nothing more, that is the cause of all ends. If the others waited in a collective until it took
 * too long, the rank that did not come to it is the cause, whatever ended that one. If a launcher started all ranks
 * once more (torchrun --max-restarts), only the last ranks show why the job ended.
 */
#include "export/answers/ranks/why.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "collector/base/text/kp_signalname.h"
#include "export/answers/ranks/rankwaits.h"
#include "export/answers/ranks/silence.h"
#include "export/answers/ranks/stuck.h"
#include "export/read/facts/namefacts.h"
#include "export/read/kineto/ended.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/fields.h"
#include "export/show/plain.h"

#define BEHIND_NS INT64_C(200000000)    /* a launcher looks at its ranks that often, and ends those that are left */
#define TOGETHER_NS INT64_C(1000000000) /* a launcher ends the others sooner than a person ends one more */
#define WAITED_NS INT64_C(2000000000)   /* least silence of a rank that a collective's limit ended */
enum { OUT_OF_STEP_NS = 1000000000 };

static bool is_collective(const struct kp_tree *tree, size_t i)
{
    return kp_node_is(tree, i, KP_NAME_COMM_OP | KP_NAME_COLLECTIVE);
}

/*
 * When the process did something last. An op that was open has no end, and is the last that it did. DDP begins a
 * collective within an op of autograd, which ends behind it.
 */
static void times_look(struct kp_why_end *out, const struct kp_tree *tree)
{
    int64_t latest = INT64_MIN;
    bool has_begun_one = false;
    out->last_ns = out->begun_ns = tree->trace->start_ns;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const n = &tree->nodes[i];
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        const bool is_open = e->flags & KP_KINETO_UNFINISHED;
        const int64_t ns = is_open ? n->start_ns : n->end_ns, until = is_open ? INT64_MAX : n->end_ns;
        if (e->kind != KP_KINETO_OP || n->on_device) continue;
        if (ns > out->last_ns) out->last_ns = ns;
        if (n->start_ns > out->begun_ns) out->begun_ns = n->start_ns, has_begun_one = is_collective(tree, i);
        if (until > latest) out->has_waited = false;
        if (until >= latest) latest = until, out->has_waited |= is_collective(tree, i);
    }
    out->has_waited |= has_begun_one;
}

/* It is not known for a ring without steps, which has lost its first collectives. */
static void came_look(struct kp_why_end *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_why_came *const came = &out->came;
    const struct kp_step *const last = chosen->step_count ? &chosen->steps[chosen->step_count - 1] : NULL;
    came->is_known = !kp_ended_went_on(tree->trace) && (last || !kp_ended_is_last_part(tree->trace));
    came->step = last ? last->number : -1;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const n = &tree->nodes[i];
        if (n->on_device || !kp_node_is(tree, i, KP_NAME_COMM_OP) || (last && n->start_ns < last->end_ns)) continue;
        came->collectives++;
        const char *const name = kp_kineto_text(tree->trace, kp_tree_event(tree, i)->name);
        if (!*came->last || strchr(name, ':')) snprintf(came->last, sizeof came->last, "%s", name);
    }
    out->silent_ns = tree->trace->end_ns - out->last_ns;
}

/* Behind a window: what it had done by its lines a step, by its own word, or at least in the window. */
static void window_how_put(struct kp_why_end *e, const struct kp_kineto *t, long last, const struct kp_why_known *known)
{
    char way[KP_ENDED_WAY_BYTES], at[KP_ENDED_PLACE_BYTES], after[96];
    if (known->step >= 0 && known->step >= last)
        snprintf(after, sizeof after, "after step %ld%s", known->step, known->is_last_step ? "" : " or later");
    else if (last >= 0) snprintf(after, sizeof after, "some time after step %ld, the last that was recorded", last);
    else snprintf(after, sizeof after, "before its first step");
    kp_ended_exception_place(at, sizeof at, t);
    snprintf(e->how, sizeof e->how, "%s%s%s %s", kp_ended_way(way, sizeof way, t), at, *at ? "," : "", after);
}

static void how_put(struct kp_why_end *e, const struct kp_tree *tree, const struct kp_chosen *chosen,
                    const struct kp_why_known *known)
{
    const struct kp_kineto *const t = tree->trace;
    const long last = chosen->step_count ? chosen->steps[chosen->step_count - 1].number : -1;
    char way[KP_ENDED_WAY_BYTES];
    if (kp_ended_went_on(t)) {
        window_how_put(e, t, last, known);
        return;
    }
    if (*kp_lastwords_ended(e->how, sizeof e->how, tree, chosen)) return;
    kp_ended_way(way, sizeof way, t);
    if (last < 0 && chosen->parts.has_cut)
        snprintf(e->how, sizeof e->how, "%s in step %ld%s", way, chosen->parts.cut, kp_ended_remark(t));
    else if (last < 0 && kp_kineto_number(t, "kprof.cycle") > 1) /* a window that began no step */
        snprintf(e->how, sizeof e->how, "%s between its windows%s", way, kp_ended_remark(t));
    else if (kp_ended_early(t) || last < 0)
        snprintf(e->how, sizeof e->how, "%s before its first step%s", way, kp_ended_remark(t));
    else snprintf(e->how, sizeof e->how, "%s after step %ld", way, last);
}

#define SHELLS "exit status 143"

/* So a launcher ends the ranks that are left. A handler of the signal may give the status that a shell would. */
static bool is_of_sigterm(const char *by)
{
    return by && (strcmp(by, "SIGTERM") == 0 || strcmp(by, SHELLS) == 0 || kp_ended_says_more(by, SHELLS));
}

/* So a person ends a job, or a scheduler; the kernel ends one of its ranks so. */
static bool is_of_person(const char *by)
{
    static const char *const names[] = {"SIGINT", "SIGHUP", "SIGQUIT", "SIGKILL", "KeyboardInterrupt"};
    for (size_t i = 0; by && i < sizeof names / sizeof *names; i++)
        if (strcmp(by, names[i]) == 0) return true;
    return false;
}

/* The end's cause that the trace does not have: the launcher's word, else the program's own exit status. */
static bool told_put(struct kp_kineto *trace, const char *by)
{
    const char *const status = kp_kineto_fact(trace, "kprof.exit_status");
    char text[KP_JOBEND_BYTES];
    snprintf(text, sizeof text, "exit status %.480s", status ? status : "");
    if (!by && status) by = text;
    if (by && !kp_ended_exception(trace) && !kp_ended_signal(trace)) kp_fact_put(trace, "kprof.ended_by", by);
    return by;
}

void kp_why_add(struct kp_why *why, const struct kp_tree *tree, const struct kp_chosen *chosen,
                const struct kp_why_known *known)
{
    struct kp_kineto *const t = tree->trace;
    struct kp_why_end e = {
        .rank = kp_rankwaits_rank(t), .pid = (long)kp_kineto_pid(t), .is_running = known->is_running};
    const bool is_named = told_put(t, known->by);
    const char *const signal = kp_ended_signal(t);
    e.started_ns = t->start_ns;
    times_look(&e, tree);
    came_look(&e, tree, chosen);
    e.until_ns = t->end_ns > e.last_ns ? t->end_ns : e.last_ns;
    e.gone_ns = known->gone_ns;
    const bool is_told = kp_ended_badly(t) || is_named, is_open = kp_ended_went_on(t);
    e.is_bad = !known->is_running && (is_told || (is_open && known->end == KP_WHY_GONE));
    e.is_kept = kp_ended_is_kept(t);
    e.has_gone_on = !e.is_bad && !e.is_running && is_open && known->end != KP_WHY_EXITED;
    e.is_asked = !kp_ended_exception(t) && is_of_sigterm(signal);
    e.is_stopped = is_of_person(kp_ended_by(t));
    e.has_lost_peer = kp_ended_lost_peer(t);
    e.has_oom = kp_ended_oom(t);
    e.has_crashed = e.is_bad && !kp_ended_exception(t) && !e.has_lost_peer && kp_ended_by_crash(signal);
    snprintf(e.word, sizeof e.word, "%s", kp_ended_word(t));
    e.is_of_window = is_open;
    e.steps = known->is_last_step ? known->step + 1 : 0;
    if (e.is_bad) how_put(&e, tree, chosen, known);
    else if (chosen->step_count)
        snprintf(e.how, sizeof e.how, " (step %ld)", chosen->steps[chosen->step_count - 1].number);
    if (e.is_bad && kp_ended_is_last_part(t)) kp_ended_recorded(e.recorded, sizeof e.recorded, t);
    *KP_KINETO_NEXT(why->of, why->count, why->capacity) = e;
}

void kp_why_add_untraced(struct kp_why *why, const struct kp_jobend *end)
{
    struct kp_why_end e = {.rank = end->rank, .pid = end->pid, .gone_ns = end->at_ns, .steps = end->step + 1};
    const char *const by = *end->exception ? end->exception : end->by;
    char quoted[KP_ENDED_TEXT_BYTES], at[KP_ENDED_PLACE_BYTES] = "", after[48] = "before its first step";
    if (*end->exception) kp_ended_place(at, sizeof at, end->place, end->root);
    if (end->step >= 0) snprintf(after, sizeof after, "after step %ld", end->step);
    e.started_ns = e.last_ns = e.begun_ns = e.until_ns = end->at_ns;
    e.is_bad = *by;
    e.is_asked = !*end->exception && is_of_sigterm(end->by);
    e.is_stopped = is_of_person(by);
    e.has_lost_peer = end->has_lost_peer || kp_ended_by_watchdog(by);
    e.has_crashed = !*end->exception && !e.has_lost_peer && kp_ended_by_crash(end->by);
    snprintf(e.word, sizeof e.word, "%s", kp_signalname_number(by) == SIGKILL ? "killed" : "ended");
    snprintf(e.how, sizeof e.how, "by %s%s%s%s %s", by,
             kp_ended_text(quoted, sizeof quoted, *end->exception ? end->text : NULL), at, *at ? "," : "", after);
    *KP_KINETO_NEXT(why->of, why->count, why->capacity) = e;
}

bool kp_why_has(const struct kp_why *why, long rank, long pid)
{
    for (size_t i = 0; i < why->count; i++)
        if (why->of[i].pid == pid || (rank >= 0 && why->of[i].rank == rank)) return true;
    return false;
}

bool kp_why_stood(struct kp_why *why, long pid, int64_t ns, long steps)
{
    bool has = false;
    for (size_t i = 0; i < why->count; i++) {
        struct kp_why_end *const e = &why->of[i];
        if (e->pid != pid || !e->is_bad || e->begun_ns > ns || e->steps > steps) continue;
        has = e->has_stood = true;
    }
    return has;
}

/* Ranks are not in step: one may enter a collective before the one that it will miss has ended its last op. */
static int64_t left_ns(const struct kp_why_end *e) { return e->last_ns + (e->has_waited ? OUT_OF_STEP_NS : 0); }

static const struct kp_why_end *latest_of_rank(const struct kp_why *why, long rank)
{
    const struct kp_why_end *latest = NULL;
    for (size_t i = 0; i < why->count; i++)
        if (why->of[i].rank == rank && (!latest || why->of[i].last_ns > latest->last_ns)) latest = &why->of[i];
    return latest;
}

/* A rank has two processes where it was started once more. All that ended before the last start is over by then. */
static void restarts_mark(struct kp_why *why)
{
    int64_t started_ns = INT64_MAX;
    for (size_t i = 0; i < why->count; i++) {
        const struct kp_why_end *const e = &why->of[i], *const latest = latest_of_rank(why, e->rank);
        if (e->rank >= 0 && e->pid != latest->pid && latest->started_ns < started_ns) started_ns = latest->started_ns;
    }
    for (size_t i = 0; i < why->count && started_ns < INT64_MAX; i++)
        why->of[i].is_restarted = why->of[i].last_ns < started_ns;
}

/* One of the last ranks that did not end by itself. */
static bool is_bad(const struct kp_why_end *e) { return e->is_bad && !e->is_restarted; }

/*
 * A launcher kills the ranks that SIGTERM did not end, long behind the first. One that another rank left alone may
 * abort while it ends: that is no cause.
 */
static void late_mark(struct kp_why *why)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < why->count; i++) {
        const struct kp_why_end *const e = &why->of[i];
        if (is_bad(e) && e->gone_ns && e->gone_ns < first) first = e->gone_ns;
    }
    for (size_t i = 0; i < why->count && first < INT64_MAX; i++) {
        struct kp_why_end *const e = &why->of[i];
        e->is_asked |= e->has_crashed && e->gone_ns > first + BEHIND_NS;
    }
}

static int by_way(const struct kp_why_came *a, const struct kp_why_came *b)
{
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    return a->collectives < b->collectives ? -1 : a->collectives > b->collectives;
}

/* Torch before 2.3 gives its watchdog no name, so an abort may be the watchdog's. */
static bool has_waited_out(const struct kp_why_end *e)
{
    const bool may = e->has_lost_peer || (e->has_crashed && strncmp(e->how, "by SIGABRT ", 11) == 0);
    return may && e->came.is_known && e->came.collectives && e->silent_ns >= WAITED_NS;
}

/* The rank that did not come to the collective in which all others waited until they ended of that. */
static void missed_mark(struct kp_why *why)
{
    struct kp_why_end *far = NULL, *least = NULL;
    for (size_t i = 0; i < why->count; i++) {
        struct kp_why_end *const e = &why->of[i];
        if (!is_bad(e)) continue;
        if (!e->is_asked && !has_waited_out(e)) return; /* it has a cause of its own */
        if (!e->is_asked && (!far || by_way(&e->came, &far->came) > 0)) far = e;
        if (e->came.is_known && (!least || by_way(&e->came, &least->came) < 0)) least = e;
    }
    for (size_t i = 0; far && i < why->count; i++) {
        struct kp_why_end *const e = &why->of[i];
        char text[160];
        if (!is_bad(e) || !e->came.is_known || by_way(&e->came, &least->came) > 0 || by_way(&e->came, &far->came) >= 0)
            continue;
        e->is_missed = true;
        snprintf(text, sizeof text, ", and others had waited for it in %s for %.1f s", far->came.last,
                 (double)far->silent_ns / 1e9);
        strncat(e->how, text, sizeof e->how - strlen(e->how) - 1);
    }
}

/* Exceptions follow a crash, and a lost peer follows whatever the clocks say. */
KP_ORDERED(by_cause, struct kp_why_end,
           KP_UP(is_restarted) KP_DOWN(is_bad) KP_DOWN(is_missed) KP_UP(is_asked) KP_DOWN(has_crashed)
                       KP_UP(has_lost_peer) if (x->is_bad && left_ns(x) != left_ns(y)) return left_ns(x) < left_ns(y)
               ? -1
               : 1;
           KP_UP(rank))

/* A process that goes on makes a trace after each window. */
static bool is_newest(const struct kp_why *why, size_t at)
{
    const struct kp_why_end *const e = &why->of[at];
    for (size_t i = 0; i < why->count; i++) {
        const struct kp_why_end *const o = &why->of[i];
        const bool is_later = o->last_ns > e->last_ns || (o->last_ns == e->last_ns && i > at);
        if (o->rank == e->rank && o->pid == e->pid && is_later) return false;
    }
    return true;
}

void kp_why_settle(struct kp_why *why)
{
    struct kp_why newest = {0};
    for (size_t i = 0; i < why->count; i++)
        if (is_newest(why, i)) *KP_KINETO_NEXT(newest.of, newest.count, newest.capacity) = why->of[i];
    free(why->of);
    why->of = newest.of;
    why->count = newest.count;
    why->capacity = newest.capacity;
    for (size_t i = 0; i < why->count; i++) /* the program went on behind the window */
        if (why->of[i].is_of_window && why->of[i].gone_ns) why->of[i].last_ns = why->of[i].gone_ns;
    restarts_mark(why);
    late_mark(why);
    missed_mark(why);
    if (why->count) qsort(why->of, why->count, sizeof *why->of, by_cause);
}

/* How long after the first of the last ranks the last one ended, as far as all were seen. */
static int64_t apart_ns(const struct kp_why *why)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < why->count; i++) {
        const struct kp_why_end *const e = &why->of[i];
        const int64_t ns = e->gone_ns ? e->gone_ns : e->until_ns;
        if (!is_bad(e)) continue;
        if (ns < first) first = ns;
        if (ns > last) last = ns;
    }
    return last - first;
}

/* Were all of them ended alike? A lone one that was killed may have had no memory. */
static bool are_ended(const struct kp_why *why, bool with_stopped)
{
    size_t bad = 0, killed = 0;
    for (size_t i = 0; i < why->count; i++) {
        const struct kp_why_end *const e = &why->of[i];
        if (!is_bad(e)) continue;
        if (!e->is_asked && !(with_stopped && e->is_stopped)) return false;
        bad++;
        killed += !e->is_asked && strcmp(e->word, "killed") == 0;
    }
    return bad && (!killed || (killed == bad && bad > 1));
}

bool kp_why_stand(struct kp_why *why, const char *text)
{
    if (!are_ended(why, true) || apart_ns(why) >= KP_SILENCE_LEAST_NS) return false;
    for (size_t i = 0; i < why->count; i++)
        if (why->of[i].is_of_window || why->of[i].has_gone_on || why->of[i].is_running) return false;
    for (size_t i = 0; i < why->count; i++) why->of[i].has_stood = is_bad(&why->of[i]);
    snprintf(why->stood, sizeof why->stood, "%s", text);
    return true;
}

static bool has_exited(const struct kp_why_end *e) { return !e->is_bad && !e->is_running && !e->has_gone_on; }

static void end_say(FILE *out, const struct kp_why_end *e)
{
    if (e->rank >= 0) fprintf(out, "rank %ld ", e->rank);
    else fprintf(out, "the program (process %ld) ", e->pid);
    if (e->is_running) fputs("still runs", out);
    else if (e->has_gone_on && e->is_kept) fputs("went on when its ring was kept, and left nothing more", out);
    else if (e->has_gone_on) fprintf(out, "went on after its recording%s; how it ended is not known", e->how);
    else if (!e->is_bad) fputs("ended by itself", out);
    else kp_plain_fmt(out, "%s%s %s", strcmp(e->word, "killed") == 0 ? "was " : "", e->word, e->how);
    if (*e->recorded) fprintf(out, "; recorded is %s", e->recorded);
}

/* glibc aborts by itself where no call is seen, and a call has its line or its cause. */
static bool is_bare_abort(const char *how)
{
    static const char way[] = "by SIGABRT ";
    const char *const behind = how + sizeof way - 1;
    return strncmp(how, way, sizeof way - 1) == 0 && strncmp(behind, "of ", 3) != 0 && strncmp(behind, "at ", 3) != 0 &&
           *behind != '(';
}

/* The sender of such a signal, that a program handles where it expects it; NULL: known by its name. */
static const char *sender_of(const char *how)
{
    static const struct {
        int number;
        const char *said;
    } senders[] = {
        {SIGALRM, "a timer (alarm(), setitimer()) of the program or of a library ran out, and nothing handled it"},
        {SIGXCPU, "the limit of its CPU time was reached (ulimit -t)"},
        {SIGXFSZ, "a file reached the limit of its size (ulimit -f)"},
        {SIGPIPE, "it wrote to a pipe or a socket whose reader was gone"},
        {SIGHUP, "its terminal or session went away; nohup, setsid and tmux keep a job"},
        {SIGBUS, "a mapped file was cut, or its disk or /dev/shm was full"},
        {SIGILL, "an instruction that this CPU lacks"},
        {SIGUSR1, "schedulers send it before a time limit, and nothing handled it"},
        {SIGUSR2, "schedulers send it before a time limit, and nothing handled it"}};
    const int number = strncmp(how, "by ", 3) == 0 ? kp_signalname_number(how + 3) : 0;
    for (size_t i = 0; i < sizeof senders / sizeof *senders; i++)
        if (senders[i].number == number) return senders[i].said;
    return NULL;
}

/* Only the parent is told a signal, and it was not recorded. */
static void hint_say(FILE *out, const struct kp_why_end *first)
{
    const char *const sender = sender_of(first->how);
    if (sender) fprintf(out, "  %s\n", sender);
    if (is_bare_abort(first->how))
        fputs("  no call of abort() was seen: if the C library ended it, its standard error has the cause\n", out);
    if (strstr(first->how, KP_ENDED_WITHOUT_EXIT))
        fputs("  only its parent knows the signal: kprof run notes it with --advise, with --json or on a terminal; "
              "with --ring or --hang a program notes its own crash, and the line\n",
              out);
}

void kp_why_oom(struct kp_why *why, int64_t pid, int64_t time_ms, const char *text)
{
    enum { SOON_MS = 60000 }; /* a program that went on for longer did not end of it */
    const struct kp_why_end *const e = why->count ? &why->of[0] : NULL;
    const bool is_of = !e || (e->is_bad && e->pid == pid && e->last_ns / 1000000 - time_ms <= SOON_MS);
    if (is_of) snprintf(why->oom, sizeof why->oom, "%s", text);
}

static const char *when_word(const struct kp_why *why, const struct kp_why_end *e)
{
    if (e->is_restarted) return "before a restart ";
    if (!*why->stood && has_exited(e) && e->last_ns < why->of[0].last_ns) return "before that ";
    return e->is_bad ? "then " : "";
}

/* A line each from that one on. If the last ranks ended by themselves, for those before a restart alone. */
static void ends_print(FILE *out, const struct kp_why *why, size_t from, bool is_good)
{
    for (size_t i = from; i < why->count; i++) {
        const struct kp_why_end *const e = &why->of[i];
        if (is_good && !(e->is_restarted && e->is_bad)) continue;
        fprintf(out, "  %s", when_word(why, e));
        end_say(out, e);
        fputc('\n', out);
    }
}

void kp_why_print(FILE *out, const struct kp_why *why)
{
    size_t bad = 0, running = 0;
    for (size_t i = 0; i < why->count; i++)
        bad += is_bad(&why->of[i]), running += why->of[i].is_running || why->of[i].has_gone_on;
    if (!why->count) {
        kp_plain_fmt(out, *why->stood ? "it was stuck: %s\n" : "%s\n", *why->stood ? why->stood : why->oom);
        return;
    }
    if (!bad && !running && !*why->stood) {
        fprintf(out, "%s\n", why->count == 1 ? "the program ended by itself" : "all processes ended by themselves");
        ends_print(out, why, 0, true);
        return;
    }
    if (*why->stood) kp_plain_fmt(out, "it was stuck: %s\n", why->stood);
    const bool is_of_all = bad > 1 && are_ended(why, false) && apart_ns(why) <= TOGETHER_NS;
    if (!*why->stood && is_of_all)
        fprintf(out, "%zu processes were ended by SIGTERM within 1 s, from outside: none of them failed first\n", bad);
    else if (!*why->stood) {
        end_say(out, &why->of[0]);
        fputs(bad > 1 ? "; others followed\n" : "\n", out);
        hint_say(out, &why->of[0]);
    }
    if (*why->now) kp_plain_fmt(out, "  %s\n", why->now);
    if (*why->oom && !why->of[0].has_oom) kp_plain_fmt(out, "  %s\n", why->oom);
    ends_print(out, why, *why->stood || is_of_all ? 0 : 1, false);
}

/* clang-format off */
#define END(F, IF) \
    F(MAYBE_WHOLE, rank, r->rank) \
    F(WHOLE, pid, r->pid) \
    F(BOOL, by_itself, has_exited(r)) \
    F(BOOL, running, r->is_running) \
    F(BOOL, before_restart, r->is_restarted) \
    F(BOOL, stood, r->has_stood) \
    F(TEXT, how, r->is_bad ? r->how : "") \
    F(MAYBE, recorded, *r->recorded ? r->recorded : NULL)
KP_FIELDS(end, struct kp_why_end, END)

#define WHY(F, IF) \
    F(VERSION, why, 1) \
    F(MAYBE, stood, *r->stood ? r->stood : NULL) \
    F(MAYBE, now, *r->now ? r->now : NULL) \
    F(MAYBE, out_of_memory, *r->oom ? r->oom : NULL) \
    F(LIST, ends, (end, r->count, &r->of[i]))
KP_FIELDS(why, struct kp_why, WHY)
/* clang-format on */

const struct kp_fields *const kp_why_schema = &why_fields;

void kp_why_json(FILE *out, const struct kp_why *why) { kp_fields_line(out, &why_fields, why); }

void kp_why_fini(struct kp_why *why)
{
    free(why->of);
    *why = (struct kp_why){0};
}

// SPDX-License-Identifier: Apache-2.0
/* tophead.c - prints the lines above the rows of `kprof report`, and what another recording would show */
#include "export/read/kineto/kineto_facts.h"
#include "export/answers/top/toptable.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/base/kp_config.h"
#include "export/read/kineto/ended.h"
#include "export/read/facts/steps/everynth.h"
#include "export/read/facts/steps/nocore.h"
#include "export/read/facts/steps/percentiles.h"
#include "export/read/kineto/pagefaults.h"
#include "export/read/kineto/phasetimes.h"
#include "export/show/plain.h"
#include "export/show/units.h"
#include "export/read/facts/valuereads.h"

enum { PERCENTILES_LEAST = 20 };
#define BARE_LONG_TOLD 0.05 /* of the time of all steps before the window */

static const char *fact_of(const struct kp_top_report *r, const char *path)
{
    return kp_kineto_fact(r->top->trace, path);
}

/* A worker, or another child of the program: it has no steps and no DataLoader. */
static bool is_worker(const struct kp_top_report *r) { return fact_of(r, "kprof.parent_pid") != NULL; }

static void program_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_kineto *trace = r->top->trace;
    const char *program = fact_of(r, "kprof.script"), *host = fact_of(r, "host_name"), *torch;
    const char *size = fact_of(r, "distributedInfo.world_size"), *rank = fact_of(r, "distributedInfo.rank");
    const time_t seconds = (time_t)(r->summary->when_ns / 1000000000);
    struct tm parts;
    char when[40];
    if (!program && trace->program) program = kp_kineto_text(trace, trace->program);
    kp_plain_fmt(out, "program  %s", program ? program : "unknown");
    if (host) kp_plain_fmt(out, " on %s", host);
    if (rank && size && strtol(size, NULL, 10) > 1) kp_plain_fmt(out, ", rank %s of %s", rank, size);
    if (fact_of(r, "kprof.phase")) kp_plain_fmt(out, ", phase %s", fact_of(r, "kprof.phase"));
    if (seconds && localtime_r(&seconds, &parts) && strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &parts))
        fprintf(out, ", %s", when);
    torch = fact_of(r, "kprof.torch_version");
    if (torch) kp_plain_fmt(out, ", torch %s", torch);
}

/* " (5 calls of other functions of that name left out: logging/__init__.py(435))" */
static void left_out_print(FILE *out, const struct kp_top_report *r)
{
    const char *name = kp_kineto_text(r->top->trace, r->chosen->within_other), *end = strstr(name, "): ");
    const size_t calls = r->chosen->within_left;
    char file[400];
    snprintf(file, sizeof file, "%.*s", end ? (int)(end + 1 - name) : (int)strlen(name), name);
    kp_plain_fmt(out, " (%zu call%s of other functions of that name are left out: %s)", calls, kp_units_s(calls), file);
}

/* The figures that a server's user asks for. For a few calls they say no more than the least and the most. */
static void percentiles_print(FILE *out, const char *before, struct kp_percentiles p, const char *after)
{
    if (p.count < PERCENTILES_LEAST) return;
    fprintf(out, "%sp50 %s, p90 %s, p99 %s%s", before, kp_units_ms(p.p50_ns), kp_units_ms(p.p90_ns),
            kp_units_ms(p.p99_ns), after);
}

/* Steps are calls, and the program ended by itself: then no call was open behind the last one. */
static bool is_after_calls(const struct kp_top_report *r)
{
    const char *const complete = fact_of(r, "kprof.complete");
    return kp_kineto_steps_are_calls(r->top->trace) && complete && strcmp(complete, "1") == 0;
}

/* Calls of what is asked for that are no part of the rows, as they lie in no whole step. */
static void outside_calls_print(FILE *out, const struct kp_chosen *chosen)
{
    const size_t calls = chosen->outside_calls;
    fputs("; outside whole steps ", out);
    if (calls) fprintf(out, "%zu more call%s, ", calls, kp_units_s(calls));
    fputs(kp_units_ms((double)chosen->outside_ns), out);
    if (calls)
        fprintf(out, " (with %s %.1f %%)", calls == 1 ? "it" : "them", 100 * kp_chosen_steps_share(chosen, true));
    fputs(": --step all", out);
}

/* ", each 10th step", or "". The caller has `room` for it. */
static const char *distance_text(char *room, size_t bytes, const struct kp_chosen *chosen)
{
    long *const numbers = kp_kineto_room(chosen->step_count + 1, sizeof *numbers);
    for (size_t i = 0; i < chosen->step_count; i++) numbers[i] = chosen->steps[i].number;
    const long distance = kp_everynth_of(numbers, chosen->step_count, chosen->first_total, chosen->last_total);
    free(numbers);
    return kp_everynth_text(room, bytes, distance);
}

/* ", in 2 of 30 steps (12, 24)": those with a part of what is asked for, which may lie far apart. */
static void part_steps_print(FILE *out, const struct kp_chosen *chosen)
{
    enum { NUMBERS_MOST = 6 };
    const size_t count = chosen->step_count;
    char each[40];
    fprintf(out, ", in %zu of %zu step%s (", count, chosen->step_total, kp_units_s(chosen->step_total));
    for (size_t i = 0; i < count; i++) {
        if (count > NUMBERS_MOST && i == NUMBERS_MOST - 1) {
            fprintf(out, " ... %ld", chosen->steps[count - 1].number);
            break;
        }
        fprintf(out, "%s%ld", i ? ", " : "", chosen->steps[i].number);
    }
    fprintf(out, "%s)", distance_text(each, sizeof each, chosen));
}

/* " (5 forward passes)": of the model, in one call of what is asked for. One pass a call is that call. */
static void passes_print(FILE *out, const struct kp_chosen *chosen)
{
    const size_t calls = chosen->within_calls, passes = chosen->passes;
    if (!calls || passes <= calls) return;
    if (passes % calls == 0) fprintf(out, " (%zu forward passes)", passes / calls);
    else fprintf(out, " (%.1f forward passes)", (double)passes / (double)calls);
}

/* ", 22.6 % of all steps' time": also of the steps without a part of what is asked for. */
static void steps_share_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_chosen *const chosen = r->chosen;
    const bool has_outside = !chosen->outside_ns && r->summary->wall_ns > kp_spans_length(&chosen->in_steps, NULL);
    const double share = kp_chosen_steps_share(chosen, has_outside);
    if (!r->choice->within || chosen->is_by_stacks || share <= 0) return;
    fprintf(out, ", %.1f %% of %s time%s", 100 * share, chosen->step_total == 1 ? "the step's" : "all steps'",
            has_outside ? " and of its own outside" : "");
}

static void choice_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_choice *choice = r->choice;
    if (choice->within) {
        kp_plain_fmt(out, ", within %s", choice->within);
        const size_t calls = r->chosen->within_calls;
        if (calls)
            fprintf(out, ": %zu call%s, %s each", calls, kp_units_s(calls),
                    kp_units_ms((double)kp_chosen_call_ns(r->chosen)));
        percentiles_print(out, " (", kp_percentiles_of_calls(r->chosen), ")");
        passes_print(out, r->chosen);
        if (r->chosen->outside_ns > 0) outside_calls_print(out, r->chosen);
        else if (calls && kp_chosen_are_calls_cut(r->chosen)) fputs(", of which a part is not in these steps", out);
        if (r->chosen->within_left) left_out_print(out, r);
        if (r->chosen->is_by_stacks)
            fputs(" (only its operators; its duration was not recorded: use --with-stack 1 or record_function)", out);
    }
    if (choice->has_from) fprintf(out, ", from %.3f ms", (double)choice->from_ns / 1e6);
    if (choice->has_to) fprintf(out, ", to %.3f ms", (double)choice->to_ns / 1e6);
}

/* Start-up and what comes after the training are part of the wall time, and no part of the rows. */
static void outside_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    const int64_t between_ns = s->wall_ns - s->shared_ns - s->before_ns - s->after_ns;
    const int64_t late_ns = s->when_ns ? s->when_ns - r->top->trace->start_ns : 0;
    const bool is_late = late_ns > s->wall_ns / 10 && s->before_ns > s->wall_ns / 10;
    const char *const source = fact_of(r, "kprof.step_source");
    if (!s->is_of_steps || r->choice->within || s->before_ns + s->after_ns + between_ns <= 0) return;
    const struct kp_partsteps *parts = &r->chosen->parts;
    fprintf(out, "outside  %s before step %ld", kp_units_ms((double)s->before_ns), s->first_step);
    if (parts->has_startup && source && strcmp(source, "module") == 0)
        fputs(" (start-up and calls that are not counted)", out);
    else if (parts->has_startup) fprintf(out, " (start-up and step %ld)", parts->startup);
    else if (is_late) fprintf(out, " (start-up; before it %s without an event)", kp_units_ms((double)late_ns));
    else if (s->before_ns > s->wall_ns / 10) fputs(" (start-up)", out);
    fprintf(out, ", %s after step %ld", kp_units_ms((double)s->after_ns), s->last_step);
    if (parts->has_cut && !is_after_calls(r)) fprintf(out, " (step %ld was cut short)", parts->cut);
    if (between_ns > s->wall_ns / 100) fprintf(out, ", %s between steps", kp_units_ms((double)between_ns));
    fputs(r->top->is_of_steps ? " (not in the table; --step all shows it)\n" : "\n", out);
}

/* No step is whole. */
static void parts_print(FILE *out, const struct kp_partsteps *parts)
{
    fputs(", no whole step: ", out);
    if (parts->has_startup) fprintf(out, "step %ld contains the program's start", parts->startup);
    if (parts->has_startup && parts->has_cut) fputs(", ", out);
    if (parts->has_cut) fprintf(out, "step %ld was cut short", parts->cut);
}

/* The process died before it could close the window, or by an exception. */
static bool is_killed(const struct kp_top_report *r) { return kp_ended_badly(r->top->trace) && !r->is_spool; }

/* And that so early that it says nothing of whether steps were counted. */
static bool is_early(const struct kp_top_report *r)
{
    const struct kp_partsteps *parts = &r->chosen->parts;
    return is_killed(r) && !r->summary->steps && !r->chosen->optimizer_steps && !parts->has_startup && !parts->has_cut;
}

/* A step of a generation is a whole answer: names the function that makes a token. */
static void tokens_print(FILE *out, const struct kp_top_report *r)
{
    const char *model = fact_of(r, "kprof.model"), *source = fact_of(r, "kprof.step_source");
    if (!model || fact_of(r, "kprof.step") || !source || strcmp(source, "call") != 0) return;
    kp_plain_fmt(out, "         To count each call of the model (a token): --step call:%s\n", model);
}

/* Steps of a guess may be those of an evaluation before the training. */
static void guess_print(FILE *out, const struct kp_top_report *r)
{
    const char *source = fact_of(r, "kprof.step_source"), *until = fact_of(r, "kprof.steps_until"), *each = NULL;
    if (!source || !r->summary->steps || r->choice->within || fact_of(r, "kprof.phase")) return;
    if (strcmp(source, "module") == 0) each = "call of a model and the time since the call before";
    if (strcmp(source, "dataloader") == 0) each = "batch of a DataLoader";
    if (strcmp(source, "time") == 0 && until) each = "second";
    if (!each) return;
    fprintf(out, "         a step is a %s: ", each);
    if (until) kp_plain_fmt(out, "they ran before the first step by %s\n", until);
    else fputs("no optimizer had stepped\n", out);
}

/* "12 calls of a model": they are counted where nothing else is, though they were too few to be steps. */
static bool calls_print(FILE *out, const struct kp_top_report *r)
{
    for (size_t i = 0; i < r->top->count; i++) {
        const struct kp_top_row *const row = &r->top->rows[i];
        if (!row->name || strcmp(kp_kineto_text(r->top->trace, row->name), KP_MODEL_RANGE) != 0) continue;
        const char *const model = fact_of(r, "kprof.model");
        kp_plain_fmt(
            out, "         %zu call%s of a model: kprof report --within '" KP_MODEL_RANGE "'; as steps: --step %s%s\n",
            (size_t)row->cost.count, kp_units_s(row->cost.count), model ? "call:" : "",
            model ? model : "'call:*:CLASS.forward'");
        return true;
    }
    return false;
}

/* The thing that would have counted steps. */
static void hint_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_partsteps *parts = &r->chosen->parts;
    if (is_early(r)) return;
    if (!r->choice->within && r->top->trace->is_ours) tokens_print(out, r);
    if (r->summary->steps || r->chosen->optimizer_steps || r->choice->within || !r->top->trace->is_ours) return;
    if (is_worker(r)) return;
    const char *const missed = kp_kineto_missed_call(r->top->trace);
    if (missed) {
        kp_plain_fmt(out, "         %s\n", missed);
    } else if (calls_print(out, r)) {
        return;
    } else if ((parts->has_startup || parts->has_cut) && fact_of(r, "kprof.step_source")) {
        fputs("         To record whole steps: kprof run --schedule warmup=1,active=3\n", out);
    } else {
        const char *model = fact_of(r, "kprof.model");
        kp_plain_fmt(out,
                     "         To count calls of a model or of generate() as steps: kprof run --schedule active=1000\n "
                     "        For each token add --step %s%s%s; for your own function --step call:MODULE:FUNCTION\n",
                     model ? "call:" : "", model ? model : "'call:*:CLASS.forward'",
                     model ? "" : " with your model's class");
    }
}

/* "; mean 5 ms, as in the rows": where it is far from the median. */
static void mean_print(FILE *out, int64_t mean_ns, int64_t median_ns)
{
    if (llabs(mean_ns - median_ns) > median_ns / 10) fprintf(out, "mean %s; ", kp_units_ms((double)mean_ns));
}

/* Nothing else says how much of the run the other phases of a schedule take. */
static void phases_print(FILE *out, const struct kp_top_report *r)
{
    struct kp_phasetimes times;
    const char *const phase = fact_of(r, "kprof.phase");
    char others[2048], own[64], remarks[256];
    if (r->choice->within || !kp_phasetimes_of(&times, r->top->trace)) return;
    const struct kp_phasetime *const of = phase ? kp_phasetimes_find(&times, phase) : NULL;
    const size_t count = kp_phasetimes_text(others, sizeof others, &times, phase);
    snprintf(own, sizeof own, "%s%.1f %%", count ? ", this one " : "this phase took ",
             of ? 100 * (double)of->ns / (double)times.all_ns : 0);
    if (!count && !of) return;
    kp_plain_fmt(out, "phases   %s%s%s%s%s\n", others, of ? own : "", count ? "" : " of the time ",
                 count ? "" : kp_phasetimes_until(&times), kp_phasetimes_remarks(remarks, sizeof remarks, &times));
}

/* How long the phase lasts from its begin to its end. */
static void runs_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_kineto_runs *runs = r->runs;
    if (!runs || !runs->count) return;
    fprintf(out, "a run    %s", kp_units_ms((double)runs->median_ns));
    if (runs->count > 1) {
        fprintf(out, " (median of %zu; ", runs->count);
        mean_print(out, runs->mean_ns, runs->median_ns);
        fprintf(out, "%s to %s)", kp_units_ms((double)runs->least_ns), kp_units_ms((double)runs->most_ns));
    }
    fprintf(out, ", from the start of the phase to its end%s\n",
            runs->has_parts ? ", without the phases inside it" : "");
}

/* The time that the slowest hundredth has more: a mean or a median says nothing of it. */
static void slowest_print(FILE *out, const struct kp_top_report *r)
{
    char text[KP_SLOWEST_BYTES];
    if (!r->slowest || !r->slowest->count) return;
    kp_plain_fmt(out, "slowest  %s\n",
                 kp_slowest_text(text, sizeof text, r->slowest, r->top->trace, r->choice->within ? "call" : "step"));
}

/* How long a step lasts, or what of it was asked for. */
static void lengths_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    const char *of = "step     ";
    if (r->choice->within) of = r->top->calls == s->steps ? "call     " : "per step ";
    fprintf(out, "%s%s (median; ", of, kp_units_ms((double)s->step_median_ns));
    mean_print(out, s->step_mean_ns, s->step_median_ns);
    fprintf(out, "%s to %s)", kp_units_ms((double)s->step_least_ns), kp_units_ms((double)s->step_most_ns));
    if (s->step_most_ns / 3 > s->step_median_ns / 2) {
        fprintf(out, ". Slowest: step %ld", s->slowest_step);
        if (!r->choice->within && s->slowest_no_core_ns > s->step_most_ns / KP_NOCORE_TOLD_PART)
            fprintf(out, ", which waited %s for a CPU core", kp_units_ms((double)s->slowest_no_core_ns));
    }
    fputs("\n", out);
    if (r->gpu_step_ns > 0)
        fprintf(out, "         The host runs ahead of the GPU, where a step takes %s (mean)\n",
                kp_units_ms(r->gpu_step_ns));
    if (kp_kineto_steps_are_calls(r->top->trace) && !r->choice->within)
        percentiles_print(out, "         ", kp_percentiles_of_steps(r->chosen), "\n");
}

/* A schedule leaves out most of what a training evaluates between its steps. */
static void bare_long_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_kineto *const trace = r->top->trace;
    const long steps = kp_kineto_number(trace, "kprof.bare_long_steps"),
               all = kp_kineto_number(trace, "kprof.bare_all_steps");
    const double us = (double)kp_kineto_number(trace, "kprof.bare_long_us"),
                 all_us = (double)kp_kineto_number(trace, "kprof.bare_all_us");
    if (steps <= 0 || !(us >= BARE_LONG_TOLD * all_us) || r->choice->within) return;
    fprintf(out,
            "         Before the recording, %ld of %ld steps lasted over 3 times the median (%.1f %% of that time), "
            "perhaps evaluations or checkpoints. To record all: kprof run without --schedule\n",
            steps, all, 100 * us / all_us);
}

/* Steps that are longer by what they are for are not slow. */
static void kinds_print(FILE *out, const struct kp_top_report *r)
{
    const char *const told[] = {r->evaluated, r->prompts};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (told[i]) kp_plain_fmt(out, "         %s\n", told[i]);
}

/* Recording lengthens what the host does, which a reader would take for the program's. Steps may also differ. */
static void bare_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    const double times = s->bare_ns > 0 ? (double)s->step_median_ns / (double)s->bare_ns : 0;
    if (times < KP_BARE_MUCH || r->choice->within) return;
    fprintf(
        out,
        "         Before the recording a step took %s (median of %ld steps), now %.2f times as long: by recording, by "
        "other programs, or by its own work\n",
        kp_units_ms((double)s->bare_ns), s->bare_steps, times);
}

/* A function that is known from stacks alone has only its ops, so their time is no wall time. */
static void wall_print(FILE *out, const struct kp_top_report *r)
{
    const char *const of = !r->choice->within ? ": wall time " : r->chosen->is_by_stacks ? "ops      " : "wall     ";
    fprintf(out, "%s%s", of, kp_units_ms((double)r->summary->wall_ns));
}

/* A single step that was asked for, or is alone. */
static void no_core_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    if (r->choice->within || s->no_core_ns <= s->step_most_ns / KP_NOCORE_TOLD_PART) return;
    fprintf(out, "         step %ld lasted %s and waited %s of that for a CPU core\n", s->first_step,
            kp_units_ms((double)s->step_most_ns), kp_units_ms((double)s->no_core_ns));
}

/* How long, and how many steps: the end of the first line, or a line of what was asked for. */
static void wall_line_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    const struct kp_partsteps *parts = &r->chosen->parts;
    wall_print(out, r);
    const bool is_part = r->choice->within && s->steps < r->chosen->step_total;
    if (is_part && s->steps) part_steps_print(out, r->chosen);
    else if (!r->choice->within && r->chosen->ended_by && s->steps + 1 == r->chosen->optimizer_steps)
        fprintf(out, ", %zu steps%s (step 0 is left out: its start was not seen)", r->chosen->optimizer_steps,
                kp_stepends_by(r->chosen->ended_by));
    else if (s->steps == 1) fprintf(out, ", step %ld", s->first_step);
    else if (s->steps) fprintf(out, ", %zu steps (%ld to %ld)", s->steps, s->first_step, s->last_step);
    else if (r->choice->within) fputs(is_part ? ", in no whole step" : "", out);
    else if (r->chosen->optimizer_steps) fputs(", 1 step, which is left out: its start was not seen", out);
    else if (parts->has_startup || parts->has_cut) parts_print(out, parts);
    else if (!is_worker(r)) fputs(is_early(r) ? ", no step yet" : ", no steps marked", out);
    steps_share_print(out, r);
    choice_print(out, r);
    fputs("\n", out);
}

static void steps_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    hint_print(out, r);
    if (s->steps == 1 && r->chosen->ended_by && r->choice->first_step >= 0)
        fprintf(out, "         step %ld: from the end of %s %ld to the end of %ld, counted from 0\n", s->first_step,
                kp_stepends_what(r->chosen->ended_by), s->first_step - 1, s->first_step);
    guess_print(out, r);
    if (s->steps == 1) no_core_print(out, r);
    runs_print(out, r);
    phases_print(out, r);
    if (s->steps > 1) lengths_print(out, r), bare_print(out, r), bare_long_print(out, r);
    slowest_print(out, r);
    kinds_print(out, r);
    if (s->is_first_slow)
        fprintf(out,
                "         step %ld took %s, the others %s: it may include warm-up or an evaluation (--step %ld-%ld "
                "leaves it out)\n",
                s->first_step, kp_units_ms((double)s->first_ns), kp_units_ms((double)s->rest_median_ns),
                s->first_step + 1, s->last_step);
}

static void processes_print(FILE *out, const struct kp_top_report *r)
{
    if (r->top->trace->processes > 1)
        fprintf(out, "         This file has %zu processes; the table counts all of them\n", r->top->trace->processes);
}

/* Silence would look like a program that does nothing on its GPU. */
static void no_gpu_print(FILE *out, const struct kp_top_report *r)
{
    const char *source = fact_of(r, "kprof.gpu_source"), *ended = kp_kineto_gpu_ended(r->top->trace);
    if (r->summary->has_gpu_outside) {
        fputs("GPU      work was recorded, but not in these steps (--step all shows it)\n", out);
        return;
    }
    if (!source && kp_unanswered_most(&r->summary->unanswered)) {
        char lost[160];
        kp_unanswered_text(lost, sizeof lost, &r->summary->unanswered);
        fprintf(out, "GPU      its work is not known: %s\n", lost);
    }
    if (!source || (strcmp(source, "cupti") != 0 && strcmp(source, "interception") != 0)) return;
    fputs("GPU      no GPU work was recorded here", out);
    if (ended) kp_plain_fmt(out, ": %s", ended);
    fputs("\n", out);
}

#define WAIT_IDLE_TOLD 0.1 /* of the time: the host waits for a GPU on which nothing runs */

/* Why a host waits for a GPU that is idle, as far as the waits tell. */
static void wait_idle_print(FILE *out, const struct kp_summary *s, double percent)
{
    const bool is_most = 2 * s->gpu_wait_idle_ns > s->gpu_wait_ns;
    if (!is_most || (double)s->gpu_wait_idle_ns < WAIT_IDLE_TOLD * (double)s->shared_ns) return;
    fprintf(out, ", for %.1f %% with no recorded work on it (%s)", (double)s->gpu_wait_idle_ns * percent,
            2 * s->gpu_wait_alone_ns > s->gpu_wait_idle_ns
                ? "work of another process, or that is not in this trace"
                : "delays of launches and copies, which take longer than their work");
}

static void gpu_print(FILE *out, const struct kp_top_report *r, double percent)
{
    const struct kp_summary *s = r->summary;
    char lost[160];
    if (kp_unanswered_most(&s->unanswered)) {
        kp_unanswered_text(lost, sizeof lost, &s->unanswered);
        fprintf(out, "GPU      busy time is unknown: %s (%.1f %% of the rest); the host waits for it %.1f %%\n", lost,
                (double)s->gpu_ns * percent, (double)s->gpu_wait_ns * percent);
        return;
    }
    fprintf(out, "GPU      busy %.1f %%", (double)s->gpu_ns * percent);
    if (s->steps)
        fprintf(out, " (%s of work per %s)", kp_units_ms((double)s->gpu_step_ns),
                r->choice->within && r->top->calls == s->steps ? "call" : "step");
    fprintf(out, ", idle %.1f %%; the host waits for it %.1f %%", (double)(s->shared_ns - s->gpu_ns) * percent,
            (double)s->gpu_wait_ns * percent);
    wait_idle_print(out, s, percent);
    if (r->bound_by) fprintf(out, "; limited by %s", r->bound_by);
    fputs("\n", out);
}

static void overlaps_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_kineto *const t = r->top->trace;
    if (t->overlaps)
        fprintf(out,
                "         %zu GPU kernel%s or copies overlap the next one of %s stream, by up to %s. Each counts up to "
                "the start of the next\n",
                t->overlaps, kp_units_s(t->overlaps), t->overlaps == 1 ? "its" : "their",
                kp_units_ms((double)t->overlap_ns));
    if (kp_kineto_unread(t))
        fprintf(out, "         Kernels of %s are in the trace, and are not shown\n", kp_kineto_unread(t));
}

/* Behind the last step of each run, and in one that did not end, a phase goes on. */
static void no_step_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    if (!s->steps || r->choice->within || s->outside_ns < s->wall_ns / 1000) return;
    fprintf(out, "outside  %s outside of the steps (%.1f %%) is in the table as well (--step %ld-%ld leaves it out)\n",
            kp_units_ms((double)s->outside_ns), 100 * (double)s->outside_ns / (double)s->wall_ns, s->first_step,
            s->last_step);
}

static void shares_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    const double percent = s->shared_ns ? 100.0 / (double)s->shared_ns : 0;
    const bool has_no_op = !s->has_ops && s->op_ns, has_calls = (double)s->call_ns * percent >= 1;
    if (r->chosen->is_by_stacks) return;
    if (!r->parts || s->comm_ns) {
        fprintf(out, "time     %s%.1f %% in %s", s->is_of_steps ? "of the steps " : "", (double)s->op_ns * percent,
                has_no_op   ? "calls of the GPU's runtime (no operator was recorded)"
                : has_calls ? "operators and calls of the GPU's runtime"
                            : "operators");
        if (s->data_ns || !is_worker(r)) fprintf(out, ", %.1f %% data loading", (double)s->data_ns * percent);
        if (s->comm_ns) fprintf(out, ", %.1f %% communication between ranks", (double)s->comm_ns * percent);
        fprintf(out, ", %.1f %% %s\n", (double)s->rest_ns * percent, has_no_op ? "outside them" : "no operator runs");
    }
    if (s->has_gpu) gpu_print(out, r, percent);
    else no_gpu_print(out, r);
}

/* The uses of a step's time in training. The host hands work to a GPU, and does not wait for it. */
static void parts_of_step_print(FILE *out, const struct kp_top_report *r)
{
    char text[240], bar[KP_STEPPARTS_BAR + 1];
    if (!r->parts) return;
    const bool has_gpu = kp_stepparts_has_gpu(r->parts);
    fprintf(out, "parts    [%s] %s%s\n", kp_stepparts_bar(bar, r->parts), has_gpu ? "host: " : "",
            kp_stepparts_text(text, sizeof text, r->parts, false));
    if (has_gpu) fprintf(out, "         GPU: %s\n", kp_stepparts_text(text, sizeof text, r->parts, true));
}

/* A loop over .item(): each leaves and enters Python, and on a GPU each waits. */
static void reads_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    const bool has_lines = r->top->has_lines || r->top->trace->has_stacks;
    const double each = s->steps ? (double)s->reads / (double)s->steps : 0;
    if (each < KP_VALUEREADS_LEAST || (r->choice->within && kp_valueread_is_meant(r->choice->within))) return;
    fprintf(out, "reads    %.0f single values per step are read (.item() and the like): %s\n", each,
            has_lines ? "`kprof advise` has their lines" : "--with-stack ops records their lines");
}

static void machine_print(FILE *out, const struct kp_summary *s)
{
    if (s->cores <= 0) return;
    fprintf(out, "machine  %ld core%s", s->cores, kp_units_s(s->cores));
    if (s->omp_threads > s->cores) fprintf(out, ", OMP_NUM_THREADS=%ld", s->omp_threads);
    if (s->busy_threads > 0)
        fprintf(out, s->omp_threads > s->cores ? " (%ld busy thread%s)" : ", %ld busy thread%s", s->busy_threads,
                kp_units_s(s->busy_threads));
    if (s->threads_wanted)
        fprintf(out, ": the threads compete for the cores; try %s%ld%s%s",
                s->threads_are_set ? "torch.set_num_threads(" : "OMP_NUM_THREADS=", s->threads_wanted,
                s->threads_are_set ? ")" : "", s->threads_wanted > 1 ? ", or 1 (`kprof advise`)" : "");
    fputs("\n", out);
    if (s->is_crowded && !s->steps && s->core_waited_ns > s->wall_ns) return; /* a file that ends early: of the run */
    if (!s->is_crowded) return;
    fprintf(out, "         The %s thread " KP_CORE_WAITED_TEXT "%s%s\n", s->steps ? "main" : "first",
            KP_CORE_WAITED_ARGS(s->core_waited), s->is_core_of_all ? ", in the whole recording" : "",
            !s->steps           ? ""
            : s->own_threads_ns ? ". Other threads of this program ran meanwhile (`kprof advise`)"
            : s->waits_for_slowest
                ? ". Each operator waits for its slowest thread: try OMP_NUM_THREADS=1 (`kprof advise`)"
                : "");
}

/* If they cost as much as a finding of kprof advise. */
static void faults_print(FILE *out, const struct kp_top_report *r)
{
    struct kp_pagefaults f;
    const double step_ns = (double)r->summary->step_mean_ns;
    const bool is_part = r->choice->within != NULL; /* of the steps, which have the faults */
    if (is_part || !kp_pagefaults_of(r->top->trace, &f) || !r->summary->steps) return;
    if (f.minor_ns + f.major_ns < KP_PAGEFAULTS_MUCH * step_ns) return;
    fprintf(out, "faults   %.0f page faults per step, about %.3g ms", (f.bare > f.minor ? f.bare : f.minor) + f.major,
            (f.minor_ns + f.major_ns) / 1e6);
    if (f.bare > f.minor) fprintf(out, " (%.0f while recording)", f.minor);
    if (f.major >= 1) fprintf(out, "; %.0f of them read from a disk", f.major);
    const bool is_found = !r->summary->has_gpu && kp_pagefaults_are_found(&f, step_ns);
    fputs(is_found ? ": `kprof advise`\n" : "\n", out);
}

static void lost_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_kineto *trace = r->top->trace;
    const char *between = ": ";
    if (!r->summary->lost) return;
    fprintf(out, "dropped  %s%" PRIu64 " events", r->summary->is_lost_least ? "at least " : "", r->summary->lost);
    for (size_t i = 0; i < trace->fact_count; i++) {
        const char *path = kp_kineto_text(trace, trace->facts[i].path);
        if (strncmp(path, "kprof.drops.", 12) != 0) continue;
        kp_plain_fmt(out, "%s%s of %s", between, kp_kineto_text(trace, trace->facts[i].text), path + 12);
        between = ", ";
    }
    fputs("\n", out);
}

const char *kp_top_ended(const struct kp_top_report *r)
{
    return is_killed(r) && !is_worker(r) && r->ended && *r->ended ? r->ended : NULL;
}

static void killed_print(FILE *out, const struct kp_top_report *r)
{
    if (!is_killed(r)) return;
    if (is_worker(r)) { /* most end by _exit, and none closes its window */
        kp_plain_fmt(out, "worker   of process %s, recorded until it ended or was killed after %.1f s\n",
                     fact_of(r, "kprof.parent_pid"), (double)r->summary->wall_ns / 1e9);
        return;
    }
    const char *const ended = kp_top_ended(r);
    char recorded[KP_ENDED_RECORDED_BYTES], way[KP_ENDED_WAY_BYTES];
    fprintf(out, "%-9s", kp_ended_word(r->top->trace));
    if (ended) kp_plain_put(out, ended);
    else {
        kp_plain_put(out, kp_ended_way(way, sizeof way, r->top->trace));
        if (r->summary->steps) fprintf(out, " after step %ld", r->summary->last_step);
        else if (is_early(r)) fprintf(out, " after %.1f s, before its first step", (double)r->summary->wall_ns / 1e9);
        fputs(kp_ended_remark(r->top->trace), out);
    }
    fprintf(out, ". This is %s.\n", kp_ended_recorded(recorded, sizeof recorded, r->top->trace));
}

/* For a program that went on, or ended by itself. */
static void last_part_print(FILE *out, const struct kp_top_report *r)
{
    const bool is_kept = kp_ended_is_kept(r->top->trace), is_part = kp_ended_is_last_part(r->top->trace);
    const double s = (double)kp_kineto_number(r->top->trace, "kprof.last_us") / 1e6;
    if (is_killed(r) || is_worker(r) || (!is_kept && !is_part)) return;
    if (is_part) fprintf(out, "ring     the last %.1f s of the program", s);
    else fputs("ring     all that was recorded until then", out);
    fputs(is_kept ? ", kept when it was asked for; the program went on\n" : "\n", out);
}

void kp_top_head_print(FILE *out, const struct kp_top_report *r)
{
    program_print(out, r);
    if (r->choice->within) fputs("\n", out);
    else wall_line_print(out, r);
    processes_print(out, r);
    killed_print(out, r);
    last_part_print(out, r);
    if (r->choice->within) wall_line_print(out, r);
    steps_print(out, r);
    parts_of_step_print(out, r);
    shares_print(out, r);
    no_step_print(out, r);
    outside_print(out, r);
    overlaps_print(out, r);
    reads_print(out, r);
    machine_print(out, r->summary);
    faults_print(out, r);
    lost_print(out, r);
    fputs("\n", out);
}

void kp_top_more_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_kineto *trace = r->top->trace;
    const struct {
        bool is_missing;
        const char *flag, *gives;
    } rows[] = {
        {!r->top->has_lines && !trace->has_stacks, "--with-stack ops", "your lines"},
        {!r->top->has_calls && fact_of(r, "kprof.torch_version"), "--with-stack 1", "parts of the model"},
        {!trace->record_shapes, "--record-shapes", "shapes"},
        {!trace->profile_memory, "--profile-memory", "memory"},
    };
    const char *between = "\nnot recorded: ";
    if (!trace->is_ours) return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].is_missing) continue;
        fprintf(out, "%s%s (%s)", between, rows[i].gives, rows[i].flag);
        between = ", ";
    }
    if (between[0] == ',') fputs("\n", out);
}

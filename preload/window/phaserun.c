// SPDX-License-Identifier: Apache-2.0
/*
 * phaserun.c - tells the spool of which phase a window is, and of which run of it
 *
 * Called by: window.c, at a change of phase and at both ends of a window
 * Owns:      how often each phase has begun, and what was recorded of each
 * Locks:     none of its own: window_lock is held
 * On fail:   the trace does not name its phase, or reports do not count the run; a log line says so
 * Safe in:   signal handlers no; after fork yes: kp_phaserun_forget
 */
#include "preload/window/phaserun.h"

#include <string.h>

#include <time.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_log.h"
#include "collector/base/text/kp_units.h"
#include "collector/record/kp_record.h"
#include "schedule/kp_schedule.h"
#include "preload/window/baresteps.h"
#include "collector/base/kp_poison.h"

enum { TRACES_MANY = 50, PHASES_TOLD = 4 };
static struct {
    uint32_t run, part, traces;
    uint64_t steps; /* recorded */
    uint64_t ns;    /* of all runs, recorded or not, without other phases inside of them and the part in progress */
} visits[KP_PHASE_IDS];
static uint64_t begin_ns, enter_ns;      /* of the first phase; of the part in progress. CLOCK_MONOTONIC */
static uint64_t before_steps, before_ns; /* of the first phase: steps, without the first, and their time */
static uint32_t current;
static _Atomic bool has_begun[KP_PHASE_IDS]; /* kept in a forked child: its parent's phases are no news */
static bool is_gapless;                      /* all of the part was recorded until now */

/* Counts the part in progress up to now. */
static uint64_t time_take(void)
{
    const uint64_t now = kp_clock_ns(CLOCK_MONOTONIC);
    if (!begin_ns) begin_ns = enter_ns = now;
    if (now > enter_ns) visits[current].ns += now - enter_ns;
    enter_ns = now;
    return now - begin_ns;
}

void kp_phaserun_enter(uint32_t phase, bool is_new)
{
    if (!begin_ns) before_steps = kp_baresteps_all(&before_ns);
    (void)time_take();
    current = phase;
    kp_store_relaxed(&has_begun[phase], true);
    visits[phase].run += is_new;
    visits[phase].part = is_new ? 1 : visits[phase].part + 1;
}

void kp_phaserun_recorded(bool is_recorded) { is_gapless = is_recorded; }

void kp_phaserun_gap(void) { is_gapless = false; }

void kp_phaserun_note_phase(uint32_t window, uint32_t phase)
{
    char key[32];
    if (!*kp_phases_name(phase)) return;
    kp_fmt(key, sizeof key, "phase.%u", window);
    if (kp_record_note(key, kp_phases_name(phase)) != 0)
        KP_LOG_ONCE(1, "the name of a phase could not be written to the spool: its trace does not name it");
}

/* Said while the user still looks on: a range around each step makes a file of each. */
static void say_many(uint32_t phase)
{
    const char *const pattern = kp_phases_pattern(phase);
    KP_LOG_ONCE(
        0,
        "phase %s has begun %u times, and each time makes a trace of its own, %u so far; for fewer put the range "
        "around the whole loop, or let its schedule end, such as %s%s%s=active=10,repeat=1",
        kp_phases_name(phase), visits[phase].run, visits[phase].traces, kp_phases_name(phase), *pattern ? "~" : "",
        pattern);
}

static size_t time_put(char *out, size_t bytes, const char *name, uint32_t phase)
{
    if (!visits[phase].run || !*name) return 0;
    return kp_fmt(out, bytes, ";%s:%u:%lu", name, visits[phase].run, (unsigned long)(visits[phase].ns / 1000));
}

/* Loops and phases without a row are one. */
static void times_note(uint32_t window)
{
    char key[32], value[1024], rowless[96];
    if (!kp_phases_are_set()) return;
    kp_fmt(key, sizeof key, "phase_times.%u", window);
    size_t n = kp_fmt(value, sizeof value, "%lu", (unsigned long)(time_take() / 1000));
    for (uint32_t i = 1; *kp_phases_name(i) && n < sizeof value; i++)
        n += time_put(value + n, sizeof value - n, kp_phases_name(i), i);
    const bool has_names = kp_phases_rowless(rowless, sizeof rowless) > 0;
    if (n < sizeof value)
        n += time_put(value + n, sizeof value - n, has_names ? rowless : "other phases", KP_PHASE_OTHER);
    if (n < sizeof value) (void)kp_record_note(key, value); /* on failure the report knows no shares */
    if (!before_steps) return;
    kp_fmt(key, sizeof key, "phase_before.%u", window);
    kp_fmt(value, sizeof value, "%lu,%lu", (unsigned long)before_steps, (unsigned long)(before_ns / 1000));
    (void)kp_record_note(key, value);
}

void kp_phaserun_note(uint32_t window, uint32_t phase, enum kp_phaserun_leaving leaving, uint64_t steps)
{
    char key[32], value[64];
    times_note(window);
    if (!*kp_phases_name(phase)) return;
    visits[phase].steps += steps;
    if (++visits[phase].traces == TRACES_MANY) say_many(phase);
    kp_fmt(key, sizeof key, "phase_run.%u", window);
    const bool is_open = leaving == KP_RUN_IS_OPEN;
    kp_fmt(value, sizeof value, "%u,%u,%d,%d%s", visits[phase].run, visits[phase].part, is_gapless,
           is_open ? KP_RUN_GOES_ON : (int)leaving, is_open ? ",1" : "");
    if (kp_record_note(key, value) != 0)
        KP_LOG_ONCE(1, "the run of a phase could not be written to the spool: reports do not count it");
}

void kp_phaserun_steps(char *out, size_t bytes, uint64_t all)
{
    uint64_t named = 0;
    size_t n = 0, told = 0;
    for (uint32_t i = 1; *kp_phases_name(i) && n < bytes; i++) {
        if (!visits[i].traces) continue;
        n += kp_fmt(out + n, bytes - n, "%s%lu%s in %s", told ? ", " : "", (unsigned long)visits[i].steps,
                    told                   ? ""
                    : visits[i].steps == 1 ? " step"
                                           : " steps",
                    kp_phases_name(i));
        named += visits[i].steps;
        told++;
    }
    if (!told || told > PHASES_TOLD || named > all || n >= bytes)
        kp_fmt(out, bytes, "%lu step%s in phases", (unsigned long)all, kp_units_s(all));
    else if (named < all) kp_fmt(out + n, bytes - n, ", %lu in no phase", (unsigned long)(all - named));
}

/* The names of phases, and the first of them that has no regular expression. */
static const char *names_put(char *out, size_t bytes)
{
    const char *plain = NULL;
    size_t n = 0;
    for (uint32_t i = 1; *kp_phases_name(i) && n < bytes; i++) {
        n += kp_fmt(out + n, bytes - n, "%s%s", n ? ", " : "", kp_phases_name(i));
        if (!plain && !*kp_phases_pattern(i)) plain = kp_phases_name(i);
    }
    return plain;
}

/* Said while the user still looks on. */
void kp_phaserun_say_missed(int steps)
{
    char names[640];
    const char *const plain = names_put(names, sizeof names);
    if (plain)
        KP_LOG_ONCE(0,
                    "%d steps have ended, and no phase of KPROF_PHASES has begun (%s): nothing is recorded so far; a "
                    "plain name is a phase of kprof_phase(), or a loop of Lightning or transformers; a range (with "
                    "torch.profiler.record_function(\"%s\"): ...) needs NAME~REGEX, such as %s~^%s$=active=2; a "
                    "function is none",
                    steps, names, plain, plain, plain);
    else
        KP_LOG_ONCE(0,
                    "%d steps have ended, and no phase of KPROF_PHASES has begun (%s): nothing is recorded so far; a "
                    "phase NAME~REGEX is a range (with torch.profiler.record_function(\"train\"): ...) whose name "
                    "REGEX matches, not a function",
                    steps, names);
}

static bool is_missed(uint32_t phase)
{
    return !kp_load_relaxed(&has_begun[phase]) && kp_phases_schedule(phase, NULL)->active;
}

/* A misspelt one records nothing, while the others do. */
void kp_phaserun_say_never_begun(void)
{
    char missed[640] = "", rowless[96], range[160] = "";
    size_t n = 0, count = 0;
    for (uint32_t i = 1; *kp_phases_name(i) && n < sizeof missed; i++) {
        const char *const name = kp_phases_name(i), *const pattern = kp_phases_pattern(i);
        if (!is_missed(i)) continue;
        n += kp_fmt(missed + n, sizeof missed - n, "%s%s%s%s", n ? ", " : "", name,
                    *pattern ? ": no range matched " : "", pattern);
        if (!*pattern && !*range)
            kp_fmt(range, sizeof range, "; a range of record_function needs NAME~REGEX: %s~^%s$=active=2", name, name);
        count++;
    }
    if (!n) return;
    const bool has_rowless = kp_phases_rowless(rowless, sizeof rowless) > 0;
    kp_log(0, "%s of KPROF_PHASES never began, so nothing is recorded of %s (%s)%s%s%s",
           count == 1 ? "a phase" : "some phases", count == 1 ? "it" : "them", missed,
           has_rowless ? "; these of the program have no row there: " : "", has_rowless ? rowless : "", range);
}

void kp_phaserun_forget(void)
{
    memset(visits, 0, sizeof visits);
    begin_ns = enter_ns = before_steps = before_ns = 0;
    current = KP_PHASE_NONE;
    is_gapless = false;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * phaserun.c - tells the spool of which phase a window is, and of which run of it
 *
 * Called by: window.c, at a change of phase and at both ends of a window
 * Owns:      how often each phase has begun
 * Locks:     none of its own: window_lock is held
 * On fail:   the trace does not name its phase, or reports do not count the run; a log line says so
 * Safe in:   signal handlers no; after fork yes: kp_phaserun_forget
 */
#include "preload/run/phaserun.h"

#include <string.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

static struct {
    uint32_t run, part;
} visits[KP_PHASE_IDS];
static _Atomic bool has_begun[KP_PHASE_IDS]; /* kept in a forked child: its parent's phases are no news */
static bool is_gapless;                      /* all of the part was recorded until now */

void kp_phaserun_enter(uint32_t phase, bool is_new)
{
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

void kp_phaserun_note(uint32_t window, uint32_t phase, enum kp_phaserun_leaving leaving)
{
    char key[32], value[64];
    if (!*kp_phases_name(phase)) return;
    kp_fmt(key, sizeof key, "phase_run.%u", window);
    kp_fmt(value, sizeof value, "%u,%u,%d,%d", visits[phase].run, visits[phase].part, is_gapless, (int)leaving);
    if (kp_record_note(key, value) != 0)
        KP_LOG_ONCE(1, "the run of a phase could not be written to the spool: reports do not count it");
}

/* Said while the user still looks on. */
void kp_phaserun_say_missed(int steps)
{
    KP_LOG_ONCE(0,
                "%d steps have ended, and no phase of KPROF_PHASES has begun: nothing is recorded so far; a phase is a "
                "range (with torch.profiler.record_function(\"train\"): ...), kprof_phase(), or a loop of Lightning or "
                "transformers, not a function of that name",
                steps);
}

/* A misspelt one records nothing, while the others do. */
void kp_phaserun_say_never_begun(void)
{
    char missed[640] = "", rowless[96];
    size_t n = 0;
    for (uint32_t i = 1; *kp_phases_name(i) && n < sizeof missed; i++) {
        if (kp_load_relaxed(&has_begun[i]) || !kp_phases_schedule(i, NULL)->active) continue;
        n += kp_fmt(missed + n, sizeof missed - n, "%s%s%s%s", n ? ", " : "", kp_phases_name(i),
                    *kp_phases_pattern(i) ? ": no range matched " : "", kp_phases_pattern(i));
    }
    if (!n) return;
    const bool has_rowless = kp_phases_rowless(rowless, sizeof rowless) > 0;
    kp_log(0, "a phase of KPROF_PHASES never began, so nothing is recorded of it (%s)%s%s", missed,
           has_rowless ? "; these of the program have no row there: " : "", has_rowless ? rowless : "");
}

void kp_phaserun_forget(void)
{
    memset(visits, 0, sizeof visits);
    is_gapless = false;
}

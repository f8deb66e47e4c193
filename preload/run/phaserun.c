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

#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

static struct {
    uint32_t run, part;
} visits[KP_PHASE_IDS];
static bool is_gapless; /* all of the part was recorded until now */

void kp_phaserun_enter(uint32_t phase, bool is_new)
{
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

void kp_phaserun_forget(void)
{
    memset(visits, 0, sizeof visits);
    is_gapless = false;
}

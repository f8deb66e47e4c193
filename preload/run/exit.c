// SPDX-License-Identifier: Apache-2.0
/*
 * exit.c - ends the run: when the process exits, or earlier on demand
 *
 * Called by: exit (first our handler, then the destructor), on any host thread; confine.c (early)
 * On fail:   the closing line says what was not written
 * Safe in:   signal handlers, since the host may call exit there: a wait has a bound, but for
 *            that for a trace which is being written
 */
#include "preload/run/exit.h"

#include <errno.h>
#include <stdbool.h>

#include "collector/base/kp_gate.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "preload/control/ctl.h"
#include "preload/run/crashline.h"
#include "preload/run/stepnote.h"
#include "preload/finish/finish.h"
#include "preload/window/window.h"
#include "collector/base/kp_poison.h"

/* Registers the exit handler. A forked child has its parent's, so it registers none. It may begin inside libc
 * with the handlers' list locked, and registering allocates. */
void kp_exit_watch(void)
{
    static bool is_watched;
    if (!is_watched) (void)kp_run_turn_watch();
    is_watched = true;
}

/* A status says what an exception does not: sys.exit() with a text, a handler of SIGTERM, exit() of C. */
static void status_note(void)
{
    char text[512];
    if (!kp_run_exit_status()) return;
    kp_fmt(text, sizeof text, "%d%s", kp_run_exit_status(), kp_lastexception_leave(kp_run_exit_status()));
    if (kp_record_is_open()) (void)kp_record_note_try("exit_status", text);
}

__attribute__((destructor)) static void kprof_end(void)
{
    if (!kp_run_is_active()) return;
    int saved = errno;
    /* exit() may run in a signal handler: the code it interrupted never goes on. If that is a step that holds its lock,
     * the user runs kprof recover. */
    kp_ctl_end();
    kp_crashline_end();
    status_note();
    bool is_ended = kp_window_end_run();
    kp_stepnote_end();
    if (kp_thread_self) kp_store_release(&kp_thread_self->inside, 0); /* pairs with: quiesce.c:is_quiet */
    if (is_ended) kp_finish_exit();
    else kp_log(0, "exit() was called during a step: no trace was written; run: kprof recover %s", kp_record_path());
    kp_gate_set(0);
    kp_run_set_active(false);
    errno = saved;
}

void kp_exit_early(void)
{
    kp_run_turn_close();
    kprof_end();
}

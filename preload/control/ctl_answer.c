// SPDX-License-Identifier: Apache-2.0
/*
 * ctl_answer.c - does what a request of `kprof ctl` asks for, by the functions of kprof.h, and writes the answer
 *
 * Called by: the thread kprof-control
 * Owns:      nothing
 * Locks:     the run's turn while it acts, so that exit() waits for it
 * On fail:   the answer says why: {"error":"..."}
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "preload/control/ctl.h"
#include "preload/blackbox/where.h"
#include "preload/finish/finish.h"
#include "preload/window/window.h"
#define KPROF_IMPLEMENTATION
#include "preload/kprof.h"
#include "schedule/ctl_proto.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { TURN_NAPS = 1000, TURN_NAP_NS = 1000000 };

static bool turn_take(void)
{
    for (int i = 0; i < TURN_NAPS && kp_run_is_active(); i++) {
        if (kp_run_turn_begin()) return true;
        kp_io_nap(TURN_NAP_NS);
    }
    return false;
}

static int start(const struct kp_ctl_request *r, uint64_t *begins)
{
    if (!r->steps && !r->is_at_step && !r->is_at_next) return kprof_start();
    const struct kp_window_wish wish = {
        .when = r->is_at_step ? KP_WISH_AT : KP_WISH_NEXT, .at = r->at, .steps = r->steps};
    return kp_window_ask(&wish, begins);
}

static int phase_set(const char *name) { return kp_phases_find(name) == KP_PHASE_OTHER ? -ENOENT : kprof_phase(name); }

static int act(const struct kp_ctl_request *r, uint64_t *begins)
{
    switch (r->verb) {
    case KP_CTL_START: return start(r, begins);
    case KP_CTL_STOP: return kprof_stop();
    case KP_CTL_KEEP: return kprof_keep();
    case KP_CTL_TOGGLE: return kprof_toggle(r->activity, r->on);
    case KP_CTL_STEP: return kprof_step();
    case KP_CTL_PHASE: return phase_set(r->key);
    case KP_CTL_METADATA: return kprof_metadata(r->key, r->value);
    default: return -ENOSYS;
    }
}

static const struct {
    enum kp_ctl_verb verb;
    int err;
    const char *text;
} reasons[] = {
    {KP_CTL_START, -EALREADY, "a window is open already"},
    {KP_CTL_START, -EBUSY, "a start waits for its step already; stop takes it back"},
    {KP_CTL_START, -ERANGE, "that step has begun already"},
    {KP_CTL_START, -EACCES, "KPROF_RANKS leaves this rank out"},
    {KP_CTL_START, -EIO, "there is no spool; the program's standard error says why"},
    {KP_CTL_STOP, -EALREADY, "nothing is recorded or asked for"},
    {KP_CTL_KEEP, -ENODATA, "there is no ring: KPROF_RING=30s makes one"},
    {KP_CTL_KEEP, -EPERM, "KPROF_EXPORT=none asks for no trace"},
    {KP_CTL_KEEP, -EALREADY, "nothing is recorded"},
    {KP_CTL_KEEP, -EACCES, "forked children and ranks that KPROF_RANKS leaves out keep none"},
    {KP_CTL_TOGGLE, -EINVAL, "KPROF_ACTIVITIES lacks it"},
    {KP_CTL_STEP, -EPERM, "KPROF_STEP names another source of steps"},
    {KP_CTL_PHASE, -ENOENT, "KPROF_PHASES names no such phase"},
    {KP_CTL_METADATA, -EINVAL, "the key has = or quotes, or the value is too long or no UTF-8"},
};

static const char *reason_of(enum kp_ctl_verb verb, int err)
{
    if (err == -ESHUTDOWN || err == -ENOSYS) return "the program ends";
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].verb == verb && reasons[i].err == err) return reasons[i].text;
    return kp_log_error_text(err);
}

static uint64_t spool_bytes(void) { return kp_record_is_open() ? kp_record_taken() : 0; }

/* By kp_fmt: kp_json maps 256 KB. No text here has a quote: rank.c, phases.c and kp_io_host_name give letters. */
static size_t status(char *answer, size_t bytes)
{
    struct kp_window_state now;
    struct kp_finish_totals all;
    char host[KP_IO_HOST_BYTES], asked[64] = "", phase[64] = "", job[KP_JOB_ID_BYTES + 16] = "";
    kp_window_look(&now);
    kp_finish_look(&all);
    const uint64_t cost_us = kp_io_helpers_cpu_us();
    kp_io_host_name(host);
    if (now.asked_at) kp_fmt(asked, sizeof asked, "\"asked_at\":%lu,", (unsigned long)now.asked_at);
    if (*kp_run_job()) kp_fmt(job, sizeof job, "\"job\":\"%s\",", kp_run_job());
    if (*now.phase) kp_fmt(phase, sizeof phase, "\"phase\":\"%s\",", now.phase);
    return kp_fmt(answer, bytes,
                  "{\"ok\":true,\"pid\":%d,\"host\":\"%s\",%s%s\"step\":%lu,\"steps_by\":\"%s\",\"window\":\"%s\",%s"
                  "\"traces\":%lu,\"ops\":%lu,\"dropped\":%lu,\"spool_bytes\":%lu,\"cost_ms\":%lu.%03u}\n",
                  (int)getpid(), host, job, phase, (unsigned long)now.step, kp_step_source_name(kp_steps_source()),
                  now.state, asked, (unsigned long)all.traces,
                  (unsigned long)(all.events + (now.number ? kp_record_events(now.number) : 0)),
                  (unsigned long)kp_loss_total(), (unsigned long)spool_bytes(), (unsigned long)(cost_us / 1000),
                  (unsigned)(cost_us % 1000));
}

static size_t where(char *answer, size_t bytes, const char *event, struct kp_where_text *more)
{
    const int rc = kp_where_write(more, event);
    if (rc == 0) return 0;
    kp_where_drop(more);
    return kp_fmt(answer, bytes, "{\"error\":\"%s\"}\n", kp_log_error_text(rc));
}

size_t kp_ctl_answer(char *line, char *answer, size_t bytes, bool has_begun, struct kp_where_text *more)
{
    struct kp_ctl_request request;
    char why[128];
    uint64_t begins = 0;
    if (kp_ctl_parse(line, &request, why, sizeof why) != 0) return kp_fmt(answer, bytes, "{\"error\":\"%s\"}\n", why);
    if (request.verb == KP_CTL_STATUS) return status(answer, bytes);
    if (request.verb == KP_CTL_WHERE) return where(answer, bytes, has_begun ? "asked" : "early", more);
    const bool has_turn = turn_take();
    const int err = has_turn ? act(&request, &begins) : -ESHUTDOWN;
    if (has_turn) kp_run_turn_end();
    if (err) return kp_fmt(answer, bytes, "{\"error\":\"%s\"}\n", reason_of(request.verb, err));
    if (begins) return kp_fmt(answer, bytes, "{\"ok\":true,\"begins\":%lu}\n", (unsigned long)begins);
    return kp_fmt(answer, bytes, "{\"ok\":true}\n");
}

int kp_ctl_turn(void)
{
    int err = -ESHUTDOWN;
    if (!turn_take()) return err;
    err = kprof_keep();
    const bool is_ring = err != -ENODATA;
    if (!is_ring) err = kprof_stop();
    const bool starts = err == -EALREADY;
    if (starts) err = kprof_start();
    kp_run_turn_end();
    if (is_ring && !starts && err)
        kp_log(0, "the signal of KPROF_SIGNAL kept nothing: %s", reason_of(KP_CTL_KEEP, err));
    else if (is_ring && !starts) kp_log(1, "the signal of KPROF_SIGNAL keeps the ring");
    else if (err) kp_log(0, "the signal of KPROF_SIGNAL started nothing: %s", reason_of(KP_CTL_START, err));
    else kp_log(1, "the signal of KPROF_SIGNAL %s recording", starts ? "started" : "stopped");
    return err;
}

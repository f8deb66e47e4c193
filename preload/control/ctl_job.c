// SPDX-License-Identifier: Apache-2.0
/*
 * ctl_job.c - this rank's part in a start of all ranks of a job, by files in the output folder (schedule/job/job.h)
 *
 * Called by: the thread kprof-control; begin, exit and fork as ctl.c
 * Owns:      KPROF_DIR/.HOST_rRANK.rank (schedule/job/job.h), from the first op on
 * Locks:     the run's turn while it acts and answers, so that exit waits for it
 * On fail:   one line says that this rank takes no part; the program and its socket go on
 * Safe in:   after fork: kp_ctl_job_forget comes first
 *
 * One rank of each machine reads the call and wakes the others (ctl_peers.c). Nothing waits for another rank. No file
 * stays open between two looks, since the host may close any descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_filecheck.h"
#include "collector/base/kp_hash.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"
#include "preload/run.h"
#include "preload/control/ctl.h"
#include "preload/window/sources.h"
#include "preload/window/window.h"
#include "schedule/job/job.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { IDLE_MS = 1000, ACTIVE_MS = 50, SAMPLE_MS = 400, SPEED_MS = 30000, PATH_BYTES = 4300 };
enum {
    REST_MS = 5000,   /* between two looks, while nothing is asked for long */
    UNTOLD_MS = 20000 /* of a rank that another one tells: before kprof ctl takes it for silent */
};
_Static_assert(sizeof((struct kp_job_answer *)0)->job == KP_JOB_ID_BYTES, "a job's id fits");
_Static_assert((int)UNTOLD_MS + 2 * (int)IDLE_MS < (int)KP_JOB_SILENT_MS, "a rank without news answers in time");

static struct {
    bool is_wanted, is_joined;
    char call_path[PATH_BYTES], own_path[PATH_BYTES];
    struct kp_job_call call; /* read last */
    struct kp_job_rank side;
    uint64_t wrote_ms;
} job;

/* When to read the call: each look is an open, a read and a close in a folder that all ranks share. */
static struct {
    uint64_t last_ms, pause_ms;
    bool is_soon, is_active;
} look;

/* How fast the fastest steps are, of the last 30 to 60 s. */
static struct {
    uint64_t step, at_ms, moved_ms, turned_ms;
    uint64_t now_us, before_us; /* 0: no step */
} speed;

/* A window by time, where nothing counts steps. All ranks begin it at one time of the clock on the wall, which somebody
 * may set meanwhile: it is read once, and then CLOCK_MONOTONIC counts. If this thread gets no core, it begins late, and
 * lasts as long. */
static struct {
    uint64_t begin_ms, for_ms, end_ms; /* of CLOCK_MONOTONIC. 0: none; until it is stopped; not open */
    bool is_open;
} timed;

void kp_ctl_job_setup(const struct kp_config *config)
{
    const struct kp_rank place = kp_run_rank();
    job.is_wanted = config->control && place.is_launched && place.size > 1 && !kp_run_is_left_out();
}

bool kp_ctl_job_is_wanted(void) { return job.is_wanted; }

/* ---- files ---- */

static int text_read(const char *path, int flags, char text[KP_JOB_BYTES])
{
    const int fd = kp_filecheck_open_own(AT_FDCWD, path, O_RDONLY | flags);
    memset(text, 0, KP_JOB_BYTES);
    if (fd < 0) return fd;
    const ssize_t n = kp_io_pread(fd, text, KP_JOB_BYTES, 0);
    kp_io_close(fd);
    return n < 0 ? (int)n : 0;
}

static int answer_write(uint64_t now_ms)
{
    char text[KP_JOB_BYTES];
    job.side.answer.beat++;
    job.wrote_ms = now_ms;
    kp_job_answer_print(&job.side.answer, text);
    const int fd = kp_filecheck_open_own(AT_FDCWD, job.own_path, O_WRONLY | O_CREAT);
    if (fd < 0) return fd;
    const ssize_t n = kp_io_write_all(fd, text, sizeof text);
    kp_io_close(fd);
    return n < 0 ? (int)n : 0;
}

/* Each round has an id of its own: the window of the last one may still be there. */
static uint64_t wish_id(void) { return job.side.answer.id + job.side.answer.round; }

static void own_wish_drop(void)
{
    kp_window_decide(wish_id(), false);
    memset(&timed, 0, sizeof timed);
}

/* A window that was not settled makes no trace. */
static void leave_for(const char *path, int err)
{
    if (job.side.answer.state == KP_JOB_ARMED) own_wish_drop();
    job.is_wanted = job.is_joined = false;
    kp_ctl_peers_end(); /* others of this machine must not wait for its looks */
    kp_log(0, "this rank takes no part in a start of all ranks: %s: %s", path,
           err == -EPERM || err == -ELOOP ? "it is not a file of this user alone" : kp_log_error_text(err));
}

/* ---- joining ---- */

static void paths_make(struct kp_job_answer *own)
{
    char host[KP_IO_HOST_BYTES];
    kp_io_host_name(host);
    kp_fmt(own->host, sizeof own->host, "%s", host);
    kp_fmt(job.call_path, PATH_BYTES, "%s/.kprof.job", kp_run_out_dir());
    char of_job[16] = ""; /* two jobs on a host have the same ranks */
    const uint64_t hash = kp_hash64(own->job, strlen(own->job));
    if (*own->job) kp_fmt(of_job, sizeof of_job, "_%08x", (unsigned)hash);
    kp_fmt(job.own_path, PATH_BYTES, "%s/.%s_r%u%s.rank", kp_run_out_dir(), own->host, kp_run_rank().rank, of_job);
}

/* Whether another process has the rank's file: the rank itself, where this one is a program that it runs. */
static bool is_taken(const struct kp_job_answer *own, const char *text)
{
    struct kp_job_answer other;
    if (!kp_job_answer_parse(text, &other) || other.pid == own->pid || other.pidspace != own->pidspace) return false;
    if (other.start == 0 || kp_io_process_start((int32_t)other.pid) != other.start) return false;
    KP_LOG_ONCE(1, "rank %u is the process %lu: this one takes no part in a start of all ranks", kp_run_rank().rank,
                (unsigned long)other.pid);
    return true;
}

/* Pauses grow up to REST_MS. */
static void look_note(uint64_t now_ms)
{
    look.is_soon = false;
    look.last_ms = now_ms;
    look.pause_ms = !look.pause_ms ? IDLE_MS : look.pause_ms * 2 < REST_MS ? look.pause_ms * 2 : REST_MS;
}

static void join(uint64_t now_ms)
{
    char text[KP_JOB_BYTES];
    struct kp_job_answer own = {.rank = kp_run_rank().rank, .size = kp_run_rank().size, .pid = (uint64_t)getpid()};
    struct stat space;
    if (now_ms - look.last_ms < look.pause_ms) return;
    look_note(now_ms);
    own.start = kp_io_process_start(0);
    if (kp_io_stat("/proc/self/ns/pid", &space) == 0) own.pidspace = space.st_ino;
    kp_fmt(own.job, sizeof own.job, "%s", kp_run_job());
    paths_make(&own);
    int rc = kp_io_mkdirs(kp_run_out_dir(), KP_IO_FOLDER_MODE);
    if (rc == 0) rc = text_read(job.own_path, O_CREAT, text);
    if (rc == 0 && is_taken(&own, text)) return;
    if (rc < 0) {
        leave_for(job.own_path, rc);
        return;
    }
    rc = text_read(job.call_path, O_CREAT, text);
    if (rc < 0) {
        leave_for(job.call_path, rc);
        return;
    }
    (void)kp_job_call_parse(text, &job.call);
    kp_job_rank_begin(&job.side, &job.call);
    kp_ctl_peers_begin(kp_run_out_dir());
    look.pause_ms = IDLE_MS;
    job.side.answer = own;
    job.is_joined = true;
    rc = answer_write(now_ms);
    if (rc < 0) leave_for(job.own_path, rc);
}

/* ---- steps ---- */

static bool has_steps(void) { return kp_steps_source() > KP_STEP_TIME; }

/* Steps that go back are those of another phase. */
static void speed_sample(uint64_t step, uint64_t now_ms)
{
    if (speed.at_ms && step >= speed.step && now_ms - speed.at_ms < SAMPLE_MS) return;
    const uint64_t steps = speed.at_ms && step > speed.step ? step - speed.step : 0;
    const uint64_t us = steps ? (now_ms - speed.at_ms) * 1000 / steps + 1 : 0;
    if (steps || !speed.moved_ms) speed.moved_ms = now_ms;
    if (us && (!speed.now_us || us < speed.now_us)) speed.now_us = us;
    speed.step = step;
    speed.at_ms = now_ms;
    if (now_ms - speed.turned_ms < SPEED_MS) return;
    speed.turned_ms = now_ms;
    speed.before_us = speed.now_us;
    speed.now_us = 0;
}

static uint64_t step_us(uint64_t now_ms)
{
    const uint64_t a = speed.now_us, b = speed.before_us;
    if (!has_steps()) return 0;
    if (a && b) return a < b ? a : b;
    return a || b ? a + b : (now_ms - speed.moved_ms) * 1000 + 1; /* none in all the time that was seen */
}

/* ---- what a call asks for ---- */

static uint64_t wall_ms(void) { return kp_clock_ns(CLOCK_REALTIME) / 1000000; }

static int arm(void)
{
    uint64_t begins;
    const uint64_t wall = wall_ms();
    const struct kp_window_wish wish = {
        .when = KP_WISH_AT, .at = job.call.target, .steps = job.call.steps, .phase = job.call.phase, .id = wish_id()};
    if (job.call.target && has_steps()) return kp_window_ask(&wish, &begins);
    if (job.call.at_ms <= wall) return -ERANGE;
    timed.begin_ms = kp_clock_ms() + (job.call.at_ms - wall);
    timed.for_ms = job.call.for_ms;
    return 0;
}

static void timed_turn(void)
{
    uint64_t begins;
    const uint64_t now_ms = kp_clock_ms();
    const bool is_settled = job.side.answer.state == KP_JOB_KEPT;
    const struct kp_window_wish wish = {.when = KP_WISH_NOW, .id = is_settled ? 0 : wish_id()};
    if (!timed.begin_ms || now_ms < timed.begin_ms) return;
    if (!timed.is_open) {
        const int err = kp_window_ask(&wish, &begins);
        timed.is_open = err == 0;
        timed.end_ms = timed.for_ms ? kp_clock_ms() + timed.for_ms : 0;
        if (err) kp_log(0, "no window was opened at its time (%s)", kp_log_error_text(err));
    }
    if (timed.is_open && timed.end_ms && now_ms < timed.end_ms) return;
    if (timed.is_open && timed.end_ms) (void)kp_window_stop();
    memset(&timed, 0, sizeof timed);
}

static void act(enum kp_job_action action)
{
    switch (action) {
    case KP_JOB_DO_ARM: kp_job_rank_armed(&job.side, arm()); break;
    case KP_JOB_DO_KEEP: kp_window_decide(wish_id(), true); break;
    case KP_JOB_DO_DROP: own_wish_drop(); break;
    case KP_JOB_DO_STOP:
        kp_job_rank_stopped(&job.side, timed.begin_ms && !timed.is_open ? 0 : kp_window_stop());
        memset(&timed, 0, sizeof timed);
        break;
    default: break;
    }
}

/* ---- looking ---- */

static void answer_fill(const struct kp_window_state *now, uint64_t now_ms)
{
    struct kp_job_answer *const a = &job.side.answer;
    a->step = now->step;
    a->step_us = step_us(now_ms);
    kp_fmt(a->phase, sizeof a->phase, "%s", now->phase);
}

void kp_ctl_job_look_soon(void) { look.is_soon = true; }

static bool is_look_due(uint64_t now_ms)
{
    const bool must_look = kp_ctl_peers_must_look(now_ms);
    return look.is_soon || look.is_active || now_ms - look.last_ms >= (must_look ? look.pause_ms : UNTOLD_MS);
}

/* Reads the call, if that is due. While it stays as it was the pauses grow. */
static void call_look(uint64_t now_ms)
{
    char text[KP_JOB_BYTES];
    const uint64_t id = job.call.id, beat = job.call.beat;
    if (!is_look_due(now_ms)) return;
    look_note(now_ms);
    if (text_read(job.call_path, 0, text) != 0 || !kp_job_call_parse(text, &job.call)) return;
    if (job.call.id == id && job.call.beat == beat) return;
    look.pause_ms = IDLE_MS;
    kp_ctl_peers_wake();
}

/* Does what the call says, and answers. False: nothing is under way. */
static bool call_follow(uint64_t now_ms)
{
    struct kp_window_state now;
    enum kp_job_action action;
    bool is_news = false;
    while ((action = kp_job_rank_turn(&job.side, &job.call, now_ms)) != KP_JOB_DO_NOTHING) {
        act(action);
        is_news = true;
    }
    timed_turn();
    const bool is_active = kp_job_rank_is_active(&job.side, now_ms);
    if (!is_news && (!is_active || now_ms - job.wrote_ms < IDLE_MS)) return is_active;
    kp_window_look(&now);
    answer_fill(&now, now_ms);
    const int rc = answer_write(now_ms);
    if (rc < 0) leave_for(job.own_path, rc);
    return is_active;
}

/* The next look is no later than what a window by time needs. */
static uint32_t sleep_ms(bool is_active)
{
    const uint32_t most = is_active ? ACTIVE_MS : IDLE_MS;
    const uint64_t due = !timed.is_open ? timed.begin_ms : timed.end_ms, now_ms = kp_clock_ms();
    if (!due) return most;
    return due <= now_ms ? 1 : due - now_ms < most ? (uint32_t)(due - now_ms) : most;
}

uint32_t kp_ctl_job_look(void)
{
    const uint64_t now_ms = kp_clock_ms();
    bool is_active = false;
    const bool has_part = job.is_wanted && (job.is_joined || kp_sources_had_activity());
    if (!has_part && !timed.begin_ms) return IDLE_MS;
    if (has_part && job.is_joined) call_look(now_ms); /* takes no turn: the folder may stand */
    if (!kp_run_turn_begin()) return ACTIVE_MS;
    speed_sample(kp_steps_seen(), now_ms);
    if (!has_part) timed_turn();
    else if (!job.is_joined) join(now_ms);
    else look.is_active = is_active = call_follow(now_ms);
    kp_run_turn_end();
    return sleep_ms(is_active);
}

void kp_ctl_job_end(void)
{
    if (job.is_joined) (void)kp_io_unlink(job.own_path);
    job.is_joined = job.is_wanted = false;
}

void kp_ctl_job_forget(void) { job.is_joined = job.is_wanted = false; }

// SPDX-License-Identifier: Apache-2.0
/*
 * run.c - state of the run and of this process, and the calls up to boot.c
 *
 * Called by: every file of preload
 * Owns:      the variables below; boot.c sets them
 * Locks:     the turn (an atomic flag): exit waits for its holder, for a bounded time
 * On fail:   before boot.c has set them the run is not active, and every call up does nothing
 * Safe in:   signal handlers: functions that only load a variable; after fork yes (kp_run_forget)
 */
#include "preload/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_gate.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"
#include "collector/base/kp_poison.h"

static struct kp_run_calls up;
static char job_id[KP_JOB_ID_BYTES];
static _Atomic bool alive, has_worked;
static _Atomic int spool_failed;
static _Atomic uint32_t gpu = KP_GPU_UNDECIDED;
static pid_t owner;
static struct kp_rank launched = {.size = 1, .on_node = -1};
static _Atomic uint64_t group_place; /* rank and size, 32 bits each; 0: the launcher's hold */
static _Atomic bool is_left_out;     /* at start, or by kprof-tick once a window is over */
static _Atomic uint32_t all_left_out;
static int32_t parent_pid;
static char oom_words[1024];
static _Atomic uint64_t oom_step; /* that the words are of, plus 1; 0: none */
static struct kp_run_exception exception;
static _Atomic bool has_exception;
static bool is_elsewhere; /* the user called `kprof run` in another folder than this program was started in */
static char start_dir[2048], out_dir[4096], spool_dir[4096];

void kp_run_set_calls(const struct kp_run_calls *calls) { up = *calls; }

void kp_run_step(struct kp_thread *thread, uint64_t now_ticks)
{
    if (up.step) up.step(thread, now_ticks);
}

void kp_run_phase_begin(struct kp_thread *thread, uint32_t phase, uint32_t *depth)
{
    if (up.phase_begin) up.phase_begin(thread, phase, depth);
}

void kp_run_phase_end(struct kp_thread *thread, uint32_t depth)
{
    if (up.phase_end) up.phase_end(thread, depth);
}

/* Clears the bit first: beginning a run allocates and makes hooked calls, which would come here again. */
void kp_run_saw_activity(void)
{
    if (kp_gate_get() & KP_GATE_CHILD_PENDING) kp_gate_set(kp_gate_get() & ~(uint64_t)KP_GATE_CHILD_PENDING);
    if (!kp_run_is_active() || kp_exchange_acq_rel(&has_worked, true)) return;
    if (up.first_activity) up.first_activity();
}

void kp_run_modules_changed(void)
{
    if (up.modules_changed) up.modules_changed();
}

void kp_run_module_starts(const void *inside)
{
    if (up.module_starts) up.module_starts(inside);
}

void kp_run_out_of_memory(const struct kp_run_oom *oom)
{
    if (up.out_of_memory) up.out_of_memory(oom);
}

void kp_run_set_out_of_memory(const char *words, uint64_t steps)
{
    kp_fmt(oom_words, sizeof oom_words, "%s", words);
    kp_store_release(&oom_step, steps + 1); /* pairs with: kp_run_last_out_of_memory */
}

const char *kp_run_last_out_of_memory(uint64_t steps)
{
    return kp_load_acquire(&oom_step) == steps + 1 ? oom_words : NULL; /* pairs with: kp_run_set_out_of_memory */
}

void kp_run_set_exception(const struct kp_run_exception *of)
{
    exception = *of;
    kp_store_release(&has_exception, true); /* pairs with: kp_run_exception */
}

const struct kp_run_exception *kp_run_exception(void)
{
    return kp_load_acquire(&has_exception) ? &exception : NULL; /* pairs with: kp_run_set_exception */
}

/* Called at every window; a failure is logged once and not tried again. */
int kp_run_open_spool(void)
{
    int err = kp_load_relaxed(&spool_failed);
    if (err || !up.open_spool) return err;
    err = up.open_spool();
    if (err) kp_store_relaxed(&spool_failed, err);
    return err;
}

bool kp_run_cannot_record(void) { return kp_load_relaxed(&spool_failed) != 0; }

void kp_run_end_early(void)
{
    if (up.end) up.end();
}

enum kp_gpu_backend kp_run_gpu_backend(void)
{
    return (enum kp_gpu_backend)kp_load_acquire(&gpu); /* pairs with: kp_run_set_gpu_backend */
}

void kp_run_set_gpu_backend(enum kp_gpu_backend now)
{
    if (kp_exchange_acq_rel(&gpu, (uint32_t)now) == (uint32_t)now) return; /* pairs with: kp_run_gpu_backend */
    if (up.gpu_changed) up.gpu_changed();
}

static _Atomic bool is_lost_at_least;

void kp_run_lost_at_least(void) { kp_store_relaxed(&is_lost_at_least, true); }

bool kp_run_is_lost_at_least(void) { return kp_load_relaxed(&is_lost_at_least); }

bool kp_run_is_active(void) { return kp_load_acquire(&alive) && (kp_gate_get() & KP_GATE_ON); }

bool kp_run_set_active(bool is_active) { return kp_exchange_acq_rel(&alive, is_active); }

bool kp_run_is_owner(void) { return getpid() == owner; }

void kp_run_own(void) { owner = getpid(); }

void kp_run_set_rank(const struct kp_rank *place) { launched = *place; }

void kp_run_set_place(uint32_t rank, uint32_t size) { kp_store_relaxed(&group_place, (uint64_t)rank << 32 | size); }

struct kp_rank kp_run_rank(void)
{
    const uint64_t place = kp_load_relaxed(&group_place);
    struct kp_rank now = launched;
    if (place) now.rank = (uint32_t)(place >> 32), now.size = (uint32_t)place;
    return now;
}

void kp_run_set_job(const char *id) { kp_fmt(job_id, sizeof job_id, "%s", id); }

const char *kp_run_job(void) { return job_id; }

void kp_run_leave_out(uint32_t all_out)
{
    kp_store_relaxed(&all_left_out, all_out);
    kp_store_relaxed(&is_left_out, true);
}

bool kp_run_is_left_out(void) { return kp_load_relaxed(&is_left_out); }

uint32_t kp_run_all_left_out(void) { return kp_load_relaxed(&all_left_out); }

int32_t kp_run_parent_pid(void) { return parent_pid; }

bool kp_run_is_worker(void) { return parent_pid != 0; }

void kp_run_set_parent_pid(int32_t pid) { parent_pid = pid; }

/* A worker does not log while its parent runs: the parent logs for it. */
bool kp_run_may_log(void) { return !(parent_pid && kp_io_process_start(parent_pid)); }

/* Does this file of the parent in /proc contain the bytes `what` (at most 64)? */
static bool parent_says(const char *file, const char *what)
{
    char text[4096] = "", path[64];
    const size_t bytes = strlen(what);
    kp_fmt(path, sizeof path, "/proc/%d/%s", (int)getppid(), file);
    const int fd = kp_io_open(path, O_RDONLY, 0);
    bool is = false;
    ssize_t n = fd < 0 ? 0 : 1;
    for (size_t has = 0; n > 0 && !is;) {
        n = kp_io_read(fd, text + has, sizeof text - has);
        has += n > 0 ? (size_t)n : 0;
        is = memmem(text, has, what, bytes) != NULL;
        const size_t keep = has < bytes - 1 ? has : bytes - 1; /* a match may span two reads */
        memmove(text, text + has - keep, keep);
        has = keep;
    }
    if (fd >= 0) kp_io_close(fd);
    return is;
}

bool kp_parent_lacks(const char *setting)
{
    return !(parent_says("environ", setting) && parent_says("maps", "/libkprof.so"));
}

void kp_path_make_absolute(char *out, size_t size, const char *path)
{
    if (path[0] == '/' || !start_dir[0]) kp_fmt(out, size, "%s", path);
    else kp_fmt(out, size, "%s/%s", start_dir, path);
}

void kp_run_set_folders(const char *out, const char *spool, const char *from)
{
    if (kp_io_getcwd(start_dir, sizeof start_dir) != 0) start_dir[0] = 0;
    is_elsewhere = from && strcmp(from, start_dir) != 0;
    kp_path_make_absolute(out_dir, sizeof out_dir, out);
    kp_path_make_absolute(spool_dir, sizeof spool_dir, spool);
}

/* Workers write to the folder `children`: readers take each trace in the main folder for a rank. */
void kp_run_move_to_children(void)
{
    const size_t out = strlen(out_dir), spool = strlen(spool_dir);
    kp_fmt(out_dir + out, sizeof out_dir - out, "/children");
    kp_fmt(spool_dir + spool, sizeof spool_dir - spool, "/children");
}

const char *kp_run_out_dir(void) { return out_dir; }

const char *kp_run_spool_dir(void) { return spool_dir; }

const char *kp_path_display(const char *path)
{
    size_t n = strlen(start_dir);
    return n && !is_elsewhere && strncmp(path, start_dir, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

/*
 * A helper thread must not call torch while exit() destroys torch's objects. An exit handler closes the turn before
 * that: preload/torch/exit_watch.c registers one after torch was loaded. It waits for the holder, but not for ever: the
 * host may call exit() in a signal handler.
 */
static atomic_flag turn = ATOMIC_FLAG_INIT;
static _Atomic bool is_exiting;
static _Atomic bool wants_look;
static _Thread_local bool is_ticking __attribute__((tls_model("initial-exec")));
enum { TURN_TRIES = 1000, TURN_NAP_NS = 1000000 };

bool kp_run_turn_begin(void)
{
    if (atomic_flag_test_and_set_explicit(&turn, memory_order_acquire)) return false;
    if (kp_run_is_active() && !kp_load_relaxed(&is_exiting)) return true;
    kp_run_turn_end();
    return false;
}

void kp_run_turn_end(void) { atomic_flag_clear_explicit(&turn, memory_order_release); }

void kp_run_turn_close(void)
{
    for (int i = 0; i < TURN_TRIES && atomic_flag_test_and_set_explicit(&turn, memory_order_acquire); i++)
        kp_io_nap(TURN_NAP_NS);
    kp_store_relaxed(&is_exiting, true);
    kp_run_turn_end();
}

static _Atomic int exit_status;

static void exit_begins(int status, void *unused)
{
    int saved = errno;
    (void)unused;
    kp_store_relaxed(&exit_status, status & 0xff);
    kp_run_turn_close();
    errno = saved;
}

static void exit_begins_anyhow(void *unused) { exit_begins(0, unused); }

extern __typeof__(on_exit) on_exit __attribute__((weak));      /* musl has none: no status there */
int __cxa_atexit(void (*fn)(void *), void *arg, void *object); /* libc's; both may allocate, once for many handlers */

static bool handler_add(void)
{
    if (kp_fail_point("atexit") != 0) return false;
    return on_exit ? on_exit(exit_begins, NULL) == 0 : __cxa_atexit(exit_begins_anyhow, NULL, NULL) == 0;
}

bool kp_run_turn_watch(void)
{
    if (handler_add()) return true;
    KP_LOG_ONCE(0, "no memory to watch exit(): its status is not known");
    return false;
}

int kp_run_exit_status(void) { return kp_load_relaxed(&exit_status); }

bool kp_run_is_ticking(void) { return is_ticking; }

void kp_run_set_ticking(bool is) { is_ticking = is; }

void kp_run_look_again(void) { kp_store_relaxed(&wants_look, true); }

bool kp_run_take_look_again(void) { return kp_exchange_acq_rel(&wants_look, false); }

void kp_run_forget(void)
{
    kp_store_relaxed(&spool_failed, 0);
    kp_store_relaxed(&has_worked, false);
    kp_store_relaxed(&has_exception, false);
    atomic_flag_clear_explicit(&turn, memory_order_relaxed);
}

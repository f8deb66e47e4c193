// SPDX-License-Identifier: Apache-2.0
/*
 * run.h - state of the run that every file of preload may read, and the calls up to boot.c
 *
 * It lies below all rooms of preload. Sources, hooks and taps call it; it calls boot.c through `struct kp_run_calls`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_rank.h"
#include "collector/format/kp_ends.h"

struct kp_thread;

struct kp_run_oom { /* an allocation that failed, as torch says it */
    uint64_t bytes, allocated, reserved;
    uint32_t site;       /* who asked (python_bridge.h) */
    uint8_t device_type; /* 0: the CPU */
    int8_t device;
};

/* --- calls up; a NULL pointer is not called --- */
struct kp_run_calls {
    void (*modules_changed)(void);
    void (*module_starts)(const void *inside);
    void (*step)(struct kp_thread *thread, uint64_t now_ticks);
    void (*phase_begin)(struct kp_thread *thread, uint32_t phase, uint32_t *depth);
    void (*phase_end)(struct kp_thread *thread, uint32_t depth);
    void (*first_activity)(void); /* once a process */
    void (*gpu_changed)(void);
    int (*open_spool)(void);
    void (*end)(void);
    void (*out_of_memory)(const struct kp_run_oom *oom);
};
/* Called once by the constructor (and by tests). */
void kp_run_set_calls(const struct kp_run_calls *calls);

/* A source calls it inside its hook when a marked range ended (thread->inside is set). */
void kp_run_step(struct kp_thread *thread, uint64_t now_ticks);
/* A source calls them inside its hook where a phase begins or ends (schedule/phases.c). */
void kp_run_phase_begin(struct kp_thread *thread, uint32_t phase, uint32_t *depth);
void kp_run_phase_end(struct kp_thread *thread, uint32_t depth);
/* A source calls it at the first activity (source.had_activity is true); in a child recording begins. Not in a hook. */
void kp_run_saw_activity(void);
/* Makes sources attach: modules may have changed, or a source can attach only now. Outside any hook. */
void kp_run_modules_changed(void);
/* Constructors of the module with the address `inside` are about to run. On a thread that holds the load lock. */
void kp_run_module_starts(const void *inside);
/* An allocation of torch failed, and KPROF_ON_OOM is set. On its thread, in a hook or outside. */
void kp_run_out_of_memory(const struct kp_run_oom *oom);
/* The words on the last one, after so many steps (kp_steps_seen). NULL: none, or steps have ended since. */
void kp_run_set_out_of_memory(const char *words, uint64_t steps);
const char *kp_run_last_out_of_memory(uint64_t steps);
struct kp_run_exception { /* which ends the program */
    char name[96], place[512], text[KP_ENDS_TEXT_BYTES];
    char root[KP_ENDS_ROOT_BYTES]; /* the one that it came from: "KeyError "lr" at train.py:2 main"; "": none */
    bool has_lost_peer;            /* it says that another rank was gone */
    bool is_own;                   /* the place is a line of the program's own */
};
/* With the GIL, or at exit. */
void kp_run_set_exception(const struct kp_run_exception *of);
const struct kp_run_exception *kp_run_exception(void); /* NULL: none */
/* Opens the spool on first use. 0 or -errno; after a failure every later call returns the same error. */
int kp_run_open_spool(void);
bool kp_run_cannot_record(void); /* kp_run_open_spool has failed */
/* Does what exit does though the program goes on: writes traces, logs the closing line, and records no more. On a host
 * thread, outside hooks. */
void kp_run_end_early(void);

/* --- which backend records CUDA; kept here, so that sources need not include each other --- */
enum kp_gpu_backend {
    KP_GPU_UNDECIDED, /* no CUDA in this process yet, or not decided */
    KP_GPU_CUPTI,     /* preload/cupti */
    /* preload/cuda_hooks, as CUPTI cannot be used (or KPROF_CUPTI=off); never changes again */
    KP_GPU_INTERCEPT,
    KP_GPU_OFF, /* none: KPROF_ACTIVITIES lacks cuda, or another tool has CUPTI */
};
enum kp_gpu_backend kp_run_gpu_backend(void);
void kp_run_lost_at_least(void);    /* more was lost than is counted, and the closing line says so. Any thread */
bool kp_run_is_lost_at_least(void); /* was that called? */
void kp_run_set_gpu_backend(
    enum kp_gpu_backend gpu); /* called by preload/cupti; a change is told to every source. Any thread, no lock held. */

/* --- this process --- */
/* False before start, after exit, in a forked child, with KPROF=0. */
bool kp_run_is_active(void);
bool kp_run_set_active(bool is_active); /* returns the old value, whatever the gate says */
/* False in a vfork child, which shares this memory and lacks our helper threads. */
bool kp_run_is_owner(void);
/*
 * KPROF_RANKS leaves this rank out: it records nothing, also when it is asked to. Called by the constructor. `all_out`:
 * the number of ranks, if all are left out and this one says so; else 0.
 */
void kp_run_leave_out(uint32_t all_out);
bool kp_run_is_left_out(void);
uint32_t kp_run_all_left_out(void);
/* The rank in the job: as the constructor found it, or as the process group said later. Any thread. */
void kp_run_set_rank(const struct kp_rank *place);
void kp_run_set_place(uint32_t rank, uint32_t size);
struct kp_rank kp_run_rank(void);
/* The job's id, of letters, digits, "_", "-" and "."; "" where the launcher names none (kp_job_id_find). */
void kp_run_set_job(const char *id);
const char *kp_run_job(void);
void kp_run_own(void); /* makes this process the owner; called by boot.c */
/* The process that this one is a worker of; 0: none. */
int32_t kp_run_parent_pid(void);
bool kp_run_is_worker(void);
void kp_run_set_parent_pid(int32_t pid);
/* Does this process log how its run went? Not a worker whose parent runs: the parent logs it for all. */
bool kp_run_may_log(void);
/*
 * False if the parent process (a shell or launcher) also has this library and the setting. The setting is given with
 * its "=", at most 64 bytes ("KPROF_X="). Reads files; not from signal handlers.
 */
bool kp_parent_lacks(const char *setting);
/* Inside fork, in a child that shall record: resets the state inherited from the parent. */
void kp_run_forget(void);

/* --- folders --- */
/* Makes both paths absolute, since the host may call chdir before anything is written. `from`: where the user called
 * `kprof run`, or NULL. */
void kp_run_set_folders(const char *out, const char *spool, const char *from);
void kp_run_move_to_children(void);
void kp_path_make_absolute(char *out, size_t size, const char *path);
const char *kp_run_out_dir(void);
const char *kp_run_spool_dir(void);
/* For log lines: the path relative to the folder that the program was started in, where the user is there. */
const char *kp_path_display(const char *path);

/*
 * A helper thread takes the turn before it steps or opens and closes windows. false: exit has begun, or another thread
 * has the turn; it tries again later, as long as kp_run_is_active. It must be short, as exit waits for it.
 */
bool kp_run_turn_begin(void);
void kp_run_turn_end(void);
void kp_run_turn_close(void); /* exit begins: no thread gets the turn any more */
/* Registers an exit handler that closes the turn. exit() runs it before the handlers registered earlier. */
bool kp_run_turn_watch(void);
int kp_run_exit_status(void); /* of exit(), once it has begun; else 0 */
/* Is this the helper thread that runs boot's tick, in a tick? */
bool kp_run_is_ticking(void);
void kp_run_set_ticking(bool is_ticking);
/* A source that cannot attach in this tick asks for another try in the next. */
void kp_run_look_again(void);
bool kp_run_take_look_again(void); /* whether one asked; once */

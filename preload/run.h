// SPDX-License-Identifier: Apache-2.0
/*
 * run.h - what every file of preload may ask of the run, and the calls that go up through it
 *
 * It lies at the bottom: a source, a hook or a tap tells it what happened, and boot.c hears of it through `struct
 * kp_run_calls`.
 */
#ifndef KP_RUN_H
#define KP_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_thread;

/* --- calls up: any of them may be NULL, then nothing is done --- */
struct kp_run_calls {
    void (*modules_changed)(void);
    void (*step)(struct kp_thread *thread, uint64_t now_ticks);
    void (*first_activity)(void); /* once a process */
    void (*gpu_changed)(void);
    int (*open_spool)(void);
    void (*end)(void);
};
/* Fixed once by the constructor (and by tests). */
void kp_run_set_calls(const struct kp_run_calls *calls);

/* A source calls it inside its hook when a marked range ended (t->inside is set). */
void kp_run_step(struct kp_thread *thread, uint64_t now_ticks);
/* At the first work a source saw (source.had_activity is true): in a child recording begins. Not inside a hook. */
void kp_run_saw_activity(void);
/* Modules may have changed, or a source has something to record only now: the others attach. Outside any hook. */
void kp_run_modules_changed(void);
/* Opens the spool on first use. 0 or -errno: what was said once is the answer for good. */
int kp_run_open_spool(void);
bool kp_run_cannot_record(void); /* that failed */
/* As at exit, though the program goes on: all is written and said, nothing is recorded afterwards. On a host thread,
 * outside hooks. */
void kp_run_end_early(void);

/* --- who records what the program asks of CUDA: kept here, so that sources need not know each other --- */
enum kp_gpu_backend {
    KP_GPU_UNDECIDED, /* no CUDA in this process so far, or not decided yet */
    KP_GPU_CUPTI,     /* preload/cupti */
    /* for good: CUPTI is not to be had (or KPROF_CUPTI=off), preload/cuda_hooks records what our own hooks see */
    KP_GPU_INTERCEPT,
    KP_GPU_OFF, /* KPROF_ACTIVITIES without cuda, or CUPTI is another tool's: nobody */
};
enum kp_gpu_backend kp_run_gpu_backend(void);
void kp_run_set_gpu_backend(
    enum kp_gpu_backend gpu); /* preload/cupti's word; tells every source when it is news. Any thread, no lock held. */

/* --- this process --- */
/* False before start, after exit, in a forked child, with KPROF=0. */
bool kp_run_is_active(void);
bool kp_run_set_active(bool is_active); /* what it was, whatever the gate */
/* False in a vfork child, which runs on our memory and has none of our threads. */
bool kp_run_is_owner(void);
void kp_run_own(void); /* boot.c's: this process is the owner */
/* The process whose worker this one is; 0: it is none. */
int32_t kp_run_parent_pid(void);
bool kp_run_is_worker(void);
void kp_run_set_parent_pid(int32_t pid);
/* Whether this process says how its run went; else the one that started it says it for all. */
bool kp_run_may_log(void);
/*
 * False when the program that started this one, as shells and launchers do, has this library as well, and the setting,
 * named with its "=", at most 64 bytes ("KPROF_X="). Reads files; not from signal handlers.
 */
bool kp_parent_lacks(const char *setting);
/* Inside fork, in a child that shall record: what was the parent's is forgotten. */
void kp_run_begin_in_child(void);

/* --- folders --- */
/* Absolute, since the host may change its folder before anything is written. */
void kp_run_set_folders(const char *out, const char *spool);
void kp_run_move_to_children(void);
void kp_path_make_absolute(char *out, size_t size, const char *path);
const char *kp_run_out_dir(void);
const char *kp_run_spool_dir(void);
/* A path as the user would type it from the folder the program was started in. */
const char *kp_path_display(const char *path);

/*
 * A thread of ours, before it steps or opens and closes windows: false when exit has begun, or another is at it. Then
 * it tries again later, as long as kp_run_is_active. Short: exit waits for the end.
 */
bool kp_run_turn_begin(void);
void kp_run_turn_end(void);
void kp_run_turn_close(void); /* exit begins: there is no turn any more */

#endif

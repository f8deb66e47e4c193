// SPDX-License-Identifier: Apache-2.0
/*
 * cupti_internal.h - what the files of preload/cupti need of each other and tee.c need not know
 */
#ifndef KP_CUPTI_INTERNAL_H
#define KP_CUPTI_INTERNAL_H

#include "preload/cupti/cupti.h"
#include "preload/cupti/decode.h"

/* --- cupti_find.c: the driver, and questions to it that change nothing --- */

struct kp_driver {
    int (*device_count)(int *count);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*device_name)(char *name, int bytes, int device);
    int (*device_memory)(size_t *bytes, int device);
    int (*device_uuid)(uint8_t uuid[16], int device);
    int (*version)(int *version);
};
extern struct kp_driver kp_driver;
enum kp_found { KP_FOUND_NOTHING, KP_FOUND_STUB, KP_FOUND_DRIVER };
enum kp_found kp_driver_find(void); /* libcuda.so.1 in the link map; never loads it. Loader calls, not in a hook. */
int kp_runtime_version(void);       /* of the libcudart in the process; 0: none */
/* The n-th place where the libcupti of a cudart at `folder` may lie; 0: no more. Pure. */
size_t kp_cupti_place(unsigned n, const char *folder, int major, char *out, size_t bytes);

/* --- probe.c --- */

extern uint16_t kp_sizes[KP_CUPTI_KINDS];
/* Learns them. NULL, or why this CUPTI cannot be decoded. */
const char *kp_probe_sizes(void);

/* --- rules.c --- */

void kp_rules_set(uint32_t version);
uint32_t kp_rules_all(void); /* KP_CUPTI_REFUSE, ... of kp_cuptirule.h; 0 before the version is known */
/* KP_CUPTI_EARLY: to be enabled for a moment before the program may capture a graph, whatever the schedule says. Any
 * thread. */
bool kp_rules_want_touch(void);
bool kp_rules_forbid_arming(void); /* says so and sets the state */
bool kp_rules_forbid_more(void);   /* while ARMED: graphs came up, and it is not the first window */
void kp_rules_tell_end(void);      /* disarmed, for that */
void kp_rules_session(void);       /* CUPTI begins to record, for us or for the program. Any thread */
void kp_rules_finalized(void);     /* by the program */

/* --- graphs.c --- */

void kp_graphs_attach(void); /* what begins a capture is tapped; again whenever modules came */
void kp_graphs_see(void);    /* hot: one was seen */
bool kp_graphs_are_used(void);

/* --- callnames.c: CUPTI's names of calls --- */

enum { KP_CALL_NOISE = 1, KP_CALL_LAUNCH = 2, KP_CALL_CAPTURE_BEGINS = 4, KP_CALL_CAPTURE_ENDS = 8 };
struct kp_call {
    const char *name; /* without _vNNNN: `len` bytes of it count; belongs to libcupti, which stays */
    uint16_t len;
    uint16_t what;       /* KP_CALL_* */
    _Atomic uint32_t id; /* in the spool; 0: not interned yet */
};
enum { KP_CALLS = 1536 };
extern struct kp_call kp_calls[2][KP_CALLS]; /* [is_driver][cbid] */
void kp_calls_fill(void);                    /* once, when arming first */
/* Length without the version, and what sort of call it is. Pure. */
size_t kp_call_length(const char *name);
uint32_t kp_call_sort(bool is_driver, const char *name, size_t len);

/* --- lane.c --- */

int kp_lane_setup(void);              /* opens the lanes, once. 0 or -ENOMEM */
void kp_lane_collect(uint32_t cycle); /* records go to chunks of this cycle from here on */
void kp_lane_close(uint32_t cycle);   /* nothing more is put into its chunks */
void kp_lane_allow_wait(
    bool may); /* this thread may wait for the writer (default: yes); tee: not in the host's FlushAll */
void kp_lane_forget_work(void);          /* what was launched and never seen to run is not waited for any more */
uint64_t kp_lane_launched(void);         /* kernels, as far as decoded */
bool kp_lane_has_run(uint64_t launched); /* so many kernels ran, or as many as were launched */
uint64_t kp_lane_records(void);          /* decoded so far: moves while anything arrives */
uint64_t kp_lane_kernels(void);
uint64_t kp_lane_timeless(void); /* kernels that CUPTI gave without times */
/* Most of the first kernels did not look like kernels: the layout is not what we think. at_end: no more will come. */
bool kp_lane_is_doubtful(bool at_end);
void kp_lane_write_notes(void); /* counters of what was invalid, late, lost: as notes, when they changed */
void kp_lane_count_lost(const uint8_t *buffer,
                        size_t valid_bytes); /* a discarded buffer: its records are lost, by kind */
extern _Atomic bool kp_lane_ids_are_tids;    /* CUPTI was told to name threads by their tid */
extern _Atomic bool kp_lane_looks;           /* KP_CUPTI_LOOK: a kernel's name may be gone */

/* --- buffer.c --- */

int kp_buffer_setup(void);                  /* reserves the pool, once. 0 or -errno */
void kp_buffer_warm(void);                  /* the first buffers are made resident: not on the host's threads */
uint64_t kp_buffer_mark(void);              /* buffers handed out from here on are younger */
bool kp_buffer_is_older_out(uint64_t mark); /* one handed out before the mark is still with CUPTI */
bool kp_buffer_any_asked(void);             /* CUPTI ever asked for one: before that nothing is to be flushed */
/* We have nothing enabled from here on (false: again). What CUPTI asks for then, when the program has nothing either,
 * is counted. */
void kp_buffer_quiet(bool begins);
void kp_buffer_write_notes(void); /* that count; any thread that may write notes */

/* --- domain.c: CUPTI's clock and ours --- */

struct kp_domain {
    uint32_t number;
    uint64_t device; /* a value of it, to know its stamps by */
};
void kp_domain_sample(void); /* a DEVCLOCK record; helper thread, or the one that arms */
void kp_domain_next(void);   /* another clock from here on */
void kp_domain_prepare(
    void); /* something is about to be enabled. With torch here, for the first time: our own clock is registered */
void kp_domain_forget(void);           /* CUPTI was finalized: its clock is its own again */
uint32_t kp_domain_of(uint64_t stamp); /* whose stamp this is; any thread */

/* --- devices.c --- */

void kp_device_write_all(void);                        /* a DEVICE record each, from the driver */
void kp_device_write(const struct kp_decoded *device); /* from CUPTI, if the driver did not tell */
void kp_context_write(const struct kp_rec_context *context);

/* --- kinds.c: what we have of CUPTI (and cupti.h) --- */

enum { KP_KINDS_SINGLY = 0 };        /* in its place for no kind: calls are set one by one, the driver's have no kind */
void kp_kinds_add(uint32_t kind);    /* before it is enabled */
bool kp_kinds_remove(uint32_t kind); /* before it is disabled. false: it was not there */
void kp_kinds_forget(void);          /* CUPTI was finalized: nothing is enabled any more */
void kp_kinds_add_dropped(uint64_t records);
void kp_kinds_set_queries_off(bool are_off);
bool kp_kinds_are_queries_off(void);

/* --- filter.c: calls that CUPTI records one by one --- */

enum kp_filter_now {
    KP_FILTER_ALL_ON,
    KP_FILTER_ALL_OFF,
    KP_FILTER_AS_SET
}; /* their kind was enabled, disabled, left alone just now */
typedef int (*kp_filter_set_fn)(bool is_driver, uint32_t cbid, bool enabled);
/* Each call of the domain that either side wants is on afterwards, of those we or the program choose singly no other.
 * 0, or what the last one that failed answered. */
int kp_filter_apply(bool is_driver, enum kp_filter_now now, kp_filter_set_fn set);

/* --- control.c: every call that changes something in CUPTI; on the thread kprof-cuda alone --- */

int kp_control_arm(void); /* 0: ARMED. Refusals set the state and say so. */
void kp_control_disarm(bool is_forced);
void kp_control_flush(bool is_forced);
void kp_control_stop(void);    /* no new records; those under way still come. A disarm follows. */
void kp_control_recover(void); /* a call that took too long has returned: all that may be enabled is disabled */

/* --- aside.c: KPROF_CUPTI=yield --- */

int kp_aside_left_ms(void);     /* we must not touch CUPTI for so long; INT_MAX: nobody knows, 0: we may */
void kp_aside_say(bool begins); /* on kprof-cuda; says it once, counts how often in a note */

/* --- other.c --- */

void kp_other_tool(char *out, size_t bytes);            /* who has CUPTI, for the line that says so */
const char *kp_other_tool_in(char *const *environment); /* what the environment tells of that. Pure. */

/* --- helper.c --- */

enum { KP_CUPTI_HELPER_HANG_MS = 4000, KP_CUPTI_HELPER_STALLS_SAID = 3, KP_CUPTI_HELPER_END = -1 };
struct kp_cupti_helper_turns {
    int (*turn)(void); /* does what there is to do; for how long to sleep then, or KP_CUPTI_HELPER_END. With control */
    bool (*has_work)(void); /* any thread */
};
extern const struct kp_cupti_helper_turns kp_turns;                       /* turns.c */
void kp_cupti_helper_set_turns(const struct kp_cupti_helper_turns *what); /* once, before all else */
/* What was asked of the thread, and how it went. */
struct kp_cupti_helper {
    _Atomic uint64_t drain_asked, drain_done; /* ends of windows, ticks */
    _Atomic uint64_t rest_until_ms;           /* not armed before */
    _Atomic uint32_t rest_cycle;              /* in this window; 0: in any */
    _Atomic uint32_t stalls, stalled_cycle;   /* how many calls took too long; which window the last one began in */
    _Atomic uint32_t limited_cycle;           /* the window that had its limit; 0: none */
    _Atomic uint32_t poll_is_over;            /* cuInit did not come for long */
};
extern struct kp_cupti_helper kp_cupti_helper;
void kp_cupti_helper_ask_drain(uint64_t end_ticks);
void kp_cupti_helper_want(bool armed); /* any thread, microseconds */
bool kp_cupti_helper_is_wanted(void);
void kp_cupti_helper_wake(void);
void kp_cupti_helper_rest(bool begins); /* CUPTI was finalized: arms in a moment, or (false) when it is used again */
/* Any thread: a call that was made KP_CUPTI_HELPER_HANG_MS ago and has not returned is STALLED, with a line. true:
 * wait for nothing of CUPTI. */
bool kp_cupti_helper_check(void);
bool kp_cupti_helper_has_stalled(void); /* ever */
bool kp_cupti_helper_is_drained(uint64_t end_ticks);
/* At the host's exit() what is under way is fetched, or a beginning arming waited for. false: that exit is over, do not
 * arm. */
bool kp_cupti_helper_register_exit(bool is_armed);

/* --- watchdog.c --- */

struct kp_watchdog {
    _Atomic uint64_t call_since_ms; /* a call into CUPTI is being made since; 0: none */
    uint64_t stalled_ms;            /* how long the last one took; with control */
    /* exit_turn calls until then, so that no call is under way when exit goes on; with control */
    uint64_t exit_calls_until_ms;
    bool is_recovering; /* with control */
};
extern struct kp_watchdog kp_watchdog; /* the last two are helper.c's to change */
/* Brackets a CUPTI call, so that one that takes too long is seen from outside. false: do not call. */
bool kp_watchdog_call_begins(void);
void kp_watchdog_call_ends(void);
bool kp_watchdog_take_control(void); /* so that calls into CUPTI of ours come one behind another */
void kp_watchdog_give_control(void);
uint64_t kp_watchdog_call_ms(void); /* for how long the call has been made that is under way; 0: none is */

/* --- cupti_state.c --- */

extern _Atomic uint32_t kp_cupti_exit_asked; /* the host is in exit(): helper.c's */
bool kp_cupti_may_call(void); /* any thread: calls of ours are possible, so what is enabled will be disabled */
void kp_cupti_set_config(const struct kp_config *settings);
const struct kp_config *kp_cupti_config(void); /* NULL: not yet */
void kp_cupti_notes_write(void);               /* those that wait, when there is a spool */
bool kp_cupti_was_used(void);                  /* cuInit succeeded */
bool kp_cupti_disarm_finalized(void);          /* ARMED -> CUPTI_FOUND; true: it was armed, or shared */

void kp_cupti_set_state(enum kp_cupti_state state);
bool kp_cupti_stall(void);   /* STALLED, where calls into CUPTI are made; false: it is already, or they are not */
void kp_cupti_unstall(void); /* STALLED -> CUPTI_FOUND */
void kp_cupti_count_cut(
    uint32_t
        cycle); /* GPU work of this window is missing because CUPTI took too long. Any thread, in order of cycles. */
void kp_cupti_refuse(const char *why); /* REFUSED, one line, a note; the fallback is switched on */
void kp_cupti_leave(
    const char
        *why); /* as that, where hooks would put events of ours into another tool's records: nothing else records */
void kp_cupti_end(const char *why); /* as that, of a CUPTI that was used */
void kp_cupti_note(const char *key, const char *value);
bool kp_cupti_wants_waits(void);  /* KPROF_CUDA_SYNC */
bool kp_cupti_has_schedule(void); /* somebody said how long */
bool kp_cupti_has_torch(void);    /* torch.profiler may come: CUPTI's ids of threads stay as they are */
bool kp_cupti_see_driver(void);   /* ABSENT -> DRIVER_LOADED when libcuda.so.1 is there */
bool kp_cupti_see_cuinit(void);   /* DRIVER_LOADED -> CUINIT_OK when cuInit succeeded; no CUPTI call */

#endif

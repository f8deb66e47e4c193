// SPDX-License-Identifier: Apache-2.0
/*
 * cupti_internal.h - what the files of preload/cupti share, except tee.c's interface (cupti.h)
 */
#pragma once

#include "preload/cupti/library/cupti.h"
#include "preload/cupti/library/decode.h"

/* --- cupti_find.c: the driver, and queries to it that change nothing --- */

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
/* Looks for libcuda.so.1 in the link map and never loads it. Makes loader calls, so not in a hook. */
enum kp_found kp_driver_find(void);
int kp_runtime_version(void); /* version of the process's libcudart; 0: none */
/* Writes the n-th path to try for the libcupti of a libcudart in `folder`. Returns its length; 0: no more. Pure. */
size_t kp_cupti_place(unsigned n, const char *folder, int major, char *out, size_t bytes);

/* --- probe.c --- */

extern uint16_t kp_sizes[KP_CUPTI_KINDS]; /* bytes of a record, by kind */
/* Fills kp_sizes. Returns NULL, or why this CUPTI's records cannot be decoded. */
const char *kp_probe_sizes(void);

/* --- rules.c --- */

void kp_rules_set(uint32_t version);
uint32_t kp_rules_all(void); /* KP_CUPTI_REFUSE, ... of kp_cuptirule.h; 0 before the version is known */
/* Must CUPTI be enabled briefly before the program can capture a graph (KP_CUPTI_EARLY), whatever the schedule says?
 * Any thread. */
bool kp_rules_want_touch(void);
bool kp_rules_forbid_arming(void); /* if true, it has logged why and set the state */
bool kp_rules_forbid_more(void);   /* while ARMED: the program uses graphs, and this is not CUPTI's first session */
void kp_rules_tell_end(void);      /* after that disarm: logs the reason */
void kp_rules_session(void);       /* CUPTI begins to record, for us or for the program. Any thread */
void kp_rules_finalized(void);     /* the program called cuptiFinalize */

/* --- graphs.c --- */

void kp_graphs_attach(void); /* taps the functions that begin a capture; call again after modules were loaded */
void kp_graphs_see(void);    /* hot: the program uses a graph */
bool kp_graphs_are_used(void);

/* --- callnames.c: CUPTI's names of CUDA calls --- */

enum { KP_CALL_NOISE = 1, KP_CALL_LAUNCH = 2, KP_CALL_CAPTURE_BEGINS = 4, KP_CALL_CAPTURE_ENDS = 8, KP_CALL_ASKS = 16 };
struct kp_cupti_call {
    const char *name; /* libcupti's string, which stays mapped; only `len` bytes of it, without _vNNNN */
    uint16_t len;
    uint16_t what;       /* KP_CALL_* */
    _Atomic uint32_t id; /* of the name in the spool; 0: not interned yet */
};
enum { KP_CALLS = 1536 };
extern struct kp_cupti_call kp_calls[2][KP_CALLS]; /* [is_driver][cbid] */
void kp_calls_fill(void);                          /* call once, at the first arming */
/* Length of a name without its version, and its KP_CALL_* bits. Pure. */
size_t kp_call_length(const char *name);
uint32_t kp_call_sort(bool is_driver, const char *name, size_t len);

/* --- lane.c --- */

int kp_lane_setup(void);              /* opens the lanes, once. 0 or -ENOMEM */
void kp_lane_collect(uint32_t cycle); /* records go to chunks of this cycle from here on */
uint32_t kp_lane_recorded(void);      /* the latest cycle that recorded; 0: none */
void kp_lane_close(uint32_t cycle);   /* no record goes to chunks of this cycle any more */
bool kp_lane_is_open(void);           /* is a window open for GPU records, or are we armed? */
/* Stops waiting for kernels that were launched and never ran, and forgets captures that have not ended. */
void kp_lane_forget_work(void);
uint64_t kp_lane_launched(void);         /* kernel launches decoded so far, less those given up */
bool kp_lane_has_run(uint64_t launched); /* have that many kernels run, or as many as were launched? */
uint64_t kp_lane_records(void);          /* records decoded so far */
uint64_t kp_lane_kernels(void);
uint64_t kp_lane_timeless(void); /* kernels that CUPTI gave without times */
/* Did most of the first kernels fail the check? Then the layout is probably wrong. at_end: no more will come. */
bool kp_lane_is_doubtful(bool at_end);
void kp_lane_write_notes(void); /* counts of invalid, late and lost records, if changed; kprof-cuda alone */
uint64_t kp_lane_count_lost(const uint8_t *buffer, size_t valid_bytes); /* counts records as lost, by kind. How many */
/* Counts the fewest records that so many bytes may hold as lost. All counts of losses are lower bounds from then on. */
void kp_lane_count_least(size_t bytes);
bool kp_lane_is_least(void);              /* was that called? */
extern _Atomic bool kp_lane_ids_are_tids; /* CUPTI was told to name threads by their tid */
extern _Atomic bool kp_lane_looks;        /* KP_CUPTI_LOOK: a kernel's name may be unmapped */

/* --- buffer.c --- */

enum { KP_BUFFERS = 512 };
int kp_buffer_setup(void);                   /* reserves the pool, once. 0 or -errno */
void kp_buffer_warm(void);                   /* makes the first buffers resident; not on a host thread */
uint64_t kp_buffer_mark(void);               /* buffers handed out from here on are younger */
bool kp_buffer_is_older_out(uint64_t mark);  /* does CUPTI still have a buffer that was handed out before the mark? */
bool kp_buffer_is_older_left(uint64_t mark); /* or is one of them not decoded yet? */
bool kp_buffer_any_asked(void);              /* has CUPTI ever requested a buffer? If not, there is nothing to flush */
/* Decodes completed buffers for so long at most. On kprof-cuda, with control; may wait for the writer. */
void kp_buffer_work(uint32_t most_ms);
bool kp_buffer_has_work(void); /* any thread */
void kp_buffer_sweep(void);    /* on kprof-cuda, before it arms: counts what was lost so, and frees those buffers */
/* true: we have nothing enabled from here on; false: we have. Counts the buffers that CUPTI requests while neither we
 * nor the program have anything enabled. */
void kp_buffer_quiet(bool begins);
void kp_buffer_write_notes(void); /* writes that count; any thread that may write notes */

/* --- bufferqueue.c: completed buffers, by their index in the pool --- */

void kp_bufferqueue_put(uint32_t index);
bool kp_bufferqueue_take(uint32_t *index); /* the oldest; false: none. On kprof-cuda, with control */
bool kp_bufferqueue_is_empty(void);

/* --- cupti_clock.c: CUPTI's clock beside ours --- */

void kp_domain_sample(void);           /* writes a DEVCLOCK record; with control */
void kp_domain_next(void);             /* CUPTI uses another clock from here on */
void kp_domain_prepare(void);          /* before the first Enable: with torch, registers our clock at CUPTI */
void kp_domain_forget(void);           /* CUPTI was finalized and uses its own clock again */
uint32_t kp_domain_of(uint64_t stamp); /* number of the timestamp's domain; any thread */

/* --- devices.c --- */

void kp_device_write_all(void);                        /* a DEVICE record for each device, from the driver */
void kp_device_write(const struct kp_decoded *device); /* from CUPTI, if the driver gave none */
void kp_context_write(const struct kp_rec_context *context);

/* --- enabled.c: the kinds that we have enabled (see cupti.h) --- */

void kp_kinds_add(uint32_t kind);    /* call before enabling it */
bool kp_kinds_remove(uint32_t kind); /* call before disabling it. false: it was not enabled */
void kp_kinds_forget(void);          /* CUPTI was finalized: nothing is enabled any more */
void kp_kinds_add_dropped(uint64_t records);
void kp_kinds_set_queries_off(bool are_off);
bool kp_kinds_are_queries_off(void);

/* --- filter.c: calls that CUPTI records one by one --- */

enum kp_filter_now { KP_FILTER_ALL_ON, KP_FILTER_ALL_OFF, KP_FILTER_AS_SET }; /* last done to their kind */
typedef int (*kp_filter_set_fn)(bool is_driver, uint32_t cbid, bool enabled);
/* Enables each call of the domain that either side wants. No other call that a side chose singly stays on. 0, or
 * CUPTI's last error. */
int kp_filter_apply(bool is_driver, enum kp_filter_now now, kp_filter_set_fn set);

/* --- control.c: our calls that change something in CUPTI; on the thread kprof-cuda alone --- */

int kp_control_arm(void); /* 0: ARMED. A refusal sets the state and is logged. */
void kp_control_disarm(bool is_forced);
void kp_control_flush(bool is_forced);
void kp_control_stop(void);    /* ends new records; those under way still arrive. A disarm must follow. */
void kp_control_recover(void); /* a stalled call has returned: disables all that may be enabled */

/* --- aside.c: KPROF_CUPTI=yield --- */

int kp_aside_left_ms(void);     /* ms until we may use CUPTI again; 0: we may now; INT_MAX: not known */
void kp_aside_say(bool begins); /* on kprof-cuda; logs it once, counts in a note how often */

/* --- other_tool.c --- */

void kp_other_tool(char *out, size_t bytes); /* name of the tool that holds CUPTI */

/* --- helper.c --- */

enum { KP_CUPTI_HELPER_HANG_MS = 4000, KP_CUPTI_HELPER_STALLS_SAID = 3, KP_CUPTI_HELPER_END = -1 };
struct kp_cupti_helper_turns {
    int (*turn)(void);      /* does what is due, with control. Returns ms to sleep, or KP_CUPTI_HELPER_END */
    bool (*has_work)(void); /* any thread */
};
extern const struct kp_cupti_helper_turns kp_turns;                       /* cuda_thread.c */
void kp_cupti_helper_set_turns(const struct kp_cupti_helper_turns *what); /* call once, before all else */
/* Requests to the thread kprof-cuda, and their results. */
enum { KP_CUPTI_HELPER_ON, KP_CUPTI_HELPER_CUT, KP_CUPTI_HELPER_OFF };
struct kp_cupti_helper {
    _Atomic uint64_t drain_asked, drain_done; /* ends of windows, in ticks */
    _Atomic uint64_t rest_until_ms;           /* the thread does not arm before */
    _Atomic uint32_t rest_cycle;              /* the window that this holds for; 0: any */
    _Atomic uint32_t stalls, stalled_cycle;   /* how many calls stalled; the window in which the last one began */
    _Atomic uint32_t off;                     /* KP_CUPTI_HELPER_CUT: to be disabled within a window; OFF: it is */
    _Atomic uint32_t limited_cycle;           /* the window that reached a limit; 0: none */
    _Atomic uint32_t poll_is_over;            /* the thread stopped polling for cuInit */
    _Atomic uint64_t off_due_ms;              /* since when all kinds are to be disabled; 0: they are not */
    _Atomic uint32_t at_step;                 /* threads that wait for that at the end of a step */
};
extern struct kp_cupti_helper kp_cupti_helper;
void kp_cupti_helper_ask_drain(uint64_t end_ticks);
void kp_cupti_helper_want(bool armed); /* any thread, microseconds */
/* The window goes on without GPU work: disables at once what records it, while kp_cupti_helper_want drains first. */
void kp_cupti_helper_cut(void);
/* Is that still to be done; or, once it is wanted again, not yet undone? */
bool kp_cupti_helper_is_turning(void);
bool kp_cupti_helper_is_wanted(void);
void kp_cupti_helper_wake(void);
/* Will the thread look for work soon? false: it does not run, or a call of it has stalled. Any thread. */
bool kp_cupti_helper_comes(void);
/* true: CUPTI was finalized, so arm again only after a rest. false: the program uses CUPTI again, so the rest ends. */
void kp_cupti_helper_rest(bool begins);
/* Sets STALLED and logs it if a call lasts KP_CUPTI_HELPER_HANG_MS. true: wait for nothing of CUPTI. Any thread. */
bool kp_cupti_helper_check(void);
bool kp_cupti_helper_has_stalled(void); /* has any call stalled so far? */
bool kp_cupti_helper_is_drained(uint64_t end_ticks);
/* The host's exit() then fetches the last records, or waits until an arming is over. false: the handler could not be
 * registered, or the gate is shut. Do not arm then. */
bool kp_cupti_helper_register_exit(bool is_armed);

/* --- watchdog.c --- */

struct kp_watchdog {
    _Atomic uint64_t call_since_ms; /* when the CUPTI call under way began; 0: none is */
    uint64_t stalled_ms;            /* how long the last call took; with control */
    uint64_t exit_calls_until_ms;   /* during the host's exit no call begins after this time; with control */
    bool is_recovering;             /* calls are allowed in STALLED; with control */
};
extern struct kp_watchdog kp_watchdog; /* cuda_thread.c changes the last two */
/* These enclose each CUPTI call, so that another thread sees how long it takes. false: do not call. */
bool kp_watchdog_call_begins(void);
void kp_watchdog_call_ends(void);
bool kp_watchdog_take_control(void); /* tries once; one thread at a time may make our CUPTI calls */
void kp_watchdog_give_control(void);
uint64_t kp_watchdog_call_ms(void); /* age of the CUPTI call under way; 0: none is */

/* --- cupti_state.c --- */

extern _Atomic uint32_t kp_cupti_exit_asked; /* the host is in exit(); helper.c sets it */
bool kp_cupti_may_call(void);                /* any thread: we can call CUPTI, so what we enabled will be disabled */
void kp_cupti_set_config(const struct kp_config *settings);
const struct kp_config *kp_cupti_config(void); /* NULL: not yet */
void kp_cupti_notes_write(void);               /* writes the pending notes, if there is a spool */
bool kp_cupti_was_used(void);                  /* has cuInit succeeded? */
bool kp_cupti_disarm_finalized(void);          /* ARMED -> FOUND; true: it was ARMED or SHARED */

void kp_cupti_set_state(enum kp_cupti_state state);
bool kp_cupti_stall(void);   /* CUINIT_OK, FOUND or ARMED -> STALLED; false: it is in another state */
void kp_cupti_unstall(void); /* STALLED -> FOUND */
/* GPU work of this window is missing because CUPTI took too long. Any thread, in the order of cycles. */
void kp_cupti_count_cut(uint32_t cycle);
void kp_cupti_refuse(const char *why); /* REFUSED, with a log line and a note; the fallback takes over */
/* As kp_cupti_refuse, but without the fallback: its events would appear in another tool's records. */
void kp_cupti_leave(const char *why);
void kp_cupti_end(const char *why); /* as kp_cupti_refuse, for a CUPTI that has recorded; no fallback */
void kp_cupti_note(const char *key, const char *value);
bool kp_cupti_wants_waits(void);  /* KPROF_CUDA_SYNC */
bool kp_cupti_has_schedule(void); /* KPROF_SCHEDULE is set */
bool kp_cupti_has_torch(void);    /* libtorch is mapped: torch.profiler needs CUPTI's default thread ids */
bool kp_cupti_see_driver(void);   /* ABSENT -> DRIVER_LOADED if libcuda.so.1 is mapped */
bool kp_cupti_see_cuinit(void);   /* DRIVER_LOADED -> CUINIT_OK if cuInit has succeeded; no CUPTI call */

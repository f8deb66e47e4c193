// SPDX-License-Identifier: Apache-2.0
/*
 * simcupti.h - the inside of the simulated libcupti: what its files share
 *
 *   setup.c     settings, version, log, faults, errors before the driver is up
 *   clock.c     time as CUPTI tells it: CLOCK_REALTIME or the client's callback
 *   buffer.c    the client's buffers: reserve, complete, deliver; the worker
 *   record.c    the core's reports of calls and work become records
 *   objects.c   those of waits, memory, contexts, streams, devices
 *   callback.c  subscribers and their callbacks
 *   activity.c  the activity API (v1)    v2.c  its second form, 13.2+
 *   names.c     names, walker, sizes, ids
 *   stubs.c     the exports that are not simulated
 *
 * One lock guards all of it; it is never held while a client is called. Nothing here is fast.
 *
 * Settings, all from the environment, read at the first call:
 *   SIMCUPTI_VERSION=17|18|20..28|130000|130001|...|130401|130500   what it pretends to be (default by soname: 18, 27,
 *   130200) SIMCUPTI_KEEP_SYMBOLS=1   leave functions in the symbol table that this version does not have
 *   SIMCUPTI_LOG=FILE         one JSON line a call: who called what, with which answer; "request": the client is asked
 *                             for a buffer; both that and "exit" tell what is on: kinds, and how many calls singly,
 *                             without their kind
 *   SIMCUPTI_DUMP=FILE        the valid bytes of every buffer as it was handed over, one behind the other
 *   SIMCUPTI_CRASH_EARLY=1    any call before cuInit succeeded ends in SIGSEGV (13.2)
 *   SIMCUPTI_CRASH_NULL=1     a NULL buffer ends in SIGSEGV when the version is below 27
 *   SIMCUPTI_FAIL=FUNCTION:N:CODE[,...]   the N-th call (0: each) of FUNCTION answers CODE
 *   SIMCUPTI_HANG=WORD[,...]  a function whose name has WORD never returns; "exit": FlushAll hangs once the exit
 *                             handlers ran that were there before something was enabled;
 *                             "fork": FlushAll hangs in a child of a process that had enabled something
 *   SIMCUPTI_SLOW=WORD:MS[:N] a function whose name has WORD takes so long; only its N-th call
 *   SIMCUPTI_STUCK=1          calls go on being recorded when their kind was disabled
 *   SIMCUPTI_SINGLES=1        a call enabled singly is recorded without its kind, as the header says; else as 13.0.85
 *                             did on an H200: with its kind alone
 *   SIMCUPTI_SYNC=WORD[,...]  a function whose name has WORD first waits until all work that is recorded has ended
 *   SIMCUPTI_CRASH_EXIT=1     a thread of the process that enabled something is still inside CUPTI when it takes itself
 *                             down: SIGSEGV
 *   SIMCUPTI_LATE_MS=N        GPU records are complete only N ms after the work ended
 *   SIMCUPTI_SHUFFLE=1        ready buffers are handed over in another order
 *   SIMCUPTI_HOLES=N          before every N-th record lies a zeroed one
 *   SIMCUPTI_TRUNCATE=1       the last record of each buffer is cut in half
 *   SIMCUPTI_DROP=N           every N-th record is dropped and counted
 *   SIMCUPTI_ZERO_EVERY=N     every N-th kernel has no timestamps (device buffers used up)
 *   SIMCUPTI_STALE_NS=N       after an idle of 100 ms GPU times are N ns too early for 10 ms (with a timestamp
 *                             callback)
 *   SIMCUPTI_ODD=N            the N-th kernel has no grid, as a node of a graph that was updated from the device
 *   SIMCUPTI_LATCH=1          times of the GPU stay in the clock that was registered when a kind was enabled first
 *                             (pytorch#190346), and each further registration costs one kernel its time: it has one of
 *                             CLOCK_REALTIME (pytorch#192021)
 *   SIMCUPTI_AMID=1           a thread that is inside a call while a kind is disabled keeps that call's correlation:
 *                             its later calls and kernels have it (13.0.85 did so)
 *   SIMCUPTI_OTHER_TOOL=NAME  somebody subscribed before
 *   SIMCUPTI_V2_USED=1        somebody uses the v2 activity API: v1 answers 14
 *   SIMCUPTI_REPLACED=own|lost  what becomes of buffers when another registers: its owner's callback gets them, or
 *                               nobody
 *                             (default: the new one's; what the real one does is not known)
 *   SIMCUPTI_INVISIBLE=N      the machine has N more devices, which CUDA_VISIBLE_DEVICES hides: their records tell so
 *   SIMCUPTI_MULTI=0          13.2+: a second v2 subscriber is refused even if both allow it
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/doubles/simgpu/cupti/layout.h"
#include "test/doubles/simgpu/simgpu.h"

#define CUPTI_API __attribute__((visibility("default")))
/* The exports are CUPTI's: no header of ours declares them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum {
    CUPTI_OK = 0,
    CUPTI_INVALID_PARAMETER = 1,
    CUPTI_INVALID_OPERATION = 7,
    CUPTI_PARAMETER_SIZE_NOT_SUFFICIENT = 10,
    CUPTI_MAX_LIMIT_REACHED = 12,
    CUPTI_NOT_COMPATIBLE = 14,
    CUPTI_NOT_INITIALIZED = 15,
    CUPTI_QUEUE_EMPTY = 18,
    CUPTI_INVALID_KIND = 21,
    CUPTI_NOT_SUPPORTED = 27,
    CUPTI_MULTIPLE_SUBSCRIBERS = 39,
    CUPTI_UNKNOWN = 999,
};

typedef void (*simcupti_request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*simcupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void (*simcupti_request_v2_fn)(uint8_t **buffer, size_t *size, size_t *max_records, void *info);
typedef void (*simcupti_complete_v2_fn)(uint8_t *buffer, size_t size, size_t valid, void *info);
typedef uint64_t (*simcupti_time_fn)(void);
typedef void (*simcupti_callback_fn)(void *user, int domain, uint32_t cbid, const void *data);

struct simcupti_settings {
    uint32_t version;
    int layout; /* index into layout_sizes */
    bool crash_early, crash_null, shuffle, truncate, v2_used, is_multi_allowed, stuck, singles, latch, amid, crash_exit;
    uint32_t holes, drop, zero_every, late_ms, odd, invisible;
    uint64_t stale_ns;
    enum { REPLACED_NEW, REPLACED_OWN, REPLACED_LOST } replaced;
    const char *fail, *hang, *slow, *sync, *other_tool;
    int log_fd, dump_fd;
};

#define CBID_WORDS 40 /* 1280 callback ids */

struct simcupti_state {
    simcupti_request_fn request;
    simcupti_complete_fn complete;
    simcupti_request_v2_fn request_v2;
    simcupti_complete_v2_fn complete_v2;
    simcupti_time_fn clock, first_clock;
    bool is_latched;  /* first_clock is what was registered when a kind was enabled first */
    unsigned spoiled; /* kernels still to get a time of another clock */
    bool kinds[KIND_COUNT];
    signed char filter[3][CBID_WORDS * 32]; /* [domain][cbid]: 0 as its kind, 1 on (SIMCUPTI_SINGLES), -1 off */
    bool is_graph_level;                    /* sticks */
    bool has_resource_overhead;
    uint64_t attributes[32];
    uint32_t thread_id_type, flush_period_ms;
    bool event_timestamps, latency_timestamps, allocation_source, ready_syncs_only;
    bool v1_used, v2_used;
    size_t dropped;
    int armed_pid; /* who enabled something */
};

extern struct simcupti_settings simcupti_set;
extern struct simcupti_state simcupti;
extern pthread_mutex_t simcupti_lock;
extern _Thread_local int simcupti_in_client; /* this thread is in a callback of the client */

/* --- setup.c --- */
extern int simcupti_inside; /* threads that are in a function of CUPTI */
enum { CALL_FREE = 0, CALL_GPU = 1, CALL_V1 = 2, CALL_QUIET = 4, CALL_STUB_FAILS = 8 };
#define GO_ON (-1)
int simcupti_call(const char *name, int flags);
int simcupti_answer(const char *name, int flags, uint64_t a, uint64_t b, int answer);
/* The body of an exported function: checks, faults, the work, the log. */
#define API(flags, a, b, work)                                 \
    __atomic_add_fetch(&simcupti_inside, 1, __ATOMIC_RELAXED); \
    int answer = simcupti_call(__func__, flags);               \
    if (answer == GO_ON) answer = (work);                      \
    __atomic_sub_fetch(&simcupti_inside, 1, __ATOMIC_RELAXED); \
    return simcupti_answer(__func__, flags, (uint64_t)(uintptr_t)(a), (uint64_t)(uintptr_t)(b), answer)
const struct simgpu_core *simcupti_core(void); /* NULL: no simulated driver here */
bool simcupti_is_up(void);
bool simcupti_has(const char *function); /* in this version */
void simcupti_hang(void) __attribute__((noreturn));
bool simcupti_hangs(const char *word);
int simcupti_no_gpu(void); /* 15 or 999 */
void simcupti_log_request(void);

/* --- clock.c --- */
uint64_t simcupti_now(void);                 /* as a record of the CPU would tell it */
uint64_t simcupti_host(uint64_t host_ns);    /* an API's time: the callback called now, or host_ns as CLOCK_REALTIME */
uint64_t simcupti_gpu(uint64_t host_ns);     /* a time of the GPU, through the samples */
uint64_t simcupti_spoiled(uint64_t host_ns); /* as it is when a clock was registered again */
void simcupti_clock_latch(void);             /* a kind is enabled */
void simcupti_clock_sample(void);
void simcupti_clock_set(simcupti_time_fn clock);
uint32_t simcupti_thread_id(void);

/* --- buffer.c --- */
struct simcupti_slot; /* a record that is not complete yet */
/* With the lock held. NULL: dropped, and counted. May let go of the lock for a while (the client is asked for a
 * buffer). */
struct simcupti_slot *simcupti_reserve(uint32_t kind);
/* Where the record lies; NULL when it was handed over unfinished. */
uint8_t *simcupti_record(struct simcupti_slot *slot);
void simcupti_complete(struct simcupti_slot *slot); /* frees the slot */
void simcupti_complete_at(struct simcupti_slot *slot, uint64_t host_ns, void (*fill)(struct simcupti_slot *, void *),
                          void *arg); /* later: fill() writes the rest, on the worker */
int simcupti_flush(bool is_forced);   /* without the lock */
void simcupti_flush_period(uint32_t ms);
void simcupti_buffers_forget(void); /* Finalize: with the lock held */
size_t simcupti_outstanding(void);
void simcupti_worker_start(void);
void simcupti_exit_begins(void);
static inline void simcupti_put(uint8_t *record, struct layout_field field, uint64_t value)
{
    if (!record || field.since > simcupti_set.layout) return;
    for (int i = 0; i < field.size && i < 8; i++) record[field.offset + i] = (uint8_t)(value >> (8 * i));
}

/* --- record.c --- */
void simcupti_observe(void); /* tells the core that we want to know */
void simcupti_catch_up(void);
void simcupti_wait_for_work(void); /* perhaps for ever */
int simcupti_push(uint32_t kind, uint64_t id);
int simcupti_pop(uint32_t kind, uint64_t *id);
void simcupti_external_forget(void);

/* --- objects.c --- */
int simcupti_dump(uint32_t kind); /* what is there already, after EnableAndDump */
void simcupti_on_synced(const struct simgpu_sync *sync);
void simcupti_on_allocated(const struct simgpu_alloc *alloc);
void simcupti_on_context(uint32_t context, uint32_t device, uint32_t null_stream);
void simcupti_on_stream(uint32_t context, uint32_t stream, int32_t priority, uint32_t flag);

/* --- names.c --- */
int simcupti_next_record(uint8_t *buffer, size_t valid, uint8_t **record);

/* --- activity.c: v1 and v2 do it alike --- */
int simcupti_enable(uint32_t kind);
int simcupti_disable(uint32_t kind);
int simcupti_enable_and_dump(uint32_t kind);
int simcupti_enable_call(uint32_t domain, uint32_t cbid, bool is_on);
int simcupti_take_dropped(size_t *dropped);
int simcupti_attribute(uint32_t attribute, size_t *size, void *value, bool is_set);

/* --- callback.c --- */
/* data: what a subscriber may keep from a call's enter to its exit, one word for each subscriber */
enum { SUBSCRIBERS = 4 };
void simcupti_tell_api(const struct simgpu_call *call, bool is_exit, uint64_t *data);
void simcupti_tell_resource(uint32_t cbid, void *stream);
void simcupti_tell_sync(uint32_t cbid);
void simcupti_unsubscribe_all(void);
bool simcupti_is_subscriber(const void *handle);

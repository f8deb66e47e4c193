// SPDX-License-Identifier: Apache-2.0
/*
 * kp_record.h - the door of the write side: puts records into the spool from inside a hook
 *
 * Called by: any host thread inside a hook (put and name are hot); boot and cycle code (open, cycle, close)
 * Owns:      the spool file, its chunks, each thread's write state, the threads kprof-writer and kprof-tick
 * Locks:     none on the hot path
 * Memory:    the hot path allocates only at a thread's first record
 * On fail:   a record that finds no room is dropped and counted by kind and reason. Never blocks, never signals.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_gate.h"
#include "collector/base/kp_hot.h"
#include "collector/format/kp_format.h"

enum {
    KP_STATE_TORCH = 0,
    KP_STATE_SYMBOLS = 1,
    KP_STATE_CUDART = 2,
    KP_STATE_NVTX = 3,
    KP_STATE_PYTHON = 4,
    KP_STATE_NATIVE = 5,
    KP_STATE_HEAP = 6,
    KP_STATE_MARKERS = 7,
    KP_STATE_API = 8,
    KP_STATE_PYSTACKS = 9,
    KP_STATES = 10
};

/* Per-thread write state; sits in arena pages, reached by one initial-exec TLS pointer. Hooks use the first line. */
struct kp_thread {
    _Alignas(KP_LINE) uint8_t *at; /* free room of the current chunk, up to `end` */
    uint8_t *end;
    struct kp_chunk_head *chunk;
    uint32_t chunk_cycle;    /* the current chunk's cycle; 0 without a chunk */
    uint32_t ended;          /* counts finished ranges, for the heap counter */
    _Atomic uint64_t inside; /* not 0 in a hook (re-entry guard, quiesce): 1, or kp_inside_tag of its frame */
    struct kp_strcache *names;
    void *source_state[KP_STATES]; /* indexed by KP_STATE_*; the source allocates its own when it needs it */
    _Atomic uint32_t tid;
    uint32_t thread_no;     /* never reused: shows a source that this struct serves a new thread */
    struct kp_thread *next; /* list of all threads ever seen */
    char name[16];
    _Atomic uint32_t life;                        /* enum below; a dead struct is reused, with its source_state */
    bool is_lane;                                 /* made by kp_lane_open: no thread of the host */
    _Atomic uint64_t pthread_id;                  /* pthread_self(), stored after tid; 0 in a lane or before creation */
    _Alignas(KP_LINE) uint8_t near[33 * KP_LINE]; /* of KP_STATE_TORCH: in the same page, mostly */
};
enum { KP_THREAD_ALIVE = 1, KP_THREAD_DEAD };
_Static_assert(offsetof(struct kp_thread, source_state[KP_STATE_TORCH]) < KP_LINE, "torch's state is hot");

extern _Thread_local struct kp_thread *kp_thread_self __attribute__((tls_model("initial-exec")));
KP_COLD struct kp_thread *kp_thread_create(void); /* of kp_thread_get. NULL: no memory, or the thread exits */
static inline struct kp_thread *kp_thread_get(void)
{
    struct kp_thread *t = kp_thread_self;
    return t ? t : kp_thread_create();
}
/*
 * A lane: a write state that belongs to no thread, for records that CUPTI's threads deliver (kp_device.h). Its chunks
 * are of kind KP_CHUNK_DEVICE. Its user sets `inside` and must be the only one. It is never freed. NULL: no memory.
 * Any thread, not hot.
 */
struct kp_thread *kp_lane_open(const char *name);
/*
 * Called on each host thread that exits. Its hooks pass through by then, and no other thread has its state yet. Set
 * once, or NULL.
 */
extern void (*kp_thread_on_exit)(struct kp_thread *thread);
/*
 * The newest entry in the list of all threads and lanes. Entries are never freed; after a thread's exit a new thread
 * reuses its entry. Any thread.
 */
struct kp_thread *kp_thread_first(void);

/*
 * The address of a hook's frame and the low bits of the return address in it. While memory has both, the hook may
 * run (longjmp.c).
 */
enum { KP_INSIDE_TAG_AT = 48 };
static inline uint64_t kp_inside_tag(const uintptr_t *frame)
{
    return (uintptr_t)frame + ((uint64_t)frame[1] << KP_INSIDE_TAG_AT);
}
/*
 * A hook with this frame (its __builtin_frame_address(0)) enters. True: the thread was in no hook, or in one that a
 * signal handler abandoned by siglongjmp or an exception. All that the abandoned hook had begun is undone. On the
 * thread, not hot, keeps errno.
 */
KP_COLD bool kp_inside_reclaim(struct kp_thread *t, const uintptr_t *frame);
/* A hook passed through: counted, except while the thread's state is created or ended. */
KP_COLD void kp_inside_refused(const struct kp_thread *t);
bool kp_inside_is_abandoned(const struct kp_thread *t); /* the hook that `inside` names is gone. Keeps errno */

/* --- hot path. The caller has set t->inside and read the gate once. --- */

/*
 * Room for one record of at most `bytes` (multiple of 8, <= KP_MAX_RECORD) in a chunk of the gate's cycle. NULL: no
 * room, and the record is counted as lost under `kind`. Only while the gate says RECORD, so not while it warms up.
 */
KP_COLD void *kp_put_slow(struct kp_thread *t, uint64_t gate, uint32_t bytes, enum kp_kind kind);
static inline bool kp_put_has_room(const struct kp_thread *t, uint64_t gate, uint32_t bytes)
{
    return t->chunk_cycle == kp_gate_cycle(gate) && (uintptr_t)(t->end - t->at) >= bytes;
}
static inline void *kp_put_reserve(struct kp_thread *t, uint64_t gate, uint32_t bytes, enum kp_kind kind)
{
    return __builtin_expect(kp_put_has_room(t, gate, bytes), 1) ? t->at : kp_put_slow(t, gate, bytes, kind);
}
/* Publishes the record just filled at t->at (head.size tells its length): from here on it survives SIGKILL. */
static inline void kp_put_commit(struct kp_thread *t, uint32_t bytes)
{
    t->at += bytes;
    /* pairs with: reader.c (used is loaded with acquire) */
    kp_store_release(&t->chunk->used, (uint32_t)(t->at - (uint8_t *)t->chunk));
}

/*
 * Fills in the end of an OP or STEP record put earlier: at least 1 tick, since 0 means that the range is still open.
 */
static inline void kp_put_end(_Atomic uint64_t *ticks, uint64_t start, uint64_t end)
{
    /* pairs with: events.c:span_of, which takes 0 for still open */
    kp_store_release(ticks, end > start ? end - start : 1);
}

/* Puts an OP that begins now, with the id of its call stack or 0. NULL: no room. */
struct kp_rec_op *kp_put_range(struct kp_thread *t, uint64_t gate, uint32_t name, uint8_t scope, uint32_t stack);
enum { KP_SCOPE_USER = 7 }; /* torch's scope of users' ranges */
/* Id of a string (bytes may hold one NUL between name and overload). 0 when the table is full (counted). Lock-free. */
KP_HOT uint32_t kp_name_intern(struct kp_thread *t, const char *bytes, uint32_t len);
/* A per-thread cache of name ids. Its key is the address of a text that never changes (a FunctionSchema). */
enum { KP_NAME_CACHE_SLOTS = 1024 };
struct kp_strcache {
    struct {
        const void *key;
        uint32_t id;
    } slots[KP_NAME_CACHE_SLOTS];
};
static inline uint32_t kp_name_cache_index(const void *key)
{
    uint64_t k = (uint64_t)(uintptr_t)key;
    return (uint32_t)((k >> 4 ^ k >> 13 ^ k >> 23) & (KP_NAME_CACHE_SLOTS - 1));
}
static inline uint32_t kp_name_cached(struct kp_thread *t, const void *key) /* 0: not cached yet */
{
    if (KP_UNLIKELY(!t->names)) return 0;
    uint32_t i = kp_name_cache_index(key);
    return KP_LIKELY(t->names->slots[i].key == key) ? t->names->slots[i].id : 0;
}
KP_COLD void kp_name_cache(struct kp_thread *t, const void *key, uint32_t id);

/* Writes a frame of a machine code stack. Its id may be a record's stack in any later record. 0: no room (counted).
 * Lock-free. */
uint32_t kp_frame_put(uint32_t module, uint64_t offset, uint32_t around);
uint32_t kp_frame_put_python(uint32_t python, uint32_t native); /* both stacks as one id (KP_FRAME_PYTHON) */

/* For a thread that may wait: wakes the writer until the next record of `bytes` has room. False: no room in
 * timeout_ms, or none to come (KPROF_MAX_MB, a full disk), or a recording gate changed meanwhile. */
bool kp_put_wait(const struct kp_thread *t, uint64_t gate, uint32_t bytes, uint32_t timeout_ms);

KP_COLD void kp_loss_count(enum kp_kind kind, enum kp_loss reason);
uint64_t kp_loss_total(void);
/* The reason of which most were lost so far; *count: how many. 0 of any: KP_LOSS_N. */
enum kp_loss kp_loss_most(uint64_t *count);
uint64_t kp_loss_waited_ms(void); /* how long threads waited for room, together (kp_put_wait) */

/* --- cold path --- */

struct kp_record_share { /* bytes that the spools of several processes take; in memory that these share */
    _Atomic uint64_t bytes;
    _Atomic uint32_t refused; /* processes that record nothing, since no room was left */
};
int kp_record_folder_open(void); /* this user's folder in /dev/shm, for what processes share; or -errno */
void kp_record_share_give(struct kp_record_share *share, uint64_t bytes); /* so many bytes of spools are gone */

struct kp_record_options {
    const char *dir;               /* KPROF_SPOOL_DIR or KPROF_DIR; made when missing */
    uint64_t max_bytes;            /* KPROF_MAX_MB */
    uint64_t memory_bytes;         /* KPROF_BUFFER_MB: so much memory for records, 0: what the machine can spare */
    uint32_t ring_ms;              /* KPROF_RING: records that are older go; 0: none do */
    const char *text;              /* configuration lines for the header */
    struct kp_record_share *share; /* of a forked child or a worker: all that share it take max_bytes together */
    void (*tick)(void);            /* kprof-tick: about 20 times a second and at each kp_ticker_wake. It may wait */
};
/*
 * Opens the spool and starts its threads; idempotent. 0 or -errno (one line was logged; nothing is recorded): -ENOBUFS
 * if those that share a limit have reached it.
 */
int kp_record_open(const struct kp_record_options *options);
bool kp_record_is_open(void);
const char *kp_record_path(void);
const char *kp_record_memory(void); /* the path of the half in memory; "" where it has none */
/* Removes the spool's name: all that was asked for is written. The open file goes on until the process ends. */
void kp_record_forgo(void);
/*
 * Opens both halves of this process's own spool to read them, also when a file was removed. -ENOENT: it cannot be
 * reached, or nothing is on the disk. The caller closes them.
 */
struct kp_halves {
    int memory, disk; /* descriptors, or -errno */
};
void kp_record_reopen(struct kp_halves *out);
bool kp_record_is_on_disk(void);  /* some of it */
uint64_t kp_record_taken(void);   /* so much the spool takes, in memory and on the disk */
bool kp_record_is_full(void);     /* no chunk is free and none comes soon (KPROF_MAX_MB, a full disk). Any thread */
bool kp_record_is_in_place(void); /* the file on the disk was neither removed nor replaced. Looks at the disk */
/*
 * Keeps "key=value" for readers, which use the last value of a key. Newlines in the value become blanks. Goes into
 * the header while that has room, then into NOTE records. Any thread, not in a hook. 0, -EBADF (no spool), -E2BIG
 * (over KP_MAX_RECORD) or -ENOSPC.
 */
int kp_record_note(const char *key, const char *value);
int kp_record_note_try(const char *key, const char *value); /* of a short line; -EAGAIN: the lock is taken */
void kp_writer_wake(void); /* wakes the writer, for chunks; async-signal-safe, at most one futex wake */
void kp_ticker_wake(void); /* wakes the ticker: a window is over; async-signal-safe, as above */
/* Has the ticker call `job` once, which may end the ticker. False: no thread came to it in most_ms, and none will. */
bool kp_ticker_do(void (*job)(void), uint32_t most_ms);

int kp_record_meta(const void *record, uint32_t bytes); /* appends a META record; takes a mutex, not in a hook */
void kp_record_clock(void);                             /* samples the clock and appends it */
/* Waits until no thread is inside a hook that may still write to a cycle older than the gate's. Afterwards no chunk of
 * `cycle` changes. 0 or -ETIMEDOUT. Writer or exporter thread only. */
int kp_record_quiesce(uint32_t cycle, uint32_t timeout_ms);
/* Frees the chunks of a cycle that was exported. If a thread may still write to it, a later call does. One thread. */
void kp_record_recycle(uint32_t cycle);
bool kp_record_piece(uint32_t i, uintptr_t *from, uintptr_t *to); /* piece i's addresses. False: no more pieces */
/* How many ops, calls, device records and ranges a cycle holds. Walks its chunks, so not for hot paths. */
uint64_t kp_record_events(uint32_t cycle);
void kp_ring_touch(void);   /* hot: GPU work was asked for; lanes alone do not tell, as a watchdog may ask for ever */
void kp_ring_hold(void);    /* with KPROF_RING nothing goes until release, for a reader. One thread at a time */
bool kp_ring_release(void); /* false: room was short, records went meanwhile, and the reader has garbage */
/* Drops the pages of all records from this process; the file keeps them. Once recording is over. Not in handlers. */
void kp_record_drop_pages(void);
/*
 * Stops the writer (bounded), marks the file closed, unlinks it if asked. Otherwise it brings to the disk what lies in
 * memory. False: the disk refused that, or made no progress for most_ms; what a half holds stays there. The mapping
 * stays, so a late hook cannot fault.
 */
bool kp_record_close(bool unlink_file, uint32_t most_ms);
/* In a forked child: resets the whole recorder. The parent's mapping stays, unused. Called by the at-fork handler. */
void kp_record_forget(void);

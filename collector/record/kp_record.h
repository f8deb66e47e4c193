// SPDX-License-Identifier: Apache-2.0
/*
 * kp_record.h - door of the write side: put records into the spool from inside a hook
 *
 * Called by: any host thread inside a hook (put, name: hot); boot and cycle code (open, cycle, close)
 * Owns:      the spool file, its chunks, the per-thread write state, the helper thread kprof-writer
 * Locks:     none on the hot path. Memory: never allocates on the hot path but for a thread's first touch.
 * On fail:   a record that finds no room is counted (kind, reason) and dropped. Never blocks, never signals.
 */
#ifndef KP_RECORD_H
#define KP_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_gate.h"
#include "collector/format/kp_format.h"

/* Per-thread write state; sits in arena pages, reached by one initial-exec TLS pointer. */
struct kp_thread {
    uint8_t *at, *end;    /* free room of the current chunk */
    struct kp_chunk_head *chunk;
    uint32_t chunk_cycle; /* cycle the current chunk belongs to; 0: no chunk */
    _Atomic uint32_t inside; /* 1 while in a hook: re-entry guard, and what closing a cycle waits for */
    _Atomic uint32_t tid;
    uint32_t thread_no;   /* never reused: tells a source that this struct serves a new thread */
    bool dying;           /* its key destructor ran: hooks pass through */
    void *source_state[4]; /* one per source (KP_STATE_*), made lazily by that source */
    struct kp_thread *next; /* list of all threads ever seen */
    struct kp_strcache *names;
    char name[16];
    _Atomic uint32_t life; /* enum below; a dead struct is reused, with its source_state */
};
enum { KP_THREAD_ALIVE = 1, KP_THREAD_DEAD };
enum { KP_STATE_TORCH = 0, KP_STATE_API = 1 };

extern _Thread_local struct kp_thread *kp_thread_self __attribute__((tls_model("initial-exec")));
struct kp_thread *kp_thread_birth(void); /* slow half of kp_thread_get; NULL: none to be had or the thread is dying */
static inline struct kp_thread *kp_thread_get(void)
{
    struct kp_thread *t = kp_thread_self;
    return t ? t : kp_thread_birth();
}
/* All threads, newest first; entries are never freed (reused for new threads after exit). For the writer side. */
struct kp_thread *kp_thread_first(void);

/* --- hot path. The caller has set t->inside and read the gate once. --- */

/*
 * Room for one record of at most `bytes` (multiple of 8, <= KP_MAX_RECORD) in the chunk of gate's cycle, or NULL
 * (counted as lost under `kind`). Only while the gate says RECORD: what starts while it warms up is not put.
 */
void *kp_put_slow(struct kp_thread *t, uint64_t gate, uint32_t bytes, enum kp_kind kind);
static inline void *kp_put_reserve(struct kp_thread *t, uint64_t gate, uint32_t bytes, enum kp_kind kind)
{
    if (__builtin_expect(t->chunk_cycle == kp_gate_cycle(gate) && (uintptr_t)(t->end - t->at) >= bytes, 1))
        return t->at;
    return kp_put_slow(t, gate, bytes, kind);
}
/* Publishes the record just filled at t->at (head.size tells its length): from here on it survives SIGKILL. */
static inline void kp_put_commit(struct kp_thread *t, uint32_t bytes)
{
    t->at += bytes;
    /* pairs with: spoolread.c (used is loaded with acquire) */
    kp_store_release(&t->chunk->used, (uint32_t)(t->at - (uint8_t *)t->chunk));
}

/* Fills in the end of an OP or STEP record put earlier: 0 would say that it is still open, so a duration is at least 1. */
static inline void kp_put_end(_Atomic uint64_t *ticks, uint64_t start, uint64_t end)
{
    /* pairs with: events.c:span_of, which takes 0 for still open */
    kp_store_release(ticks, end > start ? end - start : 1);
}

/* Id of a string (bytes may hold one NUL between name and overload). 0 when the table is full (counted). Lock-free. */
uint32_t kp_name_intern(struct kp_thread *t, const char *bytes, uint32_t len);
/* The same through a per-thread cache keyed by an address whose text never changes (a FunctionSchema). */
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
    if (!t->names) return 0;
    uint32_t i = kp_name_cache_index(key);
    return t->names->slots[i].key == key ? t->names->slots[i].id : 0;
}
void kp_name_cache(struct kp_thread *t, const void *key, uint32_t id);

void kp_loss_count(enum kp_kind kind, enum kp_loss reason);
uint64_t kp_loss_total(void);

/* --- cold path --- */

struct kp_record_options {
    const char *dir;       /* KPROF_SPOOL_DIR or KPROF_DIR; made when missing */
    uint64_t max_bytes;    /* KPROF_MAX_MB */
    const char *text;      /* configuration lines for the header */
    /* Called on the writer thread about 20 times a second and whenever it was poked: boot.c hangs cycle work here. */
    void (*tick)(void);
};
/* Opens the spool and starts the writer thread; idempotent. 0 or -errno (one line was logged; nothing is recorded). */
int kp_record_open(const struct kp_record_options *options);
bool kp_record_is_open(void);
const char *kp_record_path(void);
/* A path by which this process can open its spool now, also when somebody removed the file; -ENOENT: there is none. */
int kp_record_reach(char *path, size_t bytes);
/*
 * Keeps "key=value" for readers, who take the last of a key; newlines in value become blanks. In the header while it has room,
 * then as NOTE records. Any thread, not in a hook. 0, -EBADF (no spool), -E2BIG (over KP_MAX_RECORD) or -ENOSPC.
 */
int kp_record_note(const char *key, const char *value);
void kp_record_poke(void);    /* wakes the writer; async-signal-safe, at most one futex wake */

/* Appends a META record (any thread, takes a mutex, not in a hook). Used for CYCLE and CLOCK records. */
int kp_record_meta(const void *record, uint32_t bytes);
void kp_record_clock(void);   /* samples the clock and appends it */

/*
 * Waits (at most timeout_ms) until no thread is inside a hook that may still write to a cycle older than the gate
 * shows: afterwards all chunks of `cycle` are quiet. 0 or -ETIMEDOUT. Writer or exporter thread only.
 */
int kp_record_quiesce(uint32_t cycle, uint32_t timeout_ms);
/*
 * Chunks of `cycle` become free for new records (it was exported or is not wanted). Those of a cycle in which a thread may still
 * be writing wait until a later call. One caller at a time.
 */
void kp_record_recycle(uint32_t cycle);
uint64_t kp_record_events(uint32_t cycle); /* ops kept in a cycle, by walking its chunks; for decisions, not for hot paths */
/* Stops the writer (bounded), marks the file closed; unlinks it when asked. The mapping stays: late hooks cannot fault. */
void kp_record_close(bool unlink_file);
/* Child side of fork: forget the thread, never touch the shared file. Called by the at-fork handler. */
void kp_record_after_fork(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * buffer.c - the pool of buffers that CUPTI fills, and the two callbacks that CUPTI calls
 *
 * Called by: CUPTI: request on host threads and its worker, complete on its worker or on the thread that flushes;
 *            cuda_thread.c, control.c (work, sweep) on the thread kprof-cuda
 * Owns:      512 buffers of 512 KB in one reserved range, without memory until CUPTI writes to them; the discard buffer
 * Locks:     none; words of bits say which buffers are taken
 * Memory:    as many buffers as were ever taken at once stay resident (the lowest free one is taken first)
 * On fail:   with every buffer taken, gives NULL from CUPTI 12.9 on; CUPTI counts what it drops. Before, NULL crashes
 *            it, so threads share the discard buffer. Records in it are counted as lost.
 * Safe in:   signal handlers no; in a forked child CUPTI still calls, the gate is shut
 *
 * From CUPTI 13.0 on each thread with CUDA calls has a buffer of its own. A buffer is all zero when it is handed out,
 * so it is wiped before it goes back to the pool. CUPTI is told so (attribute 5); else it would clear the buffer on a
 * host thread. Each hand-out has a number. All buffers that CUPTI had at some moment have come back once no older
 * number is out.
 *
 * The callbacks never wait (decisions/122): a completed buffer of the pool is queued, and kprof-cuda decodes it. If
 * kprof-cuda cannot come, complete decodes at once. It does so, too, with the program's own buffers.
 *
 * Once CUPTI was finalized, buffers that it had never come back: no drain waits for them. The next arming counts what
 * is in them. They rest before they are used again, since it is not known when CUPTI lets go of them.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* glibc before 2.35 */
#endif

enum {
    BUFFERS = KP_BUFFERS,
    WORDS = BUFFERS / 64,
    WARM = 16,
    CLIENTS_OUT = 128,
    QUIET_BYTES = 32 << 10,
    DISCARD_BYTES = 64 << 10, /* soon full, so that its thread asks again */
    REST_MS = 10000,
    NULL_IS_TAKEN_FROM = 27, /* CUPTI 12.9 */
    UNKNOWN = 1              /* number of a hand-out that has none yet: older than any mark */
};
#define BUFFER_BYTES ((size_t)512 << 10)
#define LEFT (UINT64_C(1) << 63)

static uint8_t *pool, *discard;
static _Atomic uint64_t taken[WORDS];     /* bit i: buffer i is not free */
static _Atomic uint64_t numbers[BUFFERS]; /* of the hand-out; | LEFT: it came back and is not decoded; 0: not out */
static uint32_t valid[BUFFERS];           /* bytes in a buffer that is LEFT */
static _Atomic uint64_t number_last = UNKNOWN;
static _Atomic uint64_t given_up; /* buffers of lower numbers were out when CUPTI was finalized */
static _Atomic uint64_t nulls;    /* how often NULL was given */
static _Atomic uint32_t discards; /* how often `discard` is out; SHARED: it was out twice at once */
#define SHARED (1u << 31)
static struct {
    _Atomic(uint8_t *) buffer;
    _Atomic uint64_t number;
} clients[CLIENTS_OUT]; /* the client's buffers that CUPTI has */

int kp_buffer_setup(void)
{
    if (pool) return 0;
    void *p;
    int rc = kp_io_mmap(&p, BUFFERS * BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                        -1, 0);
    if (rc < 0) return rc;
    discard = kp_map_alloc(DISCARD_BYTES);
    if (!discard) {
        kp_io_munmap(p, BUFFERS * BUFFER_BYTES);
        return -ENOMEM;
    }
    /* A forked child gets empty pages, not copies. It needs the range, since CUPTI still records failing calls. */
    (void)kp_io_madvise(p, BUFFERS * BUFFER_BYTES, MADV_WIPEONFORK);
    pool = p;
    return 0;
}

void kp_buffer_warm(void)
{
    static bool is_warm;
    if (pool && !is_warm)
        (void)kp_io_madvise(pool, WARM * BUFFER_BYTES, MADV_POPULATE_WRITE); /* kernels before 5.14 refuse: no harm */
    is_warm = true;
}

bool kp_buffer_is_ours(const uint8_t *buffer)
{
    return pool && (buffer == discard || (buffer >= pool && buffer < pool + BUFFERS * BUFFER_BYTES));
}

static uint8_t *buffer_at(uint32_t i) { return pool + (size_t)i * BUFFER_BYTES; }

/* ---- which are out ---- */

uint64_t kp_buffer_mark(void) { return kp_load_acquire(&number_last) + 1; }

bool kp_buffer_any_asked(void) { return kp_load_relaxed(&number_last) != UNKNOWN || kp_load_relaxed(&discards) != 0; }

static bool is_older(uint64_t number, uint64_t mark, bool with_left)
{
    if (!number || (number & LEFT && !with_left)) return false;
    if (!(number & LEFT) && number < kp_load_relaxed(&given_up)) return false;
    return (number & ~LEFT) < mark;
}

static bool is_any_older(uint64_t mark, bool with_left)
{
    for (int i = 0; i < BUFFERS; i++)
        if (is_older(kp_load_acquire(&numbers[i]), mark, with_left)) return true; /* pairs with: buffer_finish */
    for (int i = 0; i < CLIENTS_OUT; i++)
        if (kp_load_acquire(&clients[i].buffer) && kp_load_relaxed(&clients[i].number) < mark) return true;
    return false;
}

bool kp_buffer_is_older_out(uint64_t mark) { return is_any_older(mark, false); }

bool kp_buffer_is_older_left(uint64_t mark) { return is_any_older(mark, true); }

/* ---- nothing is enabled ---- */

/* ends: how often all was disabled. quiet: the number of that time, 0 while we have something enabled. */
static _Atomic uint32_t ends, quiet;
static _Atomic uint64_t unwanted;

void kp_buffer_quiet(bool begins)
{
    kp_store_release(&quiet, begins ? kp_add_acq_rel(&ends, 1) + 1 : 0); /* pairs with: is_quiet */
}

void kp_buffer_quiet_anew(void)
{
    uint32_t seen = kp_load_relaxed(&quiet);
    if (seen) (void)kp_cas_acq_rel(&quiet, &seen, kp_add_acq_rel(&ends, 1) + 1); /* pairs with: is_quiet */
}

static bool is_quiet(void)
{
    return kp_load_acquire(&quiet) && !kp_client_wants_any(); /* pairs with: kp_buffer_quiet */
}

/* Counts a request, except each thread's first, which is for the call that was under way. */
static void count_unwanted(void)
{
    static _Thread_local uint32_t asked __attribute__((tls_model("initial-exec")));
    uint32_t now = kp_load_relaxed(&quiet);
    bool is_first = asked != now;
    asked = now;
    if (is_first) return;
    kp_add_relaxed(&unwanted, 1);
    KP_LOG_ONCE(
        0, "CUPTI goes on recording calls of CUDA though nothing is enabled any more: they stay slower than they were");
}

/* CUPTI counts what it drops for NULL; kp_control_flush reads that. */
static void losses_tell(void)
{
    if (kp_load_relaxed(&nulls))
        KP_LOG_ONCE(0, "more than %d buffers for GPU records are in use at once: CUPTI drops records", BUFFERS);
    if (!kp_lane_is_least()) return;
    KP_LOG_ONCE(0, "GPU records were lost, more than can be counted");
    kp_cupti_note("gpu_lost_at_least", "1");
    kp_run_lost_at_least();
}

void kp_buffer_write_notes(void)
{
    char text[24];
    losses_tell();
    if (!kp_load_relaxed(&ends)) return;
    kp_fmt(text, sizeof text, "%lu", (unsigned long)kp_load_relaxed(&unwanted));
    kp_cupti_note("gpu_requests_after_disarm", text);
}

/* ---- handing out ---- */

static bool bit_take(uint32_t word, uint32_t *index)
{
    uint64_t bits = kp_load_relaxed(&taken[word]);
    while (bits != UINT64_MAX) {
        const int bit = __builtin_ctzll(~bits);
        if (!kp_cas_acq_rel(&taken[word], &bits, bits | UINT64_C(1) << bit)) continue; /* pairs with: bit_give */
        *index = word * 64 + (uint32_t)bit;
        return true;
    }
    return false;
}

static void bit_give(uint32_t index)
{
    const uint64_t bit = UINT64_C(1) << index % 64;
    uint64_t bits = kp_load_relaxed(&taken[index / 64]);
    while (!kp_cas_acq_rel(&taken[index / 64], &bits, bits & ~bit)) {} /* pairs with: bit_take */
}

/* A mark between the two stores is older than the number that follows: then the buffer counts as older, too. */
static uint8_t *pool_take(void)
{
    uint32_t i = 0, word = 0;
    while (pool && word < WORDS && !bit_take(word, &i)) word++;
    if (!pool || word == WORDS) return NULL;
    kp_store_release(&numbers[i], UNKNOWN); /* pairs with: is_any_older */
    kp_store_release(&numbers[i], kp_add_acq_rel(&number_last, 1) + 1);
    return buffer_at(i);
}

static uint8_t *discard_take(void)
{
    uint32_t seen = kp_load_relaxed(&discards);
    while (!kp_cas_acq_rel(&discards, &seen, seen ? (seen + 1) | SHARED : 1)) {} /* pairs with: discard_give */
    return discard;
}

/* The thread that gives it back last clears it before another thread can take it. */
static void discard_give(void)
{
    uint32_t seen = kp_load_acquire(&discards); /* pairs with: discard_take */
    bool is_last;
    do {
        is_last = (seen & ~SHARED) <= 1;
        if (is_last) memset(discard, 0, DISCARD_BYTES);
    } while (!kp_cas_acq_rel(&discards, &seen, is_last ? 0 : seen - 1)); /* pairs with: discard_take */
}

static void client_out(uint8_t *buffer)
{
    uint64_t number = kp_add_acq_rel(&number_last, 1) + 1;
    for (int i = 0; i < CLIENTS_OUT; i++) {
        uint8_t *none = NULL;
        if (kp_load_relaxed(&clients[i].buffer)) continue;
        kp_store_relaxed(&clients[i].number, number);
        if (kp_cas_acq_rel(&clients[i].buffer, &none, buffer)) return; /* pairs with: client_back */
    }
}

static void client_back(uint8_t *buffer)
{
    for (int i = 0; i < CLIENTS_OUT; i++) {
        uint8_t *seen = buffer;
        if (kp_cas_acq_rel(&clients[i].buffer, &seen, NULL)) return; /* pairs with: client_out */
    }
}

static void last_resort(uint8_t **buffer, size_t *bytes)
{
    const bool is_null = kp_cupti.version >= NULL_IS_TAKEN_FROM;
    kp_add_relaxed(&nulls, is_null);
    *bytes = is_null ? 0 : DISCARD_BYTES;
    *buffer = is_null ? NULL : discard_take();
}

void kp_buffer_request(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
    int saved = errno;
    bool is_idle = is_quiet();
    if (is_idle) count_unwanted();
    if (kp_cupti_state() != KP_CUPTI_STATE_ARMED && kp_client_is_there() &&
        kp_forward_request(buffer, bytes, max_records) && *buffer) {
        client_out(*buffer);
    } else {
        if (!kp_load_relaxed(&kp_lane_ids_are_tids))
            (void)kp_thread_get(); /* makes its struct kp_thread, since CUPTI gives only its pthread_self() */
        *max_records = 0;
        *bytes = is_idle ? QUIET_BYTES : BUFFER_BYTES; /* a small one fills soon, so that the next request is counted */
        *buffer = pool_take();
        if (!*buffer) last_resort(buffer, bytes);
    }
    errno = saved;
}

/* ---- taking back ---- */

/* A buffer that several threads wrote to at once may be torn: it is not forwarded, and the loss is known as a bound. */
static void discard_back(size_t bytes, size_t valid_bytes)
{
    const uint32_t out = kp_load_acquire(&discards); /* pairs with: discard_take */
    if (valid_bytes > DISCARD_BYTES) valid_bytes = DISCARD_BYTES;
    if (out & SHARED) kp_lane_count_least(valid_bytes);
    else kp_lane_count_lost(discard, valid_bytes);
    if (out == 1 && kp_client_is_there()) kp_forward_complete(NULL, 0, discard, bytes, valid_bytes, true);
    discard_give();
}

/* Wipes a decoded buffer, and frees it. */
static void buffer_finish(uint32_t i)
{
    memset(buffer_at(i), 0, valid[i]);
    kp_store_release(&numbers[i], 0); /* pairs with: is_any_older */
    bit_give(i);
}

static void pool_back(uint32_t i, size_t bytes, size_t valid_bytes)
{
    uint64_t number = kp_load_acquire(&numbers[i]); /* pairs with: kp_buffer_sweep */
    if (!number || number & LEFT) return;           /* it was given up */
    valid[i] = (uint32_t)valid_bytes;
    if (!kp_cas_acq_rel(&numbers[i], &number, number | LEFT)) return; /* pairs with: kp_buffer_sweep */
    if (kp_client_is_there()) kp_forward_complete(NULL, 0, buffer_at(i), bytes, valid_bytes, true);
    if (valid_bytes && kp_lane_is_open() && kp_cupti_helper_comes()) {
        kp_bufferqueue_put(i);
        kp_cupti_helper_wake();
    } else {
        kp_lane_decode(buffer_at(i), valid_bytes, false);
        buffer_finish(i);
    }
}

void kp_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes)
{
    int saved = errno;
    if (!buffer) return;
    if (valid_bytes > bytes) valid_bytes = bytes;
    if (buffer == discard) {
        discard_back(bytes, valid_bytes);
    } else if (kp_buffer_is_ours(buffer)) {
        pool_back((uint32_t)((size_t)(buffer - pool) / BUFFER_BYTES), bytes, valid_bytes);
    } else {
        if (kp_cupti_has_calls()) kp_lane_decode(buffer, valid_bytes, false);
        client_back(buffer);
        kp_forward_complete(context, stream, buffer, bytes, valid_bytes, false);
    }
    errno = saved;
}

/* ---- on kprof-cuda ---- */

void kp_buffer_work(uint32_t most_ms)
{
    const uint64_t end = kp_clock_ms() + most_ms;
    for (uint32_t i; kp_bufferqueue_take(&i);) {
        kp_lane_decode(buffer_at(i), valid[i], true);
        buffer_finish(i);
        if (kp_clock_ms() >= end) return;
    }
}

bool kp_buffer_has_work(void) { return !kp_bufferqueue_is_empty(); }

void kp_buffer_finalized(void)
{
    kp_store_release(&given_up, kp_buffer_mark()); /* pairs with: kp_buffer_sweep */
    for (int i = 0; i < CLIENTS_OUT; i++)
        kp_store_release(&clients[i].buffer, NULL); /* the client's own, which it may free */
}

/* Does CUPTI no longer have this one, which it never gave back? Then a late completion of it changes nothing. One that
 * has no number yet is being handed out now. */
static bool is_given_up(uint32_t i)
{
    uint64_t number = kp_load_acquire(&numbers[i]);
    if (number <= UNKNOWN || number & LEFT || number >= kp_load_acquire(&given_up)) return false;
    return kp_cas_acq_rel(&numbers[i], &number, 0); /* pairs with: pool_back */
}

/* Frees those that have rested, then counts what lies in those that CUPTI had when it was finalized. */
void kp_buffer_sweep(void)
{
    static uint64_t resting[WORDS], since_ms;
    const uint64_t now = kp_clock_ms();
    for (uint32_t i = 0; pool && now - since_ms >= REST_MS && i < BUFFERS; i++) {
        if (!(resting[i / 64] >> i % 64 & 1)) continue;
        if (kp_io_madvise(buffer_at(i), BUFFER_BYTES, MADV_DONTNEED) != 0) memset(buffer_at(i), 0, BUFFER_BYTES);
        resting[i / 64] &= ~(UINT64_C(1) << i % 64);
        bit_give(i);
    }
    for (uint32_t i = 0; pool && i < BUFFERS; i++) {
        if (!is_given_up(i)) continue;
        if (kp_lane_count_lost(buffer_at(i), BUFFER_BYTES)) kp_lane_count_least(0);
        resting[i / 64] |= UINT64_C(1) << i % 64;
        since_ms = now;
    }
}

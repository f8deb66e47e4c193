// SPDX-License-Identifier: Apache-2.0
/*
 * buffer.c - the pool of buffers that CUPTI fills, and the two callbacks that CUPTI calls
 *
 * Called by: CUPTI: request on host threads and its worker, complete on its worker or on the thread that flushes
 * Owns:      64 buffers of 4 MB in one reserved range, without memory until CUPTI writes to them; the discard buffer
 * Locks:     none; one word has a bit for each buffer that CUPTI has
 * Memory:    as many buffers as CUPTI ever had at once stay resident (the lowest free one is taken first)
 * On fail:   with every buffer out, hands out the discard buffer, since NULL crashes CUPTI before 12.9. Records in it
 *            are counted as lost.
 * Safe in:   signal handlers no; in a forked child CUPTI still calls, the gate is shut
 *
 * A buffer is all zero when it is handed out, so what CUPTI wrote is cleared before the buffer goes back to the pool.
 * CUPTI is told so (attribute 5); else it would clear 4 MB on a host thread. Each hand-out has a number. All buffers
 * that CUPTI had at some moment have come back once no older number is out.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* glibc before 2.35 */
#endif

enum { BUFFERS = 64, WARM = 2, CLIENTS_OUT = 128, DISCARD_BYTES = 1 << 20, QUIET_BYTES = 32 << 10 };
#define BUFFER_BYTES ((size_t)4 << 20)

static uint8_t *pool, *discard;
static _Atomic uint64_t out_bits;         /* bit i: CUPTI has buffer i */
static _Atomic uint64_t numbers[BUFFERS]; /* of each buffer's last hand-out */
static _Atomic uint64_t number_last;
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

uint64_t kp_buffer_mark(void) { return kp_load_acquire(&number_last) + 1; }

bool kp_buffer_any_asked(void) { return kp_load_relaxed(&number_last) != 0 || kp_load_relaxed(&discards) != 0; }

bool kp_buffer_is_older_out(uint64_t mark)
{
    uint64_t bits = kp_load_acquire(&out_bits);
    for (int i = 0; i < BUFFERS; i++)
        if (bits >> i & 1 && kp_load_relaxed(&numbers[i]) < mark) return true;
    for (int i = 0; i < CLIENTS_OUT; i++)
        if (kp_load_acquire(&clients[i].buffer) && kp_load_relaxed(&clients[i].number) < mark) return true;
    return false;
}

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

void kp_buffer_write_notes(void)
{
    char text[24];
    if (!kp_load_relaxed(&ends)) return;
    kp_fmt(text, sizeof text, "%lu", (unsigned long)kp_load_relaxed(&unwanted));
    kp_cupti_note("gpu_requests_after_disarm", text);
}

/* ---- handing out ---- */

static uint8_t *pool_take(void)
{
    uint64_t bits = kp_load_relaxed(&out_bits);
    while (pool && bits != UINT64_MAX) {
        int i = __builtin_ctzll(~bits);
        uint64_t number = kp_add_acq_rel(&number_last, 1) + 1;
        if (!kp_cas_acq_rel(&out_bits, &bits, bits | UINT64_C(1) << i)) continue; /* pairs with: pool_give */
        kp_store_relaxed(&numbers[i], number);
        return pool + (size_t)i * BUFFER_BYTES;
    }
    return NULL;
}

static void pool_give(uint8_t *buffer)
{
    size_t i = (size_t)(buffer - pool) / BUFFER_BYTES;
    uint64_t bits = kp_load_relaxed(&out_bits);
    while (!kp_cas_acq_rel(&out_bits, &bits, bits & ~(UINT64_C(1) << i))) {} /* pairs with: pool_take */
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
        if (!*buffer) {
            *bytes = DISCARD_BYTES;
            *buffer = discard_take();
        }
    }
    errno = saved;
}

/* ---- taking back ---- */

static void discard_back(size_t bytes, size_t valid_bytes)
{
    KP_LOG_ONCE(0, "GPU records came faster than they could be kept: some are lost");
    uint32_t out = kp_load_acquire(&discards); /* pairs with: discard_take */
    if ((out & ~SHARED) == 1 && valid_bytes <= DISCARD_BYTES) {
        kp_lane_count_lost(discard, valid_bytes);
        /* If it was out twice at once its records may be torn, so they are counted but not forwarded. */
        if (out == 1 && kp_client_is_there()) kp_forward_complete(NULL, 0, discard, bytes, valid_bytes, true);
    }
    discard_give();
}

void kp_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes)
{
    int saved = errno;
    bool is_ours = kp_buffer_is_ours(buffer);
    if (!buffer) return;
    if (valid_bytes > bytes) valid_bytes = bytes;
    if (buffer == discard) {
        discard_back(bytes, valid_bytes);
        errno = saved;
        return;
    }
    if (is_ours || kp_cupti_has_calls()) kp_lane_decode(buffer, valid_bytes);
    if (!is_ours) client_back(buffer);
    if (!is_ours || kp_client_is_there()) kp_forward_complete(context, stream, buffer, bytes, valid_bytes, is_ours);
    if (is_ours) {
        memset(buffer, 0, valid_bytes);
        pool_give(buffer);
    }
    errno = saved;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * ring.c - frees records that are older than KPROF_RING, so that the newest always find room
 *
 * Called by: the writer, each round; the thread that writes a trace of the ring while it goes on (hold, release)
 * Owns:      how long records stay: KPROF_RING, or less where memory and disk do not hold so much; one word that says
 *            whether they may go
 * Locks:     none; who holds the ring waits while the writer is at it, and the writer waits for no thread
 * Safe in:   signal handlers no; after fork yes (the child's writer goes on with its own spool)
 *
 * A chunk goes when its thread left it so long ago, and no range in it is open. No thread stores into it any more: the
 * rule by which chunks move to the disk (decisions/143). Time in which no thread records does not count. So a program
 * that is stuck, or takes minutes to exit, keeps the seconds before. Nor does time in which one only asks whether the
 * GPU is done.
 */
#include "collector/record/record_internal.h"

#include "collector/base/sys/kp_io.h"
#include "collector/format/kp_ring.h"
#include "collector/base/kp_poison.h"

#define KP_RING_SPARE 32u    /* fewer free chunks, and none to come: records go earlier */
#define KP_RING_LEAST_MS 50u /* but not before */
#define KP_RING_NAP_NS 100000u

/* The writer is at it; nothing goes, for a reader; but it went, as room was short. */
enum { KP_RING_BUSY = 1, KP_RING_HELD = 2, KP_RING_BROKEN = 4 };

static _Atomic bool is_touched; /* kp_ring_touch() since the last look */
static uint32_t stay_ms;
static uint64_t looked_ns;            /* 0: not yet */
static uint64_t written, recorded_ns; /* by threads until the last look, and how long they have recorded */
static bool is_short_noted;

/* The limit is reached (KPROF_MAX_MB, a full disk). */
static bool is_short(void)
{
    return kp_load_relaxed(&kp_spool.grow_error) != KP_LOSS_NO_CHUNK && kp_chunk_ready() < KP_RING_SPARE;
}

static void stay_turn(bool has_little)
{
    const uint32_t whole = kp_spool.ring_ms;
    if (has_little && !is_short_noted) is_short_noted = kp_record_note_try("ring_short", "1") == 0;
    if (!stay_ms || stay_ms > whole) stay_ms = whole;
    if (has_little && stay_ms > KP_RING_LEAST_MS) stay_ms -= stay_ms / 8;
    else if (!has_little && stay_ms < whole) stay_ms += whole / 64 < whole - stay_ms ? whole / 64 : whole - stay_ms;
}

/* False: a reader holds the ring. One that stands for long must not cost the newest records. */
static bool round_enter(bool has_little)
{
    uint32_t was = kp_load_relaxed(&kp_spool.ring_hold), now;
    do {
        if (was == KP_RING_HELD && !has_little) return false;
        now = was | KP_RING_BUSY | (was ? KP_RING_BROKEN : 0);
    } while (!kp_cas_acq_rel(&kp_spool.ring_hold, &was, now)); /* pairs with: kp_ring_hold */
    return true;
}

static void round_leave(void)
{
    uint32_t was = kp_load_relaxed(&kp_spool.ring_hold);
    while (!kp_cas_acq_rel(&kp_spool.ring_hold, &was, was & ~(uint32_t)KP_RING_BUSY)) {} /* pairs with: kp_ring_hold */
}

void kp_ring_touch(void)
{
    if (!kp_load_relaxed(&is_touched)) kp_store_relaxed(&is_touched, true);
}

void kp_ring_hold(void)
{
    for (uint32_t was = 0; !kp_cas_acq_rel(&kp_spool.ring_hold, &was, KP_RING_HELD); was = 0) kp_io_nap(KP_RING_NAP_NS);
}

bool kp_ring_release(void)
{
    uint32_t was = KP_RING_HELD;
    while (!kp_cas_acq_rel(&kp_spool.ring_hold, &was, 0)) {
        if (was & KP_RING_BUSY) kp_io_nap(KP_RING_NAP_NS);
        was &= ~(uint32_t)KP_RING_BUSY;
    }
    return was == KP_RING_HELD;
}

void kp_ring_forget(void)
{
    kp_store_relaxed(&kp_spool.ring_hold, 0);
    stay_ms = 0;
    looked_ns = 0;
    written = recorded_ns = 0;
    is_short_noted = false;
    kp_store_relaxed(&is_touched, false);
}

static uint64_t part_ns(void) { return kp_spool.ring_ms * UINT64_C(1000000) / KP_RING_PARTS; }

/* A look that comes late counts as two. Threads that find no room record nothing. */
static void recorded_turn(uint64_t now_ns, bool has_little)
{
    const uint64_t now = kp_chunk_written(), most_ns = 2 * part_ns();
    const uint64_t since_ns = looked_ns ? now_ns - looked_ns : 0;
    if (now != written || kp_load_relaxed(&is_touched) || has_little)
        recorded_ns += since_ns < most_ns ? since_ns : most_ns;
    kp_store_relaxed(&is_touched, false);
    looked_ns = now_ns;
    written = now;
}

void kp_ring_round(uint64_t now_ns)
{
    if (!kp_spool.ring_ms) return;
    const bool has_little = is_short();
    const uint32_t chunks = kp_load_relaxed(&kp_spool.chunks);
    if (looked_ns && now_ns < looked_ns + part_ns() && !has_little) return;
    stay_turn(has_little);
    recorded_turn(now_ns, has_little);
    if (!round_enter(has_little)) return;
    /* once a window is over it is exported, and nothing of it goes */
    for (uint32_t i = 1; i < chunks && kp_gate_get() & KP_GATE_RECORD; i++)
        kp_chunk_expire(i, (uint32_t)(recorded_ns / 1000000), stay_ms);
    round_leave();
    if (has_little) kp_spool_retry();
}

// SPDX-License-Identifier: Apache-2.0
/*
 * carry.c - says which chunks move from memory to the disk, and when
 *
 * Called by: the writer, each round; the thread that closes the spool, once the writer has ended
 * Owns:      the work that kprof-disk is at
 * Locks:     none
 * On fail:   chunks stay in memory. Once that is full, records find no chunk, and kp_carry_why says why
 * Safe in:   signal handlers no; after fork: kp_carry_forget
 *
 * If the half in memory outlives the process, chunks move only when they take much memory, and changes are copied once
 * a second: /dev/shm may end with a container, a job or the machine. That is left where it would take a descriptor of
 * the program's few. If memory ends with the process, chunks move at once, and a chunk that is not full is copied ten
 * times a second (decisions/120).
 */
#include "collector/record/record_internal.h"

#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_CARRY_PART 4u   /* chunks move when they take more than such a part of the memory, */
#define KP_CARRY_MOST 256u /* or than so many chunks (16 MB) */
#define KP_CARRY_RETRY_NS 5000000000u
#define KP_CARRY_COPY_NS 1000000000u /* changes are copied so often, */
#define KP_CARRY_EAGER_NS 100000000u /* or so often where memory ends with the process */
#define KP_CARRY_SLOW_MS 100u        /* no host thread waits for a disk that takes longer over its work */
#define KP_CARRY_COPIES 3u           /* of a chunk of names or frames that is full: late ones may still be written */

static struct {
    struct kp_disk_item items[KP_DISK_ITEMS];
    uint32_t item_n; /* not 0: kprof-disk is at them */
    uint32_t move;   /* the next chunk to look at for a move; 0: all were looked at */
    uint32_t scan;   /* the next chunk to look at for a copy; 0: no scan is due */
    uint64_t head;   /* head_state() of the header on the disk */
    uint64_t scanned_ns, retry_ns;
    bool is_last, is_last_scanned; /* all must go to the disk now; the scan for that has begun */
} work;
static _Atomic uint32_t why; /* enum kp_loss of the last refusal, or KP_LOSS_NO_CHUNK */

static bool is_eager(void) { return work.is_last || !kp_spool.memory[0]; }

static uint64_t now_ns(void) { return kp_clock_ns(CLOCK_MONOTONIC); }

/* Says why chunks do not move, for those that find no memory. */
static void why_tell(void)
{
    enum kp_loss said = (enum kp_loss)kp_load_relaxed(&why);
    if (said == KP_LOSS_NO_CHUNK && kp_disk_waits_ms() > KP_CARRY_SLOW_MS) said = KP_LOSS_STANDS;
    kp_store_relaxed(&kp_spool.stuck, said);
}

/* ---- what was asked for is done ---- */

static void item_settle(const struct kp_disk_item *item, bool is_done)
{
    /* If it was not done, records of a cycle that is over stay on the disk. */
    if (item->what == KP_DISK_ERASE) kp_chunk_erased(item->chunk);
    if (item->what == KP_DISK_COPY && item->chunk) kp_chunk_copied(item->chunk, is_done);
    if (item->what != KP_DISK_MOVE) return;
    if (!is_done) kp_chunk_move_undo(item->chunk);
    else if (kp_chunk_move_end(item->chunk) == KP_CHUNK_STALE) kp_chunk_stale(item->chunk);
}

/* False: kprof-disk is still at it. */
static bool work_settle(void)
{
    uint32_t done;
    enum kp_loss refused;
    if (!work.item_n) return true;
    if (!kp_disk_done(&done, &refused)) return false;
    for (uint32_t i = 0; i < work.item_n; i++) item_settle(&work.items[i], i < done);
    work.item_n = 0;
    kp_store_relaxed(&why, refused);
    if (refused != KP_LOSS_NO_CHUNK) work.retry_ns = now_ns() + KP_CARRY_RETRY_NS;
    return true;
}

/* ---- what is asked for next ---- */

static void item_add(uint32_t chunk, enum kp_disk_what what)
{
    work.items[work.item_n++] = (struct kp_disk_item){chunk, what};
}

/* A chunk that is not ready for a thread holds something. */
static bool is_much(void)
{
    const uint32_t part = kp_spool.budget / KP_CARRY_PART, most = part < KP_CARRY_MOST ? part : KP_CARRY_MOST;
    return kp_load_relaxed(&kp_spool.resident) > most + kp_chunk_ready();
}

/* Goes on where the last round found no more room for work. */
static void moves_add(void)
{
    const uint32_t chunks = kp_load_relaxed(&kp_spool.chunks);
    if (!work.move) work.move = 1;
    for (; work.move < chunks && work.item_n < KP_DISK_ITEMS / 2; work.move++)
        if (kp_chunk_move_begin(work.move)) item_add(work.move, KP_DISK_MOVE);
    if (work.move >= chunks) work.move = 0;
}

/* A chunk of cells that is not cut any more: how often it was copied since. Its last cells may still be written. */
static uint32_t cells_copied(uint32_t copied) { return copied < KP_CARRY_COPIES ? copied + 1 : 1; }

/* Whether the disk lacks something of a chunk that stays in memory. Counts it as written. */
static bool is_copy_due(uint32_t chunk, _Atomic uint32_t *copied)
{
    const struct kp_chunk_head *head = kp_spool_chunk(chunk);
    const uint32_t kind = kp_load_relaxed(&((struct kp_chunk_head *)(uintptr_t)head)->kind);
    const bool has_cells = kind == KP_CHUNK_STRINGS || kind == KP_CHUNK_FRAMES;
    uint32_t used = kp_load_relaxed(&((struct kp_chunk_head *)(uintptr_t)head)->used);
    if (has_cells) used = kp_cells_used(chunk);
    const uint32_t before = kp_load_relaxed(copied);
    if (has_cells && !used && before == KP_CARRY_COPIES) return false;
    if (has_cells && !used) used = cells_copied(before);
    else if (before == used) return false;
    kp_store_relaxed(copied, used);
    return true;
}

static void copy_add(uint32_t chunk)
{
    _Atomic uint32_t *copied;
    const enum kp_chunk_use use = kp_chunk_use(chunk, &copied);
    const bool is_used = use == KP_CHUNK_KEPT || use == KP_CHUNK_RECORDS;
    if (is_used && is_copy_due(chunk, copied)) item_add(chunk, KP_DISK_COPY);
    if (use == KP_CHUNK_FREE_COPIED) item_add(chunk, KP_DISK_ERASE);
}

/* A number that grows with each change of the header: its counts only grow. */
static uint64_t head_state(void)
{
    return kp_loss_total() + kp_load_relaxed(&kp_spool.chunks) + kp_load_relaxed(&kp_spool_head()->text_bytes);
}

static void copies_add(void)
{
    const uint32_t chunks = kp_load_relaxed(&kp_spool.chunks);
    if (!work.scan) return;
    for (; work.scan < chunks && work.item_n + 1 < KP_DISK_ITEMS; work.scan++) copy_add(work.scan);
    if (work.scan < chunks) return;
    work.scan = 0;
    const uint64_t head = head_state();
    const bool is_changed = work.item_n || work.head != head;
    work.head = head;
    if (is_changed || work.is_last) item_add(0, KP_DISK_COPY); /* the header last: it counts the chunks */
}

static void scan_begin(void)
{
    if (!work.scanned_ns && !is_eager()) work.scanned_ns = now_ns(); /* a short program ends without a copy */
    const uint64_t since = now_ns() - work.scanned_ns;
    if (work.scan || work.is_last_scanned || !(is_eager() || is_much() || kp_disk_stays_open())) return;
    if (!work.is_last && since < (is_eager() ? KP_CARRY_EAGER_NS : KP_CARRY_COPY_NS)) return;
    work.scan = 1;
    work.scanned_ns = now_ns();
    work.is_last_scanned = work.is_last;
}

void kp_carry_round(void)
{
    uint32_t stale;
    const bool is_free = work_settle();
    why_tell();
    if (!is_free) return;
    if (kp_load_relaxed(&why) != KP_LOSS_NO_CHUNK && now_ns() < work.retry_ns) return;
    while (work.item_n < KP_DISK_ITEMS / 4 && (stale = kp_chunk_erase_pop()) != 0) item_add(stale, KP_DISK_ERASE);
    if (is_eager() || is_much()) moves_add();
    scan_begin();
    copies_add();
    if (work.item_n) kp_disk_ask(work.items, work.item_n, work.is_last);
}

/* ---- at the end ---- */

/* No chunk is with a thread any more: all that hold records are left. */
bool kp_carry_all(uint32_t most_ms)
{
    bool is_done = false, is_refused = false;
    work.is_last = true;
    work.retry_ns = 0;
    (void)work_settle();
    kp_store_relaxed(&why, KP_LOSS_NO_CHUNK);
    kp_chunk_settle(UINT32_MAX);
    while (!is_done && !is_refused && kp_disk_waits_ms() <= most_ms) {
        kp_carry_round();
        is_refused = kp_load_relaxed(&why) != KP_LOSS_NO_CHUNK;
        is_done = !work.item_n && !work.move && !work.scan;
        if (!is_done) kp_io_nap(200000);
    }
    return is_done && !is_refused;
}

void kp_carry_forget(void)
{
    memset(&work, 0, sizeof work);
    kp_store_relaxed(&why, KP_LOSS_NO_CHUNK);
}

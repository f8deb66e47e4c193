// SPDX-License-Identifier: Apache-2.0
/*
 * record.c - opens and closes the write side
 *
 * Called by: boot and cycle code; never a hook
 * Locks:     one mutex around open and close
 * On fail:   one log line says what failed. No file is left on disk, and nothing is recorded.
 * Safe in:   signal handlers no; kp_record_forget belongs to the child side of fork
 */
#include "collector/record/record_internal.h"

#include <errno.h>
#include <unistd.h>

#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

#define KP_RECORD_UNLINK_MS 1000u
#define KP_RECORD_WAITING 64 /* cycles that wait to be recycled; a cycle beyond them keeps its chunks */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int grow_refusal(const struct kp_record_options *options)
{
    const enum kp_loss why = (enum kp_loss)kp_load_relaxed(&kp_spool.grow_error);
    if (why == KP_LOSS_LIMIT) return -EFBIG;
    return options->share && why == KP_LOSS_CAP ? -ENOBUFS : -ENOSPC;
}

static void ring_note(void)
{
    char ms[16];
    kp_fmt(ms, sizeof ms, "%u", (unsigned)kp_spool.ring_ms);
    if (kp_spool.ring_ms) (void)kp_record_note("ring_ms", ms);
}

static int rooms_open(const struct kp_record_options *options)
{
    int rc = kp_spool_has_share(options) ? kp_spool_open(options) : -ENOBUFS;
    if (rc == 0) rc = kp_chunk_open(kp_spool.max_chunks);
    if (rc == 0) rc = kp_string_open();
    if (rc < 0) return rc;
    if (kp_chunk_grow(KP_PIECE_CHUNKS) == 0) return grow_refusal(options);
    kp_quiesce_open();
    kp_store_release(&kp_spool.state, KP_SPOOL_OPEN); /* pairs with: chunk.c:free_pop */
    rc = kp_meta_open();
    if (rc == 0) rc = kp_disk_open(options->dir);
    if (rc == 0) rc = kp_writer_open(options->tick);
    if (rc < 0) return rc;
    kp_loss_open(kp_spool_head());
    kp_record_clock();
    ring_note();
    return 0;
}

static void say_refused(const struct kp_record_options *options, int rc)
{
    if (rc != -ENOBUFS || !options->share) /* once also for forked children */
        KP_LOG_ONCE(0, "nothing is recorded: no file can be made in %s (%s); KPROF_DIR names another folder",
                    options->dir, kp_log_error_text(rc));
    else if (kp_add_relaxed(&options->share->refused, 1) == 0)
        kp_log(0,
               "forked children are not recorded from here on: the spools of others take %lu MB (KPROF_MAX_MB) in %s",
               (unsigned long)(options->max_bytes >> 20), options->dir);
}

static void chunks_forget(void)
{
    kp_meta_forget();
    kp_string_forget();
    kp_frame_forget();
    kp_chunk_forget();
    kp_carry_forget();
}

int kp_record_open(const struct kp_record_options *options)
{
    int cancel; /* open() is a cancellation point: the host's thread must not end there with the lock held */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&lock);
    uint32_t state = kp_load_relaxed(&kp_spool.state);
    int rc = state == KP_SPOOL_OPEN ? 0 : state == KP_SPOOL_SHUT ? -ESHUTDOWN : rooms_open(options);
    if (rc < 0 && state == KP_SPOOL_NONE) {
        say_refused(options, rc);
        (void)kp_disk_unlink(KP_RECORD_UNLINK_MS);
        kp_disk_close();
        kp_store_release(&kp_spool.state, KP_SPOOL_NONE);
        chunks_forget();
        kp_disk_forget();
        kp_spool_abandon();
    }
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
    return rc;
}

bool kp_record_is_open(void) { return kp_spool_is_ours(); }

const char *kp_record_path(void) { return kp_spool.path; }

const char *kp_record_memory(void) { return kp_spool.memory; }

void kp_record_reopen(struct kp_halves *out)
{
    *out = (struct kp_halves){.memory = kp_spool_reopen(), .disk = kp_disk_reopen()};
}

bool kp_record_is_on_disk(void) { return kp_disk_has_chunks(); }

uint64_t kp_record_taken(void) { return (uint64_t)kp_load_relaxed(&kp_spool.chunks) * KP_CHUNK_BYTES; }

void kp_record_forgo(void)
{
    pthread_mutex_lock(&lock);
    /* The file could not be reached any more if it had no descriptor. */
    if (kp_spool_is_ours() && kp_load_relaxed(&kp_spool.fd) >= 0) {
        kp_spool_unlink(true);
        (void)kp_disk_unlink(KP_RECORD_UNLINK_MS);
    }
    pthread_mutex_unlock(&lock);
}

bool kp_record_is_full(void)
{
    return kp_load_relaxed(&kp_spool.grow_error) != KP_LOSS_NO_CHUNK && kp_chunk_ready() == 0;
}

bool kp_record_is_in_place(void) { return kp_disk_is_in_place(); }

static uint32_t waiting[KP_RECORD_WAITING], waiting_count; /* cycles to recycle once no hook writes to them */

void kp_record_recycle(uint32_t cycle)
{
    if (!kp_spool_is_ours() || cycle == 0) return;
    if (waiting_count < KP_RECORD_WAITING) waiting[waiting_count++] = cycle;
    for (uint32_t i = waiting_count; i-- > 0;) {
        /* A thread was still inside when the wait for this cycle ran out: its chunk must not change owner. */
        if (kp_quiesce_is_pending(waiting[i]) && kp_record_quiesce(waiting[i], 0) < 0) continue;
        kp_chunk_recycle(waiting[i]);
        waiting[i] = waiting[--waiting_count];
    }
    kp_spool_retry();
}

bool kp_record_piece(uint32_t i, uintptr_t *from, uintptr_t *to)
{
    return kp_spool_is_ours() && kp_spool_piece(i, from, to);
}

uint64_t kp_record_events(uint32_t cycle) { return kp_spool_is_ours() ? kp_chunk_events(cycle) : 0; }

void kp_record_drop_pages(void)
{
    if (kp_spool_is_ours()) kp_chunk_drop_pages();
}

/* True: both names are gone, or the file on the disk has all. */
static bool halves_settle(bool unlink_file, uint32_t most_ms)
{
    if (unlink_file) {
        kp_spool_unlink(true);
        return kp_disk_unlink(most_ms < KP_RECORD_UNLINK_MS ? most_ms : KP_RECORD_UNLINK_MS);
    }
    if (!kp_carry_all(most_ms)) return false;
    kp_spool_unlink(false);
    return true;
}

bool kp_record_close(bool unlink_file, uint32_t most_ms)
{
    bool is_settled = true;
    pthread_mutex_lock(&lock);
    if (kp_spool_is_ours()) {
        kp_record_clock();
        kp_writer_close();
        kp_store_release(&kp_spool.state, KP_SPOOL_SHUT); /* pairs with: chunk.c:free_pop; no new chunk from here on */
        kp_store_release(&kp_spool_head()->closed, 1);    /* pairs with: the readers' header */
        is_settled = halves_settle(unlink_file, most_ms);
        kp_disk_close();
    }
    pthread_mutex_unlock(&lock);
    return is_settled;
}

void kp_record_forget(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    waiting_count = 0;
    kp_thread_forget();
    kp_writer_forget();
    kp_wakeup_forget();
    chunks_forget();
    kp_ring_forget();
    kp_disk_forget();
    kp_loss_forget();
    kp_spool_forget(); /* the parent's file stays mapped here, untouched */
}

// SPDX-License-Identifier: Apache-2.0
/*
 * meta.c - writes records about the recording: cycles, clock samples, notes in the header
 *
 * Called by: boot and cycle code, the writer thread; never a hook
 * Owns:      the current chunk of meta records, and one in reserve. So a cycle's end finds room although events have
 *            taken every other chunk.
 * Locks:     one mutex, held for a few stores and looks at the clock. The writer only tries it
 * Safe in:   signal handlers no; after fork no (kp_meta_forget makes a new mutex)
 */
#include "collector/record/record_internal.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_META_STAYS_NS UINT64_C(60000000000)
#define KP_META_KEEP 8192u /* the last bytes are for cycles, once there is no reserve left */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kp_chunk_head *current, *reserve;
static bool is_text_full;
static struct kp_rec_clock *newest; /* with KPROF_RING: the sample that the next one replaces */
static uint64_t newest_began_ns;

int kp_meta_open(void)
{
    current = kp_chunk_take_kept(KP_CHUNK_META);
    reserve = kp_chunk_take_kept(KP_CHUNK_META);
    return current ? 0 : -ENOSPC;
}

/* Room for a record, with the lock held. A record that may wait leaves the last KP_META_KEEP bytes to cycles. */
static uint8_t *room_get(uint32_t bytes, bool may_wait)
{
    uint32_t used = kp_load_relaxed(&current->used);
    if (KP_CHUNK_BYTES - used < bytes + (may_wait && reserve == NULL ? KP_META_KEEP : 0)) {
        if (reserve == NULL) reserve = kp_chunk_take_kept(KP_CHUNK_META);
        if (reserve == NULL) return NULL;
        current = reserve;
        reserve = kp_chunk_take_kept(KP_CHUNK_META);
        used = kp_load_relaxed(&current->used);
    }
    return (uint8_t *)current + used;
}

/*
 * In a ring one sample a minute stays, for weeks, and between them the newest alone. It is no sample while it changes:
 * readers pass over what has no kind. While this process reads its ring, none changes. With the lock held.
 */
static bool newest_replace(const struct kp_rec_clock *now)
{
    if (!newest || kp_load_relaxed(&kp_spool.ring_hold) || now->mono_ns - newest_began_ns >= KP_META_STAYS_NS)
        return false;
    _Atomic uint8_t *const kind = (_Atomic uint8_t *)&newest->head.kind;
    kp_store_relaxed(kind, 0);
    kp_signal_fence();
    memcpy((uint8_t *)newest + sizeof newest->head, (const uint8_t *)now + sizeof now->head,
           sizeof *now - sizeof now->head);
    kp_store_release(kind, KP_KIND_CLOCK); /* pairs with: the readers' walk */
    return true;
}

/* With the lock held, which it gives back. `is_replaced`: a sample of the clock may be written over this one. */
static int put_and_unlock(const struct kp_rec *record, bool is_replaced)
{
    uint8_t *room = room_get(record->size, record->kind == KP_KIND_CLOCK);
    if (room) {
        memcpy(room, record, record->size);
        if (record->kind == KP_KIND_CLOCK) newest = is_replaced ? (struct kp_rec_clock *)(void *)room : NULL;
        /* pairs with: the readers' walk */
        kp_store_release(&current->used, kp_load_relaxed(&current->used) + record->size);
    }
    pthread_mutex_unlock(&lock);
    if (!room) kp_loss_count(record->kind, kp_load_relaxed(&kp_spool.grow_error));
    return room ? 0 : -ENOSPC;
}

int kp_record_meta(const void *record, uint32_t bytes)
{
    const struct kp_rec *head = record;
    if (!kp_spool_is_ours()) return -EBADF;
    if (bytes % 8 || bytes < sizeof *head || bytes > KP_MAX_RECORD || head->size != bytes) return -EINVAL;
    pthread_mutex_lock(&lock);
    return put_and_unlock(head, false);
}

/* "147305 4152592 2": ns on a core, ns in the queue for one. A kernel without schedstat has the former elsewhere. */
static void busy_look(struct kp_rec_clock *out)
{
    char text[64];
    const char *at = text;
    (void)kp_io_text("/proc/self/schedstat", text, sizeof text);
    const uint64_t had = kp_digits_read(&at), waited = *at == ' ' ? kp_digits(at + 1) : 0;
    out->busy_ns = had ? had + waited : kp_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    out->waited_ns = had ? waited : 0;
}

static struct kp_rec_clock clock_look(void)
{
    struct kp_clock_pair pair = {0};
    kp_clock_sample(&pair);
    return (struct kp_rec_clock){.head = {.kind = KP_KIND_CLOCK, .size = sizeof(struct kp_rec_clock)},
                                 .ticks = pair.ticks,
                                 .real_ns = pair.real_ns,
                                 .mono_ns = pair.mono_ns};
}

void kp_record_clock(void)
{
    const struct kp_rec_clock r = clock_look();
    (void)kp_record_meta(&r, sizeof r); /* a lost one was counted; the next comes in a second */
}

bool kp_meta_clock_try(void)
{
    if (!kp_spool_is_ours()) return true;
    struct kp_rec_clock busy = {0}, r;
    if (kp_spool.share) busy_look(&busy); /* not with the lock: it reads a file of /proc */
    if (pthread_mutex_trylock(&lock) != 0) return false;
    r = clock_look();
    r.busy_ns = busy.busy_ns;
    r.waited_ns = busy.waited_ns;
    if (newest_replace(&r)) {
        pthread_mutex_unlock(&lock);
        return true;
    }
    newest_began_ns = r.mono_ns;
    (void)put_and_unlock(&r.head, kp_spool.ring_ms != 0);
    return true;
}

static void line_write(char *to, const char *key, const char *value)
{
    size_t k = strlen(key);
    memcpy(to, key, k);
    to += k;
    *to++ = '=';
    for (; *value; value++) *to++ = *value == '\n' ? ' ' : *value;
    *to = '\n';
}

/* Puts a NOTE record, with the lock held. Newlines pad it to a multiple of 8 bytes. */
static int note_put(const char *key, const char *value, uint32_t line)
{
    uint32_t bytes = (uint32_t)(sizeof(struct kp_rec) + line + 7) & ~7u;
    uint8_t *room = room_get(bytes, true);
    if (room == NULL) return -ENOSPC;
    *(struct kp_rec *)room = (struct kp_rec){.kind = KP_KIND_NOTE, .size = (uint16_t)bytes};
    memset(room + bytes - 8, '\n', 8);
    line_write((char *)room + sizeof(struct kp_rec), key, value);
    /* pairs with: the readers' walk */
    kp_store_release(&current->used, kp_load_relaxed(&current->used) + bytes);
    return 0;
}

static int note_and_unlock(const char *key, const char *value, size_t line)
{
    int rc = 0;
    struct kp_file_head *h = kp_spool_head();
    uint32_t at = kp_load_relaxed(&h->text_bytes);
    if (line > KP_FILE_TEXT_MAX - at) is_text_full = true; /* later lines go behind: readers use a key's last line */
    if (is_text_full) {
        rc = note_put(key, value, (uint32_t)line);
    } else {
        line_write(h->text + at, key, value);
        kp_store_release(&h->text_bytes, at + (uint32_t)line); /* pairs with: the readers' header */
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int kp_record_note(const char *key, const char *value)
{
    size_t line = strlen(key) + strlen(value) + 2;
    if (!kp_spool_is_ours()) return -EBADF;
    if (line > KP_MAX_RECORD - 2 * sizeof(struct kp_rec)) return -E2BIG;
    pthread_mutex_lock(&lock);
    return note_and_unlock(key, value, line);
}

int kp_record_note_try(const char *key, const char *value)
{
    if (!kp_spool_is_ours()) return -EBADF;
    if (pthread_mutex_trylock(&lock) != 0) return -EAGAIN;
    return note_and_unlock(key, value, strlen(key) + strlen(value) + 2);
}

void kp_meta_forget(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh; /* its owner may be a thread that the child does not have */
    current = reserve = NULL;
    newest = NULL;
    is_text_full = false;
}

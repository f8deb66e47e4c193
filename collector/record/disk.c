// SPDX-License-Identifier: Apache-2.0
/*
 * disk.c - the helper thread kprof-disk, and the half of the spool on the disk
 *
 * Called by: record.c (open, close), carry.c (asks for chunks to be written); the exporting thread (reopen)
 * Owns:      the file in KPROF_SPOOL_DIR and its descriptor. No other helper thread enters a call on that file,
 *            but those that read it
 * Locks:     none; one word says whose turn it is with the work
 * Memory:    none of its own: chunks are written from where they are
 * On fail:   one line; the work is answered with the reason, and chunks stay in memory
 * Safe in:   signal handlers no; after fork the thread does not exist (kp_disk_forget)
 *
 * A disk may stand for minutes (a server that hangs, a snapshot), be full, or refuse. This thread waits for it then,
 * and nothing else does. It leaves a part of the disk to the program.
 */
#include "collector/record/record_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_fskind.h"
#include "collector/base/kp_helper_threads.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_room.h"
#include "collector/base/kp_poison.h"

#define KP_DISK_ROUND_NS 1000000000u
#define KP_DISK_RETRY_NS 5000000000u
#define KP_DISK_FIRST_MS 200u /* the opener waits so long for the file */

enum { IDLE, ASKED, DONE };

static struct kp_life life;
static struct {
    const char *dir;
    dev_t dev;
    ino_t ino;
    struct kp_room room;
    uint64_t retry_ns;
    const struct kp_disk_item *items; /* of the work */
    uint32_t count, done;
    bool is_last, is_shared;
    enum kp_loss why;
} disk;
static _Atomic int fd = -1; /* a hint: the host may have closed it, or reused its number */
static _Atomic int made;    /* 0: not yet; 1: the file is there; negative: -errno */
static _Atomic uint32_t stage;
static _Atomic uint64_t asked_ms; /* when the present call began */
static _Atomic bool has_chunks, is_writers, unlink_wanted, is_unlinked;

static uint64_t now_ns(void) { return kp_clock_ns(CLOCK_MONOTONIC); }

/* ---- the file ---- */

static bool is_our_file(int number)
{
    struct stat st;
    return number >= 0 && kp_io_fstat(number, &st) == 0 && st.st_dev == disk.dev && st.st_ino == disk.ino;
}

/* A descriptor for the present work, or -errno. A number that now names another file is not closed. */
static int fd_get(void)
{
    int now = kp_load_relaxed(&fd);
    if (is_our_file(now)) return now;
    now = kp_io_open(kp_spool.path, O_RDWR | O_NOFOLLOW, 0);
    if (now >= 0 && !is_our_file(now)) {
        kp_io_close(now);
        now = -ESTALE;
    }
    kp_store_relaxed(&fd, now);
    return now;
}

static void fd_give(void)
{
    const int now = kp_load_relaxed(&fd);
    if (now >= KP_IO_FD_HIGH || !is_our_file(now)) return;
    kp_store_relaxed(&fd, -1);
    kp_io_close(now);
}

/* The bytes that are left free for the program, and whether a write's failure is reported when the file is synced. */
static void disk_look(int number)
{
    struct kp_io_room room;
    if (kp_io_room_at(number, &room) != 0) return;
    disk.room.left_free = kp_fskind_left_free(room.bytes, room.spare);
    disk.is_shared = kp_fskind_may_stand(kp_fskind_of(room.type));
}

static int file_open(void)
{
    struct stat st;
    int rc = kp_io_mkdirs(disk.dir, KP_IO_FOLDER_MODE);
    const int number = rc < 0 ? rc : kp_io_open(kp_spool.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (number < 0) return number;
    rc = kp_io_fstat(number, &st);
    if (rc == 0) rc = (int)kp_io_pwrite_all(number, kp_spool_head(), KP_CHUNK_BYTES, 0);
    if (rc < 0) {
        (void)kp_io_unlink(kp_spool.path);
        kp_io_close(number);
        return rc;
    }
    disk.dev = st.st_dev;
    disk.ino = st.st_ino;
    disk_look(number);
    kp_store_relaxed(&fd, number);
    fd_give();
    return 1;
}

/* Makes the file, or tries again after some seconds. True: it is there. */
static bool file_have(void)
{
    const int before = kp_load_relaxed(&made);
    if (before > 0) return true;
    if (kp_load_relaxed(&unlink_wanted)) return false;
    if (before < 0 && !disk.is_last && now_ns() < disk.retry_ns) return false;
    const int rc = file_open();
    disk.retry_ns = now_ns() + KP_DISK_RETRY_NS;
    kp_store_release(&made, rc); /* pairs with: kp_disk_open */
    return rc > 0;
}

/* ---- the work ---- */

static enum kp_loss loss_of(int rc)
{
    if (rc == -EDQUOT) return KP_LOSS_QUOTA;
    return rc == -EFBIG ? KP_LOSS_LIMIT : KP_LOSS_DISK;
}

/* A chunk that its owner still writes to: the body first, then a head that counts no more than was written. */
static ssize_t copy_write(int number, const struct kp_chunk_head *at, uint32_t used, off_t place)
{
    struct kp_chunk_head head;
    memcpy(&head, at, sizeof head);
    kp_store_relaxed(&head.used, used);
    const ssize_t rc = kp_io_pwrite_all(number, at + 1, used - sizeof head, place + (off_t)sizeof head);
    return rc < 0 ? rc : kp_io_pwrite_all(number, &head, sizeof head, place);
}

static int chunk_write(int number, const struct kp_disk_item *item)
{
    const struct kp_chunk_head *at = kp_spool_chunk(item->chunk);
    const off_t place = (off_t)item->chunk * KP_CHUNK_BYTES;
    /* pairs with: kp_record.h:kp_put_commit */
    const uint32_t used = kp_load_acquire(&((struct kp_chunk_head *)(uintptr_t)at)->used);
    if (used < sizeof *at || used > KP_CHUNK_BYTES) return 0; /* given away since */
    const ssize_t rc =
        item->what == KP_DISK_MOVE ? kp_io_pwrite_all(number, at, used, place) : copy_write(number, at, used, place);
    if (rc >= 0) kp_store_relaxed(&has_chunks, true);
    return rc < 0 ? (int)rc : 0;
}

/* Frees the blocks, or where that cannot be, marks the chunk as free. */
static int chunk_erase(int number, uint32_t chunk)
{
    const off_t place = (off_t)chunk * KP_CHUNK_BYTES;
    const struct kp_chunk_head none = {.magic = KP_CHUNK_MAGIC, .kind = KP_CHUNK_FREE, .used = sizeof none};
    if (kp_io_punch(number, place, KP_CHUNK_BYTES) == 0) return 0;
    const ssize_t rc = kp_io_pwrite_all(number, &none, sizeof none, place);
    return rc < 0 ? (int)rc : 0;
}

static int item_do(int number, const struct kp_disk_item *item)
{
    if (item->what == KP_DISK_ERASE) return chunk_erase(number, item->chunk);
    if (item->chunk) return chunk_write(number, item);
    if (disk.is_last) (void)kp_io_truncate(number, (off_t)kp_load_relaxed(&kp_spool.chunks) * KP_CHUNK_BYTES);
    const ssize_t rc = kp_io_pwrite_all(number, kp_spool_head(), KP_CHUNK_BYTES, 0);
    return rc < 0 ? (int)rc : 0;
}

static enum kp_loss refuse(enum kp_loss why, int rc)
{
    if (why == KP_LOSS_RESERVE)
        KP_LOG_ONCE(1, "%s has little room, which is left free for the program: new events may be dropped and counted",
                    disk.dir);
    else
        KP_LOG_ONCE(1, "cannot write to %s (%s): what is recorded is kept, new events may be dropped and counted",
                    kp_spool.path, kp_log_error_text(rc));
    return why;
}

/* Chunks whose memory goes once they are on the disk. */
static bool has_moves(void)
{
    for (uint32_t i = 0; i < disk.count; i++)
        if (disk.items[i].what == KP_DISK_MOVE) return true;
    return false;
}

/* Does what was asked for, up to the first refusal. */
static enum kp_loss items_do(void)
{
    const bool has_file = file_have();
    const int made_rc = kp_load_relaxed(&made), number = has_file ? fd_get() : made_rc < 0 ? made_rc : -ENOENT;
    if (number < 0) return refuse(loss_of(number), number);
    for (; disk.done < disk.count; disk.done++) {
        const struct kp_disk_item *item = &disk.items[disk.done];
        const bool is_room_needed = item->what != KP_DISK_ERASE && item->chunk && !disk.is_last;
        if (is_room_needed && !kp_room_take(&disk.room, number, KP_CHUNK_BYTES)) return refuse(KP_LOSS_RESERVE, 0);
        kp_store_relaxed(&asked_ms, now_ns() / 1000000);
        const int rc = item_do(number, item);
        if (rc < 0) return refuse(loss_of(rc), rc);
    }
    const int rc = disk.is_shared && has_moves() ? kp_io_fsync(number) : 0;
    if (rc < 0) disk.done = 0; /* no chunk leaves memory that the server may not have */
    if (rc < 0) return refuse(loss_of(rc), rc);
    fd_give();
    return KP_LOSS_NO_CHUNK;
}

static void name_remove(void)
{
    if (kp_load_relaxed(&made) > 0 && kp_disk_is_in_place()) (void)kp_io_unlink(kp_spool.path);
    kp_store_release(&is_unlinked, true); /* pairs with: kp_disk_unlink */
}

static void round_do(void)
{
    const bool is_unwanted = kp_load_acquire(&unlink_wanted); /* pairs with: kp_disk_unlink */
    if (is_unwanted && !kp_load_relaxed(&is_unlinked)) name_remove();
    (void)file_have();
    if (kp_load_acquire(&stage) != ASKED) return; /* pairs with: kp_disk_ask */
    disk.why = items_do();
    kp_store_release(&stage, DONE); /* pairs with: kp_disk_done */
    kp_writer_wake();
}

static void disk_wake(void) { kp_wakeup_wake(KP_WAKEUP_DISK); }

static void *disk_main(void *arg)
{
    (void)arg;
    kp_life_enter(&life);
    kp_io_apart(true);
    while (kp_life_is_wanted(&life)) {
        if (kp_helpers_pause_wanted()) return NULL; /* kp_helpers_resume starts it again */
        round_do();
        kp_wakeup_wait(KP_WAKEUP_DISK, KP_DISK_ROUND_NS);
    }
    kp_life_end(&life);
    return NULL;
}

void kp_disk_beat(void)
{
    if (kp_load_acquire(&is_writers)) round_do(); /* pairs with: kp_disk_open */
}

/* ---- what others ask ---- */

void kp_disk_ask(const struct kp_disk_item *items, uint32_t count, bool is_last)
{
    disk.items = items;
    disk.count = count;
    disk.done = 0;
    disk.is_last = is_last;
    kp_store_relaxed(&asked_ms, now_ns() / 1000000);
    kp_store_release(&stage, ASKED); /* pairs with: disk.c:round_do */
    if (kp_load_relaxed(&is_writers)) round_do();
    else disk_wake();
}

bool kp_disk_done(uint32_t *count, enum kp_loss *why)
{
    if (kp_load_acquire(&stage) != DONE) return false; /* pairs with: disk.c:round_do */
    *count = disk.done;
    *why = disk.why;
    kp_store_relaxed(&stage, IDLE);
    return true;
}

uint64_t kp_disk_waits_ms(void)
{
    return kp_load_relaxed(&stage) == ASKED ? now_ns() / 1000000 - kp_load_relaxed(&asked_ms) : 0;
}

/* A program that allows itself few descriptors has none above its own: then each look at the file takes one of them. */
bool kp_disk_stays_open(void) { return kp_load_relaxed(&fd) >= KP_IO_FD_HIGH; }

bool kp_disk_has_chunks(void) { return kp_load_relaxed(&has_chunks); }

bool kp_disk_unlink(uint32_t most_ms)
{
    if (!disk.dir) return true;             /* it was not opened */
    kp_store_release(&unlink_wanted, true); /* pairs with: disk.c:round_do */
    if (kp_load_relaxed(&is_writers)) round_do();
    else disk_wake();
    for (uint32_t ms = 0; ms < most_ms * 10 && !kp_load_acquire(&is_unlinked); ms++) kp_io_nap(100000);
    return kp_load_acquire(&is_unlinked); /* pairs with: disk.c:name_remove */
}

bool kp_disk_is_in_place(void)
{
    struct stat st;
    return kp_io_stat(kp_spool.path, &st) == 0 && st.st_dev == disk.dev && st.st_ino == disk.ino;
}

/*
 * A training script may empty the folder it logs to, but the open file is still whole. Another user may have put
 * another file in its place. So each opened file's device and inode are compared.
 */
int kp_disk_reopen(void)
{
    if (!kp_disk_has_chunks()) return -ENOENT;
    return kp_spool_reopen_file(kp_spool.path, kp_load_relaxed(&fd), disk.dev, disk.ino);
}

/* ---- life ---- */

/* A folder that cannot be written is known at once on a disk that answers. */
int kp_disk_open(const char *dir)
{
    disk.dir = dir;
    kp_life_begin(&life);
    if (kp_helpers_start(disk_main, "kprof-disk", KP_WRITER_NICE, disk_wake) != 0) {
        kp_life_none(&life);
        kp_log(1, "no thread kprof-disk: the writer also writes to the disk, and may wait for it");
        kp_store_release(&is_writers, true); /* pairs with: kp_disk_beat */
        round_do();
    }
    for (uint32_t i = 0; i < KP_DISK_FIRST_MS * 20 && !kp_load_acquire(&made); i++) kp_io_nap(50000);
    const int rc = kp_load_acquire(&made); /* pairs with: disk.c:file_have */
    return rc < 0 ? rc : 0;
}

void kp_disk_end(void) { kp_life_ask(&life, disk_wake); }

void kp_disk_close(void) { kp_life_close(&life, disk_wake); }

void kp_disk_forget(void)
{
    kp_life_none(&life);
    memset(&disk, 0, sizeof disk);
    kp_store_relaxed(&fd, -1);
    kp_store_relaxed(&made, 0);
    kp_store_relaxed(&stage, IDLE);
    kp_store_relaxed(&has_chunks, false);
    kp_store_relaxed(&is_writers, false);
    kp_store_relaxed(&unlink_wanted, false);
    kp_store_relaxed(&is_unlinked, false);
}

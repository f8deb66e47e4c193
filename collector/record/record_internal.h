// SPDX-License-Identifier: Apache-2.0
/*
 * record_internal.h - what the files of collector/record share; no other room includes it
 *
 * spool.c holds the half of the spool in memory (place.c says where), chunk.c gives chunks of it to threads, thread.c
 * keeps each thread's state. put.c and strings.c are the hot path. meta.c, loss.c and quiesce.c work behind it.
 * writer.c, ticker.c and disk.c are helper threads, with wakeup.c and helper_life.c. carry.c, on the writer, says which
 * chunks disk.c writes. record.c opens and closes it all. Each kp_..._forget is called in a forked
 * child: it drops what the parent kept, and changes nothing in the parent's file.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

#include "collector/record/kp_record.h"

/* ---- place.c: the memory that holds records ---- */

/* Makes a file in memory. Writes its path, or "" where it has none. Returns its descriptor or -errno. */
int kp_place_open(const char *name, char *path, size_t bytes);
/* How many bytes of memory records may take: `wanted`, or what this machine can spare where that is 0. */
uint64_t kp_place_budget(uint64_t wanted, bool is_shared);

/* ---- spool.c: the half in memory, mapped for ever, piece by piece ---- */

enum { KP_SPOOL_NONE, KP_SPOOL_OPEN, KP_SPOOL_SHUT };
#define KP_PIECE_CHUNKS 64u /* 4 MB */
#define KP_PIECE_BYTES ((size_t)KP_PIECE_CHUNKS * KP_CHUNK_BYTES)
struct kp_spool {
    _Atomic uint32_t state;
    uint8_t *_Atomic *pieces;    /* chunk i < chunks lies in piece i / KP_PIECE_CHUNKS. NULL: no addresses yet */
    uint32_t max_chunks;         /* cap, header included */
    _Atomic uint32_t chunks;     /* so many have addresses, header included */
    uint32_t budget;             /* so many may have memory at a time */
    _Atomic uint32_t resident;   /* so many have memory */
    _Atomic uint32_t grow_error; /* enum kp_loss: why no chunk comes, or KP_LOSS_NO_CHUNK */
    _Atomic uint32_t stuck;      /* enum kp_loss: why chunks do not move to the disk, or KP_LOSS_NO_CHUNK */
    _Atomic int fd;              /* a hint: the host may have closed it, or reused its number */
    dev_t dev;
    ino_t ino;
    pid_t pid;
    bool is_broken;                /* a mapping failed: never grows again */
    struct kp_record_share *share; /* or NULL */
    uint64_t shared_bytes;         /* counted there for this spool */
    uint32_t ring_ms;              /* chunks whose records are older are used again; 0: none */
    _Atomic uint32_t ring_hold;    /* ring.c's: whether its records may go */
    uint64_t share_most;           /* the most for all together */
    char path[1024];               /* of the half on the disk */
    char memory[512];              /* of the half in memory, or "" */
};
extern struct kp_spool kp_spool;

int kp_spool_open(const struct kp_record_options *options);
/*
 * Allocates and maps up to `want` more chunks, from `first` (the next chunk) on. Returns how many. Only kp_chunk_grow
 * calls it.
 */
uint32_t kp_spool_grow(uint32_t first, uint32_t want);
bool kp_spool_fill(uint32_t chunk); /* gives the chunk memory again, all zeroes. False: there is none */
bool kp_spool_free(uint32_t chunk); /* takes it */
uint32_t kp_spool_spare(void);      /* so many more chunks may have memory */
/* Have those that share a limit room for one more? The opener makes a piece at once (1-2 ms), the writer the stock. */
bool kp_spool_has_share(const struct kp_record_options *options);
/* There was no memory (-errno): logs it, and delays the next try by some seconds. */
void kp_spool_grow_failed(int rc);
#define KP_PAGE 4096u
void kp_spool_drop_pages(uint32_t first, uint32_t count); /* from this process's memory; the file keeps the bytes */
void kp_spool_retry(void);                                /* chunks were freed: let grow try again */
void kp_spool_abandon(void);                              /* open failed half way: removes file and mapping */
void kp_spool_forget(void);                               /* in a forked child: the parent's file stays mapped */
void kp_spool_unlink(bool is_whole); /* the name of the half in memory; is_whole: that on the disk goes, too */
/* A descriptor to read of that file: by its path, "" for none, or by a number that it has. -ENOENT: it is gone. */
int kp_spool_reopen_file(const char *path, int number, uint64_t dev, uint64_t ino);
int kp_spool_reopen(void);   /* a descriptor of the half in memory, to read */
bool kp_spool_is_ours(void); /* open, and this process made it (not a child that only inherited the mapping) */
static inline struct kp_file_head *kp_spool_head(void)
{
    return (struct kp_file_head *)kp_load_relaxed(&kp_spool.pieces[0]);
}
static inline struct kp_chunk_head *kp_spool_chunk(uint32_t index)
{
    return (struct kp_chunk_head *)(kp_load_relaxed(&kp_spool.pieces[index / KP_PIECE_CHUNKS]) +
                                    (size_t)(index % KP_PIECE_CHUNKS) * KP_CHUNK_BYTES);
}
/* The address of a cell. Cells are numbered through the file, and none crosses the end of its chunk. */
static inline void *kp_spool_cell(uint32_t cell)
{
    const size_t at = (size_t)cell * KP_STR_CELL;
    return kp_load_relaxed(&kp_spool.pieces[at / KP_PIECE_BYTES]) + at % KP_PIECE_BYTES;
}
bool kp_spool_piece(uint32_t i, uintptr_t *from, uintptr_t *to); /* also pieces without records */
uint32_t kp_spool_index(const struct kp_chunk_head *chunk);      /* its number. Not hot: looks for its piece */

/* ---- chunk.c: the owner of each chunk ---- */

int kp_chunk_open(uint32_t max_chunks);
/* Adds up to `want` free chunks. Returns how many. Writer thread, or the opener before it runs. */
uint32_t kp_chunk_grow(uint32_t want);
#define KP_CHUNK_DEMAND_MAX 16u /* after so many requests (1 MB) the writer keeps a stock */
void kp_chunk_ask(void);        /* a thread asks for a chunk */
uint32_t kp_chunk_demand(void); /* the number of requests so far, at most KP_CHUNK_DEMAND_MAX */
void kp_chunk_drop_pages(void); /* all that hold records, see kp_spool_drop_pages */
struct kp_chunk_head *kp_chunk_take(struct kp_thread *t, uint32_t cycle); /* for records; NULL if none is free */
struct kp_chunk_head *kp_chunk_take_kept(enum kp_chunk_kind kind);        /* for strings and meta: never recycled */
void kp_chunk_give_kept(struct kp_chunk_head *chunk);
void kp_chunk_quit(struct kp_chunk_head *chunk, uint32_t cycle);   /* its thread goes on in another: it may move */
void kp_chunk_orphan(struct kp_chunk_head *chunk, uint32_t cycle); /* its thread exits, the chunk is not full */
struct kp_chunk_head *kp_chunk_adopt(uint32_t cycle);              /* an orphan of this cycle, or NULL */
void kp_chunk_settle(uint32_t cycle); /* no thread writes to cycles up to this one any more: their chunks may move */
void kp_chunk_recycle(uint32_t cycle);
/* Changes whenever a thread of the host records. The writer alone. */
uint64_t kp_chunk_written(void);
/* So long after its thread left a chunk without open ranges, frees it as kp_chunk_recycle does. The writer alone. */
void kp_chunk_expire(uint32_t index, uint32_t now_ms, uint32_t ring_ms);
uint32_t kp_chunk_ready(void);
uint64_t kp_chunk_taken(void);         /* chunks taken since open */
void kp_chunk_set_mark(uint32_t mark); /* a stock below it wakes the writer */
uint64_t kp_order_next(void);
uint64_t kp_chunk_events(uint32_t cycle);
void kp_chunk_forget(void);

/* Moving chunks to the disk: the writer alone calls these, or the thread that closes once it has ended. */
bool kp_chunk_move_begin(uint32_t index); /* true: its thread left it, and no range in it is open */
enum kp_chunk_move { KP_CHUNK_STAYS, KP_CHUNK_MOVED, KP_CHUNK_STALE };
/* The disk has it: frees its memory. STALE: its cycle was recycled meanwhile, so it must be erased from the disk. */
enum kp_chunk_move kp_chunk_move_end(uint32_t index);
void kp_chunk_move_undo(uint32_t index); /* the disk refused it: it is as it was before kp_chunk_move_begin */
uint32_t kp_chunk_erase_pop(void);       /* a recycled chunk that the disk still has, or 0 */
void kp_chunk_stale(uint32_t index);     /* the disk has it, and its cycle was recycled: kp_chunk_erase_pop gives it */
void kp_chunk_erased(uint32_t index);    /* it was erased: may be used again */
/* The bytes that a chunk in memory holds, and how many of them the disk has. FREE_COPIED: nothing, but the disk has old
 * records. */
enum kp_chunk_use { KP_CHUNK_UNUSED, KP_CHUNK_RECORDS, KP_CHUNK_KEPT, KP_CHUNK_FREE_COPIED };
enum kp_chunk_use kp_chunk_use(uint32_t index, _Atomic uint32_t **copied);
void kp_chunk_copied(uint32_t index, bool is_done); /* the disk has a copy, or refused it */

void kp_ring_round(uint64_t now_ns); /* ring.c: the writer, each round: old records go (KPROF_RING) */
void kp_ring_forget(void);

/* ---- carry.c: which chunks move from memory to the disk ---- */

void kp_carry_round(void); /* the writer, each round */
/*
 * Brings all that is in memory to the disk, once the writer has ended. False: the disk refused it, or made no progress
 * for so long.
 */
bool kp_carry_all(uint32_t most_ms);
void kp_carry_forget(void);

/* ---- disk.c: the thread kprof-disk, and the half on the disk ---- */

enum kp_disk_what { KP_DISK_COPY, KP_DISK_MOVE, KP_DISK_ERASE }; /* write it, write it, free its blocks */
struct kp_disk_item {
    uint32_t chunk;
    enum kp_disk_what what;
};
enum { KP_DISK_ITEMS = 64 };
/* Starts the thread, which makes the file, and waits for that a moment. 0 or -errno: the file cannot be made. */
int kp_disk_open(const char *dir);
/* Hands over work, which stays as it is until kp_disk_done. The last work may use what is left free for the program. */
void kp_disk_ask(const struct kp_disk_item *items, uint32_t count, bool is_last);
/* True once the work is done: *count items from the first on, and why no more, or KP_LOSS_NO_CHUNK. */
bool kp_disk_done(uint32_t *count, enum kp_loss *why);
uint64_t kp_disk_waits_ms(void);       /* how long the present work has taken; 0 without one */
void kp_disk_beat(void);               /* the writer, each round: does the work where there is no thread */
bool kp_disk_has_chunks(void);         /* records were written to it */
bool kp_disk_stays_open(void);         /* by a descriptor above those of the program: a look at it takes none of them */
bool kp_disk_unlink(uint32_t most_ms); /* its name goes; false: the disk did not answer in time */
bool kp_disk_is_in_place(void);        /* the path still leads to the file. Looks at the disk */
int kp_disk_reopen(void);              /* a descriptor of the file, to read. -ENOENT: nothing is on the disk */
void kp_disk_end(void);                /* asks the thread to end */
void kp_disk_close(void);              /* and waits for that, a second at most */
void kp_disk_forget(void);

/* ---- cells.c: cells of KP_STR_CELL bytes, never recycled ---- */

struct kp_cells {
    _Atomic uint64_t room_at __attribute__((aligned(KP_LINE))); /* chunk index << 32 | offset of the next cell */
    enum kp_chunk_kind kind;
};
uint32_t kp_cells_cut(struct kp_cells *cells, uint32_t bytes); /* the first cell's number, 0 without a free chunk */
uint32_t kp_cells_used(uint32_t chunk); /* bytes of the chunk that new cells are cut off; 0: it is another one */
void kp_cells_forget(struct kp_cells *cells);

/* ---- the rest ---- */

uint32_t kp_thread_count(void);                    /* alive now */
bool kp_thread_is_gone(const struct kp_thread *t); /* the thread has exited */
void kp_thread_forget(void);
int kp_string_open(void);
void kp_string_forget(void);
void kp_frame_forget(void);
void kp_loss_open(struct kp_file_head *head);
void kp_loss_wait_add(uint64_t ns); /* a thread waited so long for room */
void kp_loss_forget(void);
int kp_meta_open(void);
bool kp_meta_clock_try(void); /* kp_record_clock for the writer; false: the lock is taken, try again */
void kp_meta_forget(void);
void kp_quiesce_open(void);
bool kp_quiesce_is_pending(uint32_t cycle); /* a wait for this cycle, or a later one, ran out of time */

/* ---- our threads: wakeup.c, helper_life.c, writer.c, ticker.c ---- */

#define KP_TICK_NS 50000000u /* from one round to the next, unless woken */
#define KP_WRITER_NICE 1 /* it needs little, but a starved writer drops events; the ticker's scans hold the loader */
enum kp_wakeup { KP_WAKEUP_WRITER, KP_WAKEUP_TICKER, KP_WAKEUP_DISK, KP_WAKEUPS };
void kp_wakeup_wake(enum kp_wakeup whose);              /* ends its sleep, or the next one */
void kp_wakeup_wait(enum kp_wakeup whose, uint64_t ns); /* at most so long */
void kp_wakeup_forget(void);
struct kp_life {
    _Atomic uint32_t stage, tid;
    uint32_t rounds; /* the thread's own */
};
void kp_life_begin(struct kp_life *life); /* before its thread is started */
void kp_life_none(struct kp_life *life);  /* it was not, or a forked child does not have it */
void kp_life_enter(struct kp_life *life); /* on the thread, first */
bool kp_life_is_wanted(const struct kp_life *life);
bool kp_life_goes_on(struct kp_life *life); /* at each round: wanted, and not left alone by the host's threads */
void kp_life_end(struct kp_life *life);     /* on the thread, last */
void kp_life_ask(struct kp_life *life, void (*wake)(void));   /* asks it to end */
void kp_life_close(struct kp_life *life, void (*wake)(void)); /* and waits for that, a second at most */
/* Starts the thread that runs `tick` (NULL: there is none). If there is no thread, kp_ticker_beat runs it. */
void kp_ticker_open(void (*tick)(void));
void kp_ticker_beat(void); /* the writer, each round */
void kp_ticker_close(void);
void kp_ticker_forget(void);
int kp_writer_open(void (*tick)(void));
void kp_writer_close(void);
void kp_writer_forget(void);

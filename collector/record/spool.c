// SPDX-License-Identifier: Apache-2.0
/*
 * spool.c - the half of the spool in memory: created once, grown in segments, never unmapped
 *
 * Called by: the opener (any host thread), then only the writer thread
 * Owns:      the file in memory, its descriptor, and the address ranges that segments are mapped into
 *            (in a forked child, also a part of `share`, which other processes change)
 * Memory:    reserves addresses 4 MB at a time, or 64 MB once it uses that much. The host may limit addresses. A
 *            segment is allocated, mapped and touched before a hook sees it. So a store of a hook neither waits nor
 *            dies by SIGBUS, whatever the disk does. `budget` chunks at most have memory at a time.
 * On fail:   the file keeps its size; records that find no chunk are counted by reason
 * Safe in:   signal handlers no; after fork no (kp_record_forget forgets it all)
 */
#include "collector/record/record_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/format/kp_half.h"
#include "collector/base/kp_poison.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* glibc before 2.35 */
#endif

#define KP_SPOOL_MIN_CHUNKS 4u  /* header, meta, strings, records */
#define KP_SPOOL_FEW_PIECES 16u /* 64 MB: from here on that many are reserved at once, for fewer mappings */
/* The spool uses at most an eighth of a limit on addresses. Reading the spool for a trace takes as much again. */
#define KP_SPOOL_SHARE 8u
#define KP_SPOOL_MOST_CHUNKS (1u << 21) /* 128 GB: beyond, a cell's number has no room */
#define KP_SPOOL_RETRY_NS 5000000000u   /* the wait between two tries to grow */

struct kp_spool kp_spool = {.fd = -1};
static _Atomic uint64_t retry_at_ns;

/* ---- names ---- */

/* Makes the path absolute: it is opened again later, when the host may have changed its working directory. */
static int path_make(const char *dir, const char *host, uint64_t start_ns)
{
    char cwd[512] = "";
    const char *slash = "";
    if (dir[0] != '/') {
        int rc = kp_io_getcwd(cwd, sizeof cwd);
        if (rc < 0) return rc;
        slash = "/";
    }
    size_t n = kp_fmt(kp_spool.path, sizeof kp_spool.path, "%s%s%s/%s_%d.%llu.kprof", cwd, slash, dir, host,
                      (int)getpid(), (unsigned long long)start_ns);
    return n < sizeof kp_spool.path ? 0 : -ENAMETOOLONG;
}

static int memory_make(const struct kp_record_options *options)
{
    struct stat st;
    kp_spool.fd = kp_place_open(kp_path_base(kp_spool.path), kp_spool.memory, sizeof kp_spool.memory);
    if (kp_spool.fd < 0) return kp_spool.fd;
    const uint64_t bytes = kp_place_budget(options->memory_bytes, kp_spool.memory[0] != '\0');
    kp_spool.budget = (uint32_t)(bytes / KP_CHUNK_BYTES);
    const int rc = kp_io_fstat(kp_spool.fd, &st);
    if (rc < 0) return rc;
    kp_spool.dev = st.st_dev;
    kp_spool.ino = st.st_ino;
    return 0;
}

/* ---- the fd, never trusted ---- */

static int our_file_check(int fd) /* 1, 0, or -errno: not known */
{
    struct stat st;
    const int rc = fd < 0 ? -EBADF : kp_io_fstat(fd, &st);
    if (rc < 0) return rc == -EBADF ? 0 : rc;
    return st.st_dev == kp_spool.dev && st.st_ino == kp_spool.ino;
}

static bool is_our_file(int fd) { return our_file_check(fd) == 1; }

/*
 * An fd of the file in memory for one use, or -errno. A number that now names another file is not closed. A file
 * without a path is lost with its descriptor.
 */
static int fd_get(void)
{
    const int is_ours = our_file_check(kp_spool.fd);
    if (is_ours != 0) return is_ours < 0 ? is_ours : kp_spool.fd;
    int fd = kp_spool.memory[0] ? kp_io_open(kp_spool.memory, O_RDWR | O_NOFOLLOW, 0) : -EBADF;
    if (fd >= 0 && !is_our_file(fd)) {
        kp_io_close(fd);
        fd = -ESTALE;
    }
    kp_spool.fd = fd;
    return fd;
}

static void fd_give(void)
{
    const int fd = kp_load_relaxed(&kp_spool.fd);
    if (fd >= KP_IO_FD_HIGH || !kp_spool.memory[0] || !is_our_file(fd)) return;
    kp_store_relaxed(&kp_spool.fd, -1);
    kp_io_close(fd);
}

/* ---- pages ---- */

/* Allocates memory for `count` chunks. On failure, cuts the file back to what is mapped. */
static int blocks_make(int fd, uint32_t first, uint32_t count)
{
    off_t at = (off_t)first * KP_CHUNK_BYTES, bytes = (off_t)count * KP_CHUNK_BYTES;
    int rc = kp_io_fallocate(fd, at, bytes);
    if (rc < 0 && kp_io_truncate(fd, at) != 0) return rc; /* a partly made segment must not keep the memory */
    return rc;
}

static uint32_t chunks_to_end(uint32_t first) /* of the piece */ { return KP_PIECE_CHUNKS - first % KP_PIECE_CHUNKS; }

/* Calls madvise on the chunks piece by piece, since pieces are not adjacent. */
static int chunks_advise(uint32_t first, uint32_t count, int advice)
{
    int rc = 0;
    for (uint32_t n; count && rc == 0; first += n, count -= n) {
        n = chunks_to_end(first) < count ? chunks_to_end(first) : count;
        rc = kp_io_madvise(kp_spool_chunk(first), (size_t)n * KP_CHUNK_BYTES, advice);
    }
    return rc;
}

void kp_spool_drop_pages(uint32_t first, uint32_t count) { (void)chunks_advise(first, count, MADV_DONTNEED); }

/*
 * Makes the pages of chunks writable, before another thread knows them. So no hook takes the fault. On kernels before
 * 5.14 it writes to each page, since MAP_POPULATE would only read a shared mapping.
 */
static int fresh_touch(uint32_t first, uint32_t count)
{
    _Atomic uint8_t *at = (_Atomic uint8_t *)kp_spool_chunk(first);
    int rc = kp_fail_point("populate");
    if (rc == 0) rc = chunks_advise(first, count, MADV_POPULATE_WRITE);
    if (rc == 0) return 0;
    if (rc != -EINVAL) return rc == -EFAULT ? -ENOSPC : rc;
    for (size_t i = 0; i < (size_t)count * KP_CHUNK_BYTES; i += KP_PAGE) kp_store_relaxed(&at[i], 0);
    return 0;
}

bool kp_spool_free(uint32_t chunk)
{
    if (chunks_advise(chunk, 1, MADV_REMOVE) != 0) return false;
    kp_add_relaxed(&kp_spool.resident, (uint32_t)-1);
    return true;
}

/* ---- addresses ---- */

static uint8_t *_Atomic *table; /* of the pieces; a forked child's spool uses it again */
static uint32_t table_rows;

static int table_open(uint64_t max_bytes)
{
    uint64_t chunks = max_bytes / KP_CHUNK_BYTES;
    if (chunks < KP_SPOOL_MIN_CHUNKS) chunks = KP_SPOOL_MIN_CHUNKS;
    if (chunks > KP_SPOOL_MOST_CHUNKS) chunks = KP_SPOOL_MOST_CHUNKS;
    const uint32_t rows = (uint32_t)((chunks + KP_PIECE_CHUNKS - 1) / KP_PIECE_CHUNKS);
    if (rows > table_rows) {
        table = kp_map_alloc(rows * sizeof *table);
        table_rows = table ? rows : 0;
    }
    if (!table) return -ENOMEM;
    for (uint32_t i = 0; i < table_rows; i++) kp_store_relaxed(&table[i], NULL);
    kp_spool.pieces = table;
    kp_spool.max_chunks = (uint32_t)chunks;
    return 0;
}

static int pieces_reserve(uint32_t first, uint32_t count)
{
    void *p;
    const int rc =
        kp_io_mmap(&p, count * KP_PIECE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (uint32_t i = 0; i < count && rc == 0; i++)
        kp_store_relaxed(&kp_spool.pieces[first + i], (uint8_t *)p + i * KP_PIECE_BYTES);
    return rc;
}

/* Reserves addresses for this chunk's piece, unless it has them. */
static int piece_have(uint32_t chunk)
{
    const uint32_t piece = chunk / KP_PIECE_CHUNKS,
                   pieces = (kp_spool.max_chunks + KP_PIECE_CHUNKS - 1) / KP_PIECE_CHUNKS;
    const bool is_much =
        piece >= KP_SPOOL_FEW_PIECES && piece + KP_SPOOL_FEW_PIECES <= pieces && kp_io_address_limit() == UINT64_MAX;
    if (kp_load_relaxed(&kp_spool.pieces[piece])) return 0;
    if (is_much && pieces_reserve(piece, KP_SPOOL_FEW_PIECES) == 0) return 0;
    return pieces_reserve(piece, 1);
}

/*
 * How many chunks the spool may have under this limit: those of its pieces, and what still fits. An eighth of the
 * limit stays free for the host.
 */
static uint64_t chunks_fitting(uint64_t limit)
{
    const uint64_t used = kp_io_addresses(), spare = limit > used ? limit - used : 0, share = limit / KP_SPOOL_SHARE;
    const uint64_t chunks = kp_load_relaxed(&kp_spool.chunks),
                   pieces = (chunks + KP_PIECE_CHUNKS - 1) / KP_PIECE_CHUNKS;
    return (pieces + (spare > share ? (spare - share) / KP_PIECE_BYTES : 0)) * KP_PIECE_CHUNKS;
}

/* How many chunks the spool may have now. A host that limits its addresses, even late, keeps most of them. */
static uint32_t chunks_allowed(void)
{
    const uint64_t limit = kp_io_address_limit(), share = limit / KP_SPOOL_SHARE / KP_CHUNK_BYTES;
    if (limit == UINT64_MAX) return kp_spool.max_chunks;
    const uint64_t fitting = chunks_fitting(limit), allowed = share < fitting ? share : fitting;
    if (allowed >= kp_spool.max_chunks) return kp_spool.max_chunks;
    return allowed > KP_PIECE_CHUNKS ? (uint32_t)allowed : KP_PIECE_CHUNKS;
}

bool kp_spool_piece(uint32_t i, uintptr_t *from, uintptr_t *to)
{
    if (i >= table_rows) return false;
    *from = (uintptr_t)kp_load_relaxed(&kp_spool.pieces[i]);
    *to = *from + KP_PIECE_BYTES;
    return *from != 0;
}

uint32_t kp_spool_index(const struct kp_chunk_head *chunk)
{
    const uint32_t pieces = (kp_load_acquire(&kp_spool.chunks) + KP_PIECE_CHUNKS - 1) /
                            KP_PIECE_CHUNKS; /* pairs with: chunk.c:chunks_add */
    for (uint32_t i = 0; i < pieces; i++) {
        const size_t at = (size_t)((const uint8_t *)chunk - kp_load_relaxed(&kp_spool.pieces[i]));
        if (at < KP_PIECE_BYTES) return i * KP_PIECE_CHUNKS + (uint32_t)(at / KP_CHUNK_BYTES);
    }
    return 0;
}

/* ---- what several processes take together ---- */

void kp_record_share_give(struct kp_record_share *share, uint64_t bytes)
{
    uint64_t had = kp_load_relaxed(&share->bytes);
    while (!kp_cas_acq_rel(&share->bytes, &had, had > bytes ? had - bytes : 0)) continue;
}

bool kp_spool_has_share(const struct kp_record_options *options)
{
    return !options->share || kp_load_relaxed(&options->share->bytes) + KP_PIECE_BYTES <= options->max_bytes;
}

/* Takes room for the chunks from what all processes have together. False: there is none. */
static bool share_take(uint32_t chunks)
{
    const uint64_t bytes = (uint64_t)chunks * KP_CHUNK_BYTES;
    if (!kp_spool.share) return true;
    kp_spool.shared_bytes += bytes;
    if (kp_add_relaxed(&kp_spool.share->bytes, bytes) + bytes <= kp_spool.share_most) return true;
    kp_spool.shared_bytes -= bytes;
    kp_record_share_give(kp_spool.share, bytes);
    return false;
}

static void share_give(uint32_t chunks)
{
    const uint64_t bytes = (uint64_t)chunks * KP_CHUNK_BYTES;
    if (!kp_spool.share || !bytes) return;
    kp_spool.shared_bytes -= bytes;
    kp_record_share_give(kp_spool.share, bytes);
}

/* The spool's name goes, and its blocks with the process. The time that it still takes is not counted any more. */
static void share_leave(void)
{
    if (kp_spool.share) kp_record_share_give(kp_spool.share, kp_spool.shared_bytes);
    kp_spool.share = NULL;
}

/* ---- growing ---- */

static int segment_map(int fd, uint32_t first, uint32_t count)
{
    uint8_t *where = (uint8_t *)kp_spool_chunk(first);
    size_t bytes = (size_t)count * KP_CHUNK_BYTES;
    int rc = kp_io_mmap_at(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)first * KP_CHUNK_BYTES);
    if (rc < 0) return rc;
    (void)kp_io_madvise(where, bytes, MADV_DONTDUMP); /* the file has it already */
    rc = fresh_touch(first, count);
    if (rc == 0) kp_add_relaxed(&kp_spool.resident, count);
    return rc;
}

bool kp_spool_fill(uint32_t chunk)
{
    const int fd = fd_get();
    int rc = fd < 0 ? fd : kp_io_fallocate(fd, (off_t)chunk * KP_CHUNK_BYTES, KP_CHUNK_BYTES);
    if (rc >= 0) rc = fresh_touch(chunk, 1);
    fd_give();
    if (rc < 0) kp_spool_grow_failed(rc);
    else kp_add_relaxed(&kp_spool.resident, 1);
    return rc >= 0;
}

static void cap_refuse(uint32_t allowed)
{
    kp_store_relaxed(&kp_spool.grow_error, KP_LOSS_CAP);
    if (!allowed)
        KP_LOG_ONCE(1,
                    "the spools of forked children have reached KPROF_MAX_MB together: new events in %s are dropped "
                    "and counted",
                    kp_spool.path);
    else if (allowed == kp_spool.max_chunks)
        KP_LOG_ONCE(1, "spool %s has reached KPROF_MAX_MB, new events are dropped and counted", kp_spool.path);
    else
        KP_LOG_ONCE(0,
                    "spool %s stays small, since the program limits its addresses (RLIMIT_AS): new events are dropped "
                    "and counted",
                    kp_spool.path);
}

void kp_spool_grow_failed(int rc)
{
    kp_store_relaxed(&kp_spool.grow_error, rc == -EFBIG ? KP_LOSS_LIMIT : KP_LOSS_NO_SLOT);
    kp_store_relaxed(&retry_at_ns, kp_clock_ns(CLOCK_MONOTONIC) + KP_SPOOL_RETRY_NS);
    KP_LOG_ONCE(0, "no more memory for records (%s): what is recorded is kept, events that find no room are counted",
                kp_log_error_text(rc));
}

uint32_t kp_spool_spare(void)
{
    const uint32_t resident = kp_load_relaxed(&kp_spool.resident);
    return resident < kp_spool.budget ? kp_spool.budget - resident : 0;
}

void kp_spool_retry(void) { kp_store_relaxed(&retry_at_ns, 0); }

/* No memory, or over the largest size of a file, which counts for files in memory, too. Fewer chunks may fit. */
static bool is_short(int rc) { return rc == -ENOSPC || rc == -EFBIG; }

/* Allocates and maps the chunks, or fewer of them where memory is short. */
static int segment_make(uint32_t first, uint32_t *count)
{
    int fd = fd_get(), rc = fd < 0 ? fd : piece_have(first);
    if (rc >= 0)
        while (is_short(rc = blocks_make(fd, first, *count)) && *count > 1) *count = *count < 8 ? 1 : *count / 4;
    if (rc >= 0) {
        rc = segment_map(fd, first, *count);
        kp_spool.is_broken = rc < 0; /* the range may have a hole now, where the kernel may map something of the host */
    }
    fd_give();
    return rc;
}

uint32_t kp_spool_grow(uint32_t first, uint32_t want)
{
    uint32_t allowed = chunks_allowed(), left = allowed > first ? allowed - first : 0;
    uint32_t count = want < left ? want : left;
    if (kp_spool.is_broken) return 0;
    if (count == 0) {
        cap_refuse(allowed);
        return 0;
    }
    if (count > chunks_to_end(first)) count = chunks_to_end(first);
    if (kp_clock_ns(CLOCK_MONOTONIC) < kp_load_relaxed(&retry_at_ns)) return 0;
    if (!share_take(count)) {
        cap_refuse(0);
        return 0;
    }
    const uint32_t taken = count;
    const int rc = segment_make(first, &count);
    share_give(rc < 0 ? taken : taken - count);
    if (rc < 0) {
        kp_spool_grow_failed(rc);
        return 0;
    }
    kp_store_relaxed(&kp_spool.grow_error, KP_LOSS_NO_CHUNK);
    return count;
}

/* ---- opening ---- */

/* A host may write over its own words, as setproctitle does: then by the name that the kernel has of it. */
static void program_write(struct kp_file_head *h)
{
    kp_fmt(h->program, sizeof h->program, "%s", program_invocation_short_name);
    if (h->program[0]) return;
    const ssize_t n = kp_io_text("/proc/self/comm", h->program, sizeof h->program);
    h->program[n > 0 ? n - 1 : 0] = 0; /* a line */
}

static void head_write(const char *host, uint64_t start_ns, const char *text)
{
    struct kp_file_head *h = kp_spool_head();
    const size_t halves = kp_fmt(h->text, KP_FILE_TEXT_MAX, KP_HALF_MEMORY_KEY "=%s\n" KP_HALF_SPOOL_KEY "=%s\n",
                                 kp_spool.memory[0] ? kp_spool.memory : "-", kp_spool.path);
    size_t n = text ? strlen(text) : 0;
    if (n > KP_FILE_TEXT_MAX - halves)
        for (n = KP_FILE_TEXT_MAX - halves; n && text[n - 1] != '\n';) n--;
    h->version = KP_FORMAT_VERSION;
    h->chunk_bytes = KP_CHUNK_BYTES;
    h->head_bytes = sizeof *h;
    h->pid = (uint32_t)getpid();
    h->ppid = (uint32_t)getppid();
    h->clock_kind = kp_load_relaxed(&kp_clock_is_tsc) ? KP_CLOCK_TSC : KP_CLOCK_MONO;
    h->start_real_ns = start_ns;
    kp_fmt(h->host, sizeof h->host, "%s", host);
    program_write(h);
    memcpy(h->text + halves, text ? text : "", n);
    kp_store_relaxed(&h->text_bytes, (uint32_t)(halves + n));
    kp_store_relaxed(&h->chunks, 1);
    memcpy(h->magic, KP_FORMAT_MAGIC, sizeof h->magic);
}

int kp_spool_open(const struct kp_record_options *options)
{
    char host[KP_IO_HOST_BYTES];
    uint64_t start_ns = kp_clock_ns(CLOCK_REALTIME);
    kp_io_host_name(host);
    if (!host[0]) memcpy(host, "host", 5);
    kp_spool.pid = getpid();
    kp_spool.fd = -1;
    kp_spool.share = options->share;
    kp_spool.share_most = options->max_bytes;
    kp_spool.ring_ms = options->ring_ms;
    int rc = table_open(options->max_bytes);
    if (rc == 0) rc = piece_have(0);
    if (rc == 0) rc = path_make(options->dir, host, start_ns);
    if (rc == 0) rc = memory_make(options);
    if (rc == 0 && !share_take(1)) rc = -ENOBUFS;
    if (rc == 0) rc = blocks_make(kp_spool.fd, 0, 1);
    if (rc == 0) rc = segment_map(kp_spool.fd, 0, 1);
    if (rc < 0) return rc;
    head_write(host, start_ns, options->text);
    kp_store_relaxed(&kp_spool.chunks, 1);
    fd_give();
    return 0;
}

void kp_spool_unlink(bool is_whole)
{
    if (kp_spool.memory[0]) (void)kp_io_unlink(kp_spool.memory);
    if (is_whole) share_leave();
}

int kp_spool_reopen_file(const char *path, int number, uint64_t dev, uint64_t ino)
{
    char again[64];
    const char *const paths[] = {path, again};
    struct stat st;
    kp_fmt(again, sizeof again, "/proc/self/fd/%d", number);
    for (int i = 0; i < 2; i++) {
        const int flags = O_RDONLY | O_NONBLOCK | (i == 0 ? O_NOFOLLOW : 0);
        const int fd = paths[i][0] ? kp_io_open(paths[i], flags, 0) : -ENOENT;
        if (fd >= 0 && kp_io_fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino) return fd;
        if (i == 0 && (fd == -EMFILE || fd == -ENFILE)) return fd;
        if (fd >= 0) kp_io_close(fd);
    }
    return -ENOENT;
}

int kp_spool_reopen(void)
{
    return kp_spool_reopen_file(kp_spool.memory, kp_load_relaxed(&kp_spool.fd), kp_spool.dev, kp_spool.ino);
}

void kp_spool_abandon(void)
{
    if (kp_spool.fd >= 0) {
        kp_spool_unlink(true);
        kp_io_close(kp_spool.fd);
    }
    for (uint32_t i = 0; kp_spool.pieces && i < table_rows; i++)
        if (kp_load_relaxed(&kp_spool.pieces[i])) kp_io_munmap(kp_load_relaxed(&kp_spool.pieces[i]), KP_PIECE_BYTES);
    kp_spool_forget();
}

void kp_spool_forget(void)
{
    memset(&kp_spool, 0, sizeof kp_spool);
    kp_spool.fd = -1;
    kp_spool_retry();
}

bool kp_spool_is_ours(void) { return kp_load_acquire(&kp_spool.state) == KP_SPOOL_OPEN && kp_spool.pid == getpid(); }

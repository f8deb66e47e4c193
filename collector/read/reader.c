// SPDX-License-Identifier: Apache-2.0
/*
 * reader.c - opens a spool that is finished, torn or still being written, and answers what it contains
 *
 * Called by: the CLI, the export thread inside the host
 * Owns:      a private read-only mapping, the string table, the clock map, the list of cycles
 * Memory:    mapped blocks; grows with strings and cycles, not with events
 * On fail:   damaged parts are skipped and counted. No size or offset in the file is used before a check against the
 *            file's length.
 */
#include "collector/read/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/read/half.h"
#include "collector/read/order.h"
#include "collector/base/kp_poison.h"

#define CYCLES_LATE 64u

static uint32_t kind_of(const struct kp_chunk_head *head)
{
    return kp_load_acquire(&((struct kp_chunk_head *)(uintptr_t)head)->kind);
}

/* --- the header --- */

static int head_check(const struct kp_reader *r, const char *path, char *why, size_t why_bytes)
{
    const struct kp_file_head *head = (const void *)r->file;
    if (memcmp(head->magic, KP_FORMAT_MAGIC, sizeof head->magic) != 0) {
        kp_fmt(why, why_bytes, "%s: not a kprof spool, a *.kprof (it does not begin with " KP_FORMAT_MAGIC ")", path);
        return -EINVAL;
    }
    if (head->version > KP_FORMAT_VERSION) {
        kp_fmt(why, why_bytes, "%s: spool format %u, this kprof reads up to %u; take a newer one", path, head->version,
               KP_FORMAT_VERSION);
        return -ENOTSUP;
    }
    if (head->chunk_bytes != KP_CHUNK_BYTES || head->head_bytes < KP_FILE_HEAD_LEAST ||
        head->head_bytes >= KP_CHUNK_BYTES) {
        kp_fmt(why, why_bytes, "%s: damaged header at offset %u", path,
               (unsigned)offsetof(struct kp_file_head, chunk_bytes));
        return -EINVAL;
    }
    if (r->file_bytes < KP_CHUNK_BYTES + sizeof(struct kp_chunk_head)) {
        kp_fmt(why, why_bytes, "%s: an empty spool, cut at %lu bytes", path, (unsigned long)r->file_bytes);
        return -ENODATA;
    }
    return 0;
}

static int text_copy(struct kp_reader *r)
{
    struct kp_file_head *head = (void *)(uintptr_t)r->file;
    uint32_t n = kp_load_acquire(&head->text_bytes), max = KP_CHUNK_BYTES - head->head_bytes; /* pairs with: spool.c */
    return kp_text_header(&r->text, r->file + head->head_bytes, n < max ? n : max);
}

/* --- META chunks: clock samples, cycles and notes --- */

static int cycle_put(struct kp_reader *r, const struct kp_rec_cycle *c)
{
    struct kp_rec_cycle *known = kp_file_cycle(r, c->cycle);
    uint32_t at = r->cycles_n;
    if (known) {
        *known = *c;
        return 0;
    }
    while (at && r->cycles[at - 1].cycle > c->cycle && r->cycles_n - at <= CYCLES_LATE) at--;
    if (r->cycles_n - at > CYCLES_LATE) { /* damage: numbers rise, but for a few */
        r->skipped++;
        return 0;
    }
    if (!kp_map_room(&r->cycles, r->cycles_n, &r->cycles_cap, sizeof *r->cycles, 64)) return -ENOMEM;
    memmove(r->cycles + at + 1, r->cycles + at, (r->cycles_n - at) * sizeof *r->cycles);
    r->cycles[at] = *c;
    r->cycles_n++;
    return 0;
}

/* Files of older versions lack the last numbers. */
static int clock_put(struct kp_reader *r, const struct kp_rec_clock *c, uint32_t bytes)
{
    const struct kp_clock_pair pair = {.ticks = c->ticks, .real_ns = c->real_ns, .mono_ns = c->mono_ns};
    const uint64_t busy_ns = bytes >= offsetof(struct kp_rec_clock, waited_ns) ? c->busy_ns : 0;
    return kp_clockmap_add(&r->clock, &pair, busy_ns, bytes >= sizeof *c ? c->waited_ns : 0);
}

static int meta_walk(struct kp_reader *r, const struct kp_chunk_head *head, uint32_t used)
{
    const uint8_t *at = (const uint8_t *)(head + 1), *end = (const uint8_t *)head + used;
    uint32_t bytes;
    while (at < end) {
        const struct kp_rec *rec = kp_file_record(&at, end, &bytes);
        if (!rec) {
            r->skipped++;
            return 0;
        }
        if (rec->kind == KP_KIND_CLOCK && bytes >= offsetof(struct kp_rec_clock, busy_ns)) {
            if (clock_put(r, (const void *)rec, bytes)) return -ENOMEM;
        } else if (rec->kind == KP_KIND_CYCLE && bytes >= sizeof(struct kp_rec_cycle)) {
            if (cycle_put(r, (const void *)rec)) return -ENOMEM;
        } else if (rec->kind == KP_KIND_NOTE) {
            if (kp_text_note(&r->text, (const uint8_t *)(rec + 1), bytes - (uint32_t)sizeof *rec)) return -ENOMEM;
        } else if (kp_gpus_take(&r->gpus, rec, bytes)) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int meta_read(struct kp_reader *r)
{
    struct kp_pieces meta;
    int rc = kp_pieces_of_meta(&meta, r);
    for (uint32_t i = 0; !rc && i < meta.n; i++) {
        const struct kp_chunk_head *head = (const struct kp_chunk_head *)(const void *)meta.of[i].at - 1;
        rc = meta_walk(r, head, (uint32_t)(meta.of[i].end - (const uint8_t *)head));
    }
    kp_pieces_fini(&meta);
    return rc ? rc : kp_text_settle(&r->text);
}

static int strings_read(struct kp_reader *r)
{
    uint64_t cells = (uint64_t)r->chunks * (KP_CHUNK_BYTES / KP_STR_CELL);
    uint32_t limit = cells < 1u << 24 ? (uint32_t)cells : 1u << 24;
    for (uint32_t i = 1; i < r->chunks; i++) {
        uint32_t used;
        const struct kp_chunk_head *head = kp_file_chunk(r, i, &used);
        size_t have = r->file_bytes - (size_t)i * KP_CHUNK_BYTES;
        if (!head) {
            uint32_t magic = 0;
            if (have >= sizeof magic) memcpy(&magic, r->file + (size_t)i * KP_CHUNK_BYTES, sizeof magic);
            r->skipped += magic != 0; /* a chunk of zeroes was never used */
        } else if (kind_of(head) != KP_CHUNK_STRINGS) {
            kp_file_drop_pages(r, head);
        } else {
            if (kp_names_add_chunk(&r->names, (const uint8_t *)head,
                                   (uint32_t)(have < KP_CHUNK_BYTES ? have : KP_CHUNK_BYTES), limit))
                return -ENOMEM;
        }
    }
    return 0;
}

/*
 * With KPROF_RING a cycle is the last seconds before its end in which something was recorded (record/ring.c). If room
 * was short, it begins with the rest: the program may have rested at the begin of a whole one.
 */
static void rings_cut(struct kp_reader *r)
{
    const char *const ring = kp_text_get(&r->text, "ring_ms");
    const uint64_t ticks = ring ? kp_clockmap_ticks(&r->clock, kp_digits(ring) * 1000000) : UINT64_MAX;
    const bool is_short = ring && kp_text_get(&r->text, "ring_short");
    r->is_ring = ring != NULL;
    for (uint32_t i = 0; i < r->cycles_n; i++) {
        struct kp_rec_cycle *const c = &r->cycles[i];
        const uint64_t begin = c->end - c->begin > ticks ? kp_events_ring_begin(r, c, ticks) : c->begin;
        const bool is_long = begin > c->begin;
        c->begin = begin;
        const uint64_t first = is_short ? kp_events_first(r, c) : c->end;
        if (first > c->begin && first < c->end) c->begin = first;
        if (is_long || is_short) c->warm_begin = c->begin;
        if (is_long || is_short) c->head.flags |= KP_CYCLE_LAST_PART;
    }
}

/*
 * A cycle without a closing record ends with its last event. The file's last cycle ends with the last clock sample, if
 * that is later. The process lived until then, and events that were open lasted at least as long.
 */
static int cycles_close(struct kp_reader *r)
{
    bool any_open = false;
    r->complete = kp_map_alloc(r->cycles_n + 1);
    if (!r->complete) return -ENOMEM;
    for (uint32_t i = 0; i < r->cycles_n; i++) any_open |= !(r->complete[i] = r->cycles[i].end != 0);
    if (any_open) kp_events_close(r);
    for (uint32_t i = 0; i < r->cycles_n; i++) {
        struct kp_rec_cycle *c = &r->cycles[i];
        if (i + 1 == r->cycles_n && !r->complete[i] && c->end < r->clock.last_ticks) c->end = r->clock.last_ticks;
        if (!c->warm_begin || c->warm_begin > c->begin) c->warm_begin = c->begin;
        if (c->end < c->begin) c->end = c->begin;
    }
    rings_cut(r);
    return 0;
}

static int fill(struct kp_reader *r, const char *path, char *why, size_t why_bytes)
{
    const struct kp_file_head *head = (const void *)r->file;
    int rc = head_check(r, path, why, why_bytes);
    if (rc) return rc;
    rc = text_copy(r);
    if (!rc) rc = meta_read(r);
    if (!rc) kp_clockmap_finish(&r->clock, head->clock_kind, head->start_real_ns);
    if (!rc) rc = kp_devclock_finish(&r->gpus.clock, &r->clock, head->start_real_ns);
    if (!rc) rc = strings_read(r);
    if (!rc) rc = cycles_close(r);
    r->skipped += r->clock.rejected + r->gpus.clock.rejected;
    if (rc) kp_fmt(why, why_bytes, "%s: out of memory", path);
    return rc;
}

/*
 * How many chunks may be read. Behind those that the header counts, a process may add chunks, and cut them
 * off when the disk is full. So these are read through the descriptor, to see that they are chunks, before the
 * mapping is touched.
 */
static uint32_t chunks_count(const struct kp_reader *r, int fd)
{
    struct kp_file_head *head = (void *)(uintptr_t)r->file;
    uint32_t all = (uint32_t)((r->file_bytes + KP_CHUNK_BYTES - 1) / KP_CHUNK_BYTES), magic;
    uint32_t n = kp_load_acquire(&head->chunks); /* pairs with: chunk.c:chunks_add */
    if (n > all) n = all;
    for (uint32_t i = n; kp_file_next_data(fd, &i, all); i++)
        if (kp_io_pread(fd, &magic, sizeof magic, (off_t)i * KP_CHUNK_BYTES) == sizeof magic && magic == KP_CHUNK_MAGIC)
            n = i + 1;
    return n;
}

static int map(struct kp_reader *r, int fd, const char *path, char *why, size_t why_bytes)
{
    struct stat st;
    void *p = NULL;
    int rc = kp_io_fstat(fd, &st);
    if (!rc &&
        (!S_ISREG(st.st_mode) || st.st_size < (off_t)KP_FILE_HEAD_LEAST || st.st_size > (off_t)KP_SPOOL_MOST_BYTES)) {
        kp_fmt(why, why_bytes, "%s: not a kprof spool, a *.kprof (%ld bytes)", path, (long)st.st_size);
        rc = -EINVAL;
    } else if (!rc) {
        r->file_bytes = (size_t)st.st_size;
        rc = kp_io_mmap(&p, r->file_bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (rc) kp_fmt(why, why_bytes, "%s: cannot be mapped (%s)", path, kp_log_error_text(rc));
    }
    r->file = p;
    if (!rc) r->chunks = chunks_count(r, fd);
    return rc;
}

/* All that the header in memory counts lies in one of the halves. */
static int halves_map(struct kp_reader *r, const struct kp_reader_halves *halves, const char *path, char *why,
                      size_t why_bytes)
{
    const int rc = kp_half_map(r, halves);
    if (rc) {
        kp_fmt(why, why_bytes, "%s: cannot be read (%s)", path, kp_log_error_text(rc));
        return rc;
    }
    const uint32_t all = (uint32_t)(r->file_bytes / KP_CHUNK_BYTES);
    const uint32_t n = kp_load_acquire(&((struct kp_file_head *)(uintptr_t)r->file)->chunks);
    r->chunks = n < all ? n : all;
    return 0;
}

int kp_reader_open_halves(struct kp_reader **out, const struct kp_reader_halves *halves, const char *path, char *why,
                          size_t why_bytes)
{
    struct kp_reader *r = kp_map_alloc(sizeof *r);
    int rc = -ENOMEM;
    *out = NULL;
    if (r) r->drop = &r->drop_is;
    if (r && halves->memory < 0) rc = map(r, halves->disk, path, why, why_bytes);
    else if (r) rc = halves_map(r, halves, path, why, why_bytes);
    if (!rc) rc = fill(r, path, why, why_bytes);
    if (!rc) *out = r;
    else if (r) kp_reader_close(r);
    return rc;
}

int kp_reader_open_fd(struct kp_reader **out, int fd, const char *path, char *why, size_t why_bytes)
{
    char memory[512];
    const struct kp_reader_halves halves = {.memory = kp_half_find(fd, memory, sizeof memory), .disk = fd};
    const int rc = kp_reader_open_halves(out, &halves, path, why, why_bytes);
    if (halves.memory >= 0) kp_io_close(halves.memory);
    return rc;
}

void kp_reader_close(struct kp_reader *r)
{
    if (!r) return;
    if (r->file) kp_io_munmap((void *)(uintptr_t)r->file, r->file_bytes);
    if (r->copied) kp_map_free(r->copied, r->copied_bytes);
    kp_text_fini(&r->text);
    if (r->cycles) kp_map_free(r->cycles, r->cycles_cap * sizeof *r->cycles);
    if (r->complete) kp_map_free(r->complete, r->cycles_n + 1);
    kp_names_fini(&r->names);
    kp_clockmap_fini(&r->clock);
    kp_gpus_fini(&r->gpus);
    kp_map_free(r, sizeof *r);
}

/* --- what a reader knows --- */

const struct kp_file_head *kp_reader_head(const struct kp_reader *r) { return (const void *)r->file; }

const char *kp_reader_line(const struct kp_reader *r, const char *previous) { return kp_text_next(&r->text, previous); }

const char *kp_reader_text(const struct kp_reader *r, const char *key) { return kp_text_get(&r->text, key); }

size_t kp_reader_cycles(const struct kp_reader *r) { return r->cycles_n; }

uint64_t kp_reader_skipped(const struct kp_reader *r) { return r->skipped; }

void kp_reader_skipped_set(struct kp_reader *r, uint64_t skipped) { r->skipped = skipped; }

uint64_t kp_reader_last_ns(const struct kp_reader *r)
{
    struct kp_clockmap clock = r->clock; /* a copy, since a look-up changes it */
    return clock.last_ticks ? kp_clockmap_ns(&clock, clock.last_ticks) : 0;
}

struct kp_busy kp_reader_busy(struct kp_reader *r, uint32_t cycle)
{
    const struct kp_rec_cycle *c = kp_file_cycle(r, cycle);
    return c ? kp_clockmap_busy(&r->clock, c->begin, c->end) : (struct kp_busy){0};
}

int kp_reader_cycle(const struct kp_reader *r, size_t index, struct kp_cycle *out)
{
    const struct kp_rec_cycle *c;
    struct kp_clockmap clock = r->clock; /* a copy, since a look-up changes it */
    if (index >= r->cycles_n) return -ENOENT;
    c = &r->cycles[index];
    kp_clockmap_anchor(&clock, c->begin);
    *out = (struct kp_cycle){
        .number = c->cycle,
        .steps = c->steps,
        .first_step = c->first_step,
        .last_step = c->last_step,
        .lost = c->lost,
        .complete = r->complete[index],
        .last_part = c->head.flags & KP_CYCLE_LAST_PART,
        .exported = c->head.flags & KP_CYCLE_EXPORTED,
        .cut_short = c->head.flags & KP_CYCLE_CUT_SHORT,
        .begin_ns = kp_clockmap_ns(&clock, c->begin),
        .end_ns = kp_clockmap_ns(&clock, c->end),
        .warm_begin_ns = kp_clockmap_ns(&clock, c->warm_begin),
    };
    return 0;
}

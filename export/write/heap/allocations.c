// SPDX-License-Identifier: Apache-2.0
/*
 * allocations.c - joins the host's allocations with the ops around them, and writes their sums
 *
 * Called by: export.c (open, args, counters), event.c (args), toplevel.c (the key)
 * Memory:    in the scratch 24 bytes for each op, and heapsites.c's blocks; 64 for each open op, 72 for each site
 * On fail:   -errno
 *
 * kp_heap_open walks the ops and steps in order of time. Between two of them it walks the heap's events up to there. An
 * event belongs to its thread's innermost op and all ops around that, and to the current step of any thread.
 */
#include "export/write/heap/allocations.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_log.h"
#include "collector/format/kp_heap.h"
#include "export/write/heap/blockstack.h"
#include "export/write/out/scratch.h"
#include "export/write/out/slice.h"
#include "collector/base/kp_poison.h"

enum { BUCKETS = 320, DEPTH_FIRST = 64, THREADS_FIRST = 256, THREADS_MOST = 1u << 22 };
#define NO_OP UINT32_MAX
/* Nearly each event misses the cache in two large tables. Sixteen wait side by side. */
enum { AHEAD = 16 };
enum {
    SITES_SHOWN = 50,
    MODULES_SHOWN = 256,
    SHOWN_BYTES = 128 << 10
}; /* with the counters at most 256 KB of the trace */

struct sums {
    uint64_t taken, given, bytes;
};
struct open_op {
    uint64_t end_ns;
    uint32_t number; /* in the list of sums */
};
struct thread {
    struct open_op *ops; /* innermost last */
    uint32_t n, cap;
};
struct bucket { /* of the window's time */
    int64_t most, last;
    uint64_t most_ns;
    bool is_used;
};
struct series {
    int64_t now;
    struct bucket of[BUCKETS];
};

struct kp_heap {
    struct kp_trace *trace;
    struct kp_heap_walk *walk;
    struct kp_heap_event ahead[AHEAD]; /* a ring: the events that come next, whose memory is asked for already */
    uint32_t ahead_n, ahead_at;
    bool is_over, is_count, tells_live, has_mapped;
    struct kp_scratch scratch;
    struct kp_list sums; /* of each OP and STEP, in order of the walk */
    struct sums total;
    struct thread *threads;
    uint32_t threads_cap;
    uint32_t step; /* number of the current step, or NO_OP */
    uint64_t step_end_ns, step_number;
    struct {                   /* of a trace that marks no steps: an optimizer's step ends one */
        const char *optimizer; /* the first one's range; NULL: none stepped yet */
        uint64_t ends_ns;      /* its last step's end */
        uint64_t number;       /* how many ended before that */
    } own;
    struct kp_sites sites;
    struct series live, mapped;
    struct kp_heapfile *file; /* NULL: none is wanted, or it cannot be written */
    uint32_t written;         /* OPs and STEPs that kp_heap_args_next saw */
    uint64_t key_at;          /* where the key begins in the trace's text */
    struct kp_frame modules[MODULES_SHOWN];
    uint32_t modules_n;
    int error;
};

/* --- ops that are open --- */

static struct thread *thread_of(struct kp_heap *h, uint32_t thread_no)
{
    if (thread_no >= THREADS_MOST) return NULL;
    while (thread_no >= h->threads_cap)
        if (!kp_map_room(&h->threads, h->threads_cap, &h->threads_cap, sizeof *h->threads, THREADS_FIRST)) return NULL;
    return &h->threads[thread_no];
}

static void add(struct sums *to, const struct sums *from)
{
    to->taken += from->taken;
    to->given += from->given;
    to->bytes += from->bytes;
}

/* Closes ops that ended, and adds their sums to their parents. */
static void close_ops(struct kp_heap *h, struct thread *t, uint64_t now_ns)
{
    while (t->n && t->ops[t->n - 1].end_ns <= now_ns) {
        const uint32_t number = t->ops[--t->n].number;
        if (t->n) add(kp_list_at(&h->sums, t->ops[t->n - 1].number), kp_list_at(&h->sums, number));
    }
}

static int open_op(struct kp_heap *h, const struct kp_event *e, uint32_t number)
{
    struct thread *t = thread_of(h, e->thread_no);
    if (!t) return -ENOMEM;
    close_ops(h, t, e->start_ns);
    if (!kp_map_room(&t->ops, t->n, &t->cap, sizeof *t->ops, DEPTH_FIRST)) return -ENOMEM;
    t->ops[t->n++] = (struct open_op){e->end_ns, number};
    return 0;
}

/* --- live bytes over time --- */

static void series_move(struct kp_heap *h, struct series *s, int64_t by, uint64_t now_ns)
{
    const uint64_t begin = h->trace->cycle.begin_ns, end = h->trace->cycle.end_ns;
    const uint64_t past = now_ns > begin ? now_ns - begin : 0, whole = end > begin ? end - begin : 1;
    const uint64_t at = past < whole ? (uint64_t)((double)past / (double)whole * BUCKETS) : BUCKETS;
    struct bucket *b = &s->of[at < BUCKETS ? at : BUCKETS - 1];
    s->now = (int64_t)((uint64_t)s->now + (uint64_t)by); /* a damaged file may say anything */
    if (!b->is_used || s->now > b->most) {
        b->most = s->now;
        b->most_ns = now_ns;
    }
    b->last = s->now;
    b->is_used = true;
}

/* --- the walk --- */

static bool is_in_step(const struct kp_heap *h, const struct kp_heap_event *e)
{
    return h->step != NO_OP && e->start_ns < h->step_end_ns;
}

/* Step N lasts from the Nth step of the first optimizer to its next, as in every view of a trace without steps. */
static void optimizer_take(struct kp_heap *h, const struct kp_event *e)
{
    if (strncmp(e->name, "Optimizer.step#", 15) != 0) return;
    if (h->own.optimizer && strcmp(h->own.optimizer, e->name) != 0) return;
    h->own.number += h->own.optimizer != NULL;
    h->own.optimizer = e->name;
    h->own.ends_ns = e->end_ns;
}

static bool is_in_own_step(const struct kp_heap *h, const struct kp_heap_event *e)
{
    if (h->step != NO_OP || !h->own.optimizer) return false;
    return h->own.number || e->start_ns >= h->own.ends_ns;
}

static void step_tell(const struct kp_heap *h, const struct kp_heap_event *e)
{
    if (is_in_step(h, e)) kp_heapfile_step(h->file, h->step_number);
    else if (is_in_own_step(h, e)) kp_heapfile_step(h->file, h->own.number + (e->start_ns >= h->own.ends_ns));
    else kp_heapfile_no_step(h->file);
}

static void mapped_take(struct kp_heap *h, const struct kp_heap_event *e)
{
    h->has_mapped = true;
    if (h->file) {
        step_tell(h, e);
        kp_heapfile_mapped(h->file, e);
    }
    series_move(h, &h->mapped, (int64_t)(e->flags & KP_HEAP_FREE ? 0 - e->bytes : e->bytes), e->start_ns);
}

static uint32_t mark_of(const struct kp_heap *h, const struct kp_heap_event *e)
{
    if (!h->file || !e->taken) return 0;
    return kp_heapfile_block(h->file, e->stack, e->bytes);
}

static int block_take(struct kp_heap *h, const struct kp_heap_event *e)
{
    if (e->flags & KP_HEAP_MAPPED) {
        mapped_take(h, e);
        return 0;
    }
    if (h->file) step_tell(h, e);
    if (e->flags & KP_HEAP_ENDING && h->file) kp_heapfile_python_ends(h->file);
    const uint64_t before = h->sites.live_bytes;
    const int rc = kp_sites_take(&h->sites, e, mark_of(h, e));
    if (h->sites.gone) kp_heapfile_given(h->file, h->sites.gone, e->start_ns);
    if (h->sites.came) kp_heapfile_taken(h->file, h->sites.came, e->start_ns);
    series_move(h, &h->live, (int64_t)(h->sites.live_bytes - before), e->start_ns);
    return rc;
}

static int heap_take(struct kp_heap *h, const struct kp_heap_event *e)
{
    const struct sums s = {e->taken, e->given, e->is_count || e->taken ? e->bytes : 0};
    struct thread *t = thread_of(h, e->thread_no);
    if (!t) return -ENOMEM;
    close_ops(h, t, e->start_ns);
    add(&h->total, &s);
    if (t->n) add(kp_list_at(&h->sums, t->ops[t->n - 1].number), &s);
    if (is_in_step(h, e)) add(kp_list_at(&h->sums, h->step), &s);
    h->is_count |= e->is_count;
    if (!e->is_count) return block_take(h, e);
    h->tells_live |= e->tells_live;
    series_move(h, &h->live, e->live, e->start_ns);
    return 0;
}

/* The next event, or NULL after the last. */
static const struct kp_heap_event *event_next(struct kp_heap *h)
{
    while (!h->is_over && h->ahead_n < AHEAD) {
        struct kp_heap_event *e = &h->ahead[(h->ahead_at + h->ahead_n) % AHEAD];
        h->is_over = !kp_reader_heap_next(h->walk, e);
        if (h->is_over) break;
        h->ahead_n++;
        kp_sites_prefetch(&h->sites, e);
        if (h->file && e->taken) kp_heapfile_prefetch(h->file, e->stack, e->bytes);
    }
    return h->ahead_n ? &h->ahead[h->ahead_at] : NULL;
}

static int heap_take_until(struct kp_heap *h, uint64_t now_ns)
{
    const struct kp_heap_event *e;
    int rc = 0;
    while (!rc && (e = event_next(h)) && e->start_ns < now_ns) {
        rc = heap_take(h, e);
        h->ahead_at = (h->ahead_at + 1) % AHEAD;
        h->ahead_n--;
    }
    return rc;
}

static int event_take(void *context, const struct kp_event *e)
{
    struct kp_heap *h = context;
    if (e->kind != KP_KIND_OP && e->kind != KP_KIND_STEP) return 0;
    int rc = heap_take_until(h, e->start_ns);
    if (rc) return rc;
    if (!kp_list_add(&h->sums)) return -ENOMEM;
    const uint32_t number = h->sums.n - 1;
    if (e->kind == KP_KIND_OP) {
        optimizer_take(h, e);
        return open_op(h, e, number);
    }
    h->step = number;
    h->step_end_ns = e->end_ns;
    h->step_number = e->step;
    return 0;
}

static void file_fail(struct kp_heap *h, int rc)
{
    kp_heapfile_close(h->file);
    h->file = NULL;
    kp_log(0, "the profile of the heap beside %s could not be written: error %d", h->trace->result->path, -rc);
}

static void file_open(struct kp_heap *h)
{
    const int rc = kp_heapfile_open(&h->file, h->trace);
    if (rc) file_fail(h, rc);
}

int kp_heap_file_commit(struct kp_heap *h, const char *trace_path)
{
    const int rc = h->file && !h->trace->options->heap_text ? kp_heapfile_commit(h->file, trace_path) : 0;
    if (rc) file_fail(h, rc);
    return rc;
}

static int walk(struct kp_heap *h, bool has_file)
{
    const uint32_t cycle = h->trace->cycle.number;
    int rc = kp_reader_heap_open(&h->walk, h->trace->reader, cycle);
    if (rc) return rc;
    const struct kp_heap_event *first = event_next(h);
    if (!first) return 0;
    rc = kp_sites_open(&h->sites, &h->scratch);
    if (!rc && has_file && !first->is_count) file_open(h);
    if (!rc) rc = kp_reader_events(h->trace->reader, cycle, event_take, h);
    if (!rc) rc = heap_take_until(h, UINT64_MAX);
    for (uint32_t i = 0; i < h->threads_cap; i++) close_ops(h, &h->threads[i], UINT64_MAX);
    kp_sites_settle(&h->sites);
    if (!rc && h->file && h->trace->options->heap_text) rc = kp_heapfile_flush(h->file);
    if (h->sites.unkept)
        kp_log(0,
               "%lu blocks of the heap could not be followed: they are counted, but not in live bytes, the peak and "
               "what is left",
               (unsigned long)h->sites.unkept);
    return rc;
}

static bool is_asked_for(const struct kp_reader *r)
{
    const char *value = kp_reader_text(r, "KPROF_MALLOC");
    return value && strcmp(value, "0") != 0;
}

int kp_heap_open(struct kp_heap **out, struct kp_trace *t, bool has_file)
{
    *out = NULL;
    if (!is_asked_for(t->reader)) return 0;
    struct kp_heap *h = kp_map_alloc(sizeof *h);
    if (!h) return -ENOMEM;
    h->trace = t;
    h->step = NO_OP;
    kp_scratch_init(&h->scratch, t->options->scratch_dir, t->options->scratch_most);
    kp_list_init(&h->sums, &h->scratch, sizeof(struct sums));
    const int rc = walk(h, has_file);
    kp_reader_heap_close(h->walk);
    h->walk = NULL;
    if (rc || !h->sites.slots) kp_heap_close(h);
    else *out = h;
    return rc;
}

void kp_heap_close(struct kp_heap *h)
{
    if (!h) return;
    for (uint32_t i = 0; i < h->threads_cap; i++)
        if (h->threads[i].ops) kp_map_free(h->threads[i].ops, h->threads[i].cap * sizeof(struct open_op));
    if (h->threads) kp_map_free(h->threads, h->threads_cap * sizeof *h->threads);
    kp_sites_close(&h->sites);
    kp_heapfile_close(h->file);
    kp_list_fini(&h->sums);
    kp_scratch_fini(&h->scratch);
    kp_map_free(h, sizeof *h);
}

uint64_t kp_heap_allocations(const struct kp_heap *h) { return h->total.taken; }

/* --- what is written --- */

static void number(struct kp_json *j, const char *key, uint64_t value) { kp_json_fmt(j, ",\"%s\":%lu", key, value); }

void kp_heap_args_next(struct kp_heap *h) { h->written++; }

void kp_heap_args_write(const struct kp_heap *h, struct kp_json *j)
{
    if (!h->written || h->written > h->sums.n) return;
    const struct sums *s = kp_list_at(&h->sums, h->written - 1);
    if (!s->taken && !s->given) return;
    number(j, "Host allocations", s->taken);
    number(j, "Host frees", s->given);
    number(j, "Host bytes allocated", s->bytes);
}

static void counter_write(struct kp_trace *t, const char *name, uint64_t ns, int64_t value)
{
    kp_json_fmt(&t->json, "{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%u,\"ts\":%ju,\"args\":{\"bytes\":%ld}},\n", name,
                t->pid, kp_ts_of(t, ns), value);
}

/* Writes the highest point of each bucket at its time, and the last point. */
static void series_write(const struct series *s, struct kp_trace *t, const char *name)
{
    const uint64_t begin = t->cycle.begin_ns, whole = t->cycle.end_ns > begin ? t->cycle.end_ns - begin : 0;
    counter_write(t, name, begin, 0);
    for (uint32_t i = 0; i < BUCKETS; i++) {
        const struct bucket *b = &s->of[i];
        if (!b->is_used) continue;
        counter_write(t, name, b->most_ns, b->most);
        const uint64_t end = begin + whole / BUCKETS * (i + 1) + whole % BUCKETS * (i + 1) / BUCKETS;
        if (b->last != b->most) counter_write(t, name, end > b->most_ns ? end : b->most_ns, b->last);
    }
}

void kp_heap_counters_write(const struct kp_heap *h, struct kp_trace *t)
{
    if (!h->is_count || h->tells_live) series_write(&h->live, t, "Host heap");
    if (h->has_mapped) series_write(&h->mapped, t, "Host mapped memory");
}

/* Writes "FILE+0xOFFSET", as the file's own tables count, or the address without a file. */
static void frame_write(struct kp_trace *t, const struct kp_frame *f)
{
    char offset[32];
    kp_fmt(offset, sizeof offset, "%s0x%lx", f->path[0] ? "+" : "", (unsigned long)f->offset);
    kp_json_fmt(&t->json, "\"%s%s\"", f->path, offset);
}

/* Notes a module of the frames that are written. */
static void module_note(struct kp_heap *h, const struct kp_frame *f)
{
    for (uint32_t i = 0; i < h->modules_n; i++)
        if (h->modules[i].module == f->module) return;
    if (f->module && h->modules_n < MODULES_SHOWN) h->modules[h->modules_n++] = *f;
}

static bool has_room(const struct kp_heap *h, const struct kp_trace *t)
{
    return !t->json.error && t->text_bytes + t->json.used - h->key_at < SHOWN_BYTES;
}

static void stack_write(struct kp_heap *h, struct kp_trace *t, uint32_t stack)
{
    struct kp_blockstack s;
    struct kp_blockframe frame;
    kp_json_char(&t->json, '[');
    kp_blockstack_begin(&s, t, stack);
    for (bool any = false; has_room(h, t) && kp_blockstack_next(&s, &frame); any = true) {
        if (any) kp_json_char(&t->json, ',');
        if (frame.python) {
            kp_json_cstring(&t->json, frame.python);
            continue;
        }
        struct kp_frame native;
        if (!kp_reader_native(t->reader, &frame.id, &native)) break;
        frame_write(t, &native);
        module_note(h, &native);
    }
    kp_json_char(&t->json, ']');
}

static void site_write(struct kp_heap *h, struct kp_trace *t, const struct kp_site *s)
{
    kp_json_fmt(&t->json, "{\"allocations\":%lu", s->taken);
    number(&t->json, "bytes", s->bytes);
    number(&t->json, "peak_blocks", s->peak_blocks);
    number(&t->json, "peak_bytes", s->peak_bytes);
    number(&t->json, "live_blocks", s->live_blocks);
    number(&t->json, "live_bytes", s->live_bytes);
    kp_json_lit(&t->json, ",\"stack\":");
    stack_write(h, t, s->stack);
    kp_json_char(&t->json, '}');
}

/* Writes each module once, with its file's build id. */
static void modules_write(const struct kp_heap *h, struct kp_json *j)
{
    kp_json_lit(j, ",\"modules\":[");
    for (uint32_t i = 0; i < h->modules_n; i++) {
        if (i) kp_json_char(j, ',');
        kp_json_fmt(j, "\n{\"path\":\"%s\",\"build_id\":\"%s\"}", h->modules[i].path, h->modules[i].build_id);
    }
    kp_json_char(j, ']');
}

/* Writes the largest sites, as many as there is room for. All are in NAME.heap.zst. */
static void sites_write(struct kp_heap *h, struct kp_trace *t)
{
    struct kp_sites *s = &h->sites;
    number(&t->json, "unknown_frees", s->unknown);
    if (s->unkept) number(&t->json, "unkept_blocks", s->unkept);
    number(&t->json, "live_blocks", s->live_blocks);
    number(&t->json, "live_bytes", s->live_bytes);
    number(&t->json, "peak_bytes", s->peak_bytes);
    kp_json_fmt(&t->json, ",\"peak_ts\":%ju", kp_ts_of(t, s->peak_ns ? s->peak_ns : t->cycle.begin_ns));
    number(&t->json, "call_stacks", s->n);
    kp_json_lit(&t->json, ",\"sites\":[");
    const struct kp_site *site;
    for (uint32_t i = 0; i < SITES_SHOWN && has_room(h, t) && (site = kp_sites_largest(s, i)); i++) {
        kp_json_raw(&t->json, i ? ",\n" : "\n", i ? 2 : 1);
        site_write(h, t, site);
    }
    kp_json_lit(&t->json, "]");
    modules_write(h, &t->json);
}

void kp_heap_key_write(struct kp_heap *h, struct kp_trace *t)
{
    h->key_at = t->text_bytes + t->json.used;
    kp_json_fmt(&t->json, "  \"kprof_heap\": {\"mode\":\"%s\"", h->is_count ? "count" : "trace");
    number(&t->json, "allocations", h->total.taken);
    number(&t->json, "frees", h->total.given);
    number(&t->json, "bytes", h->total.bytes);
    if (!h->is_count) sites_write(h, t);
    if (h->is_count && h->tells_live) kp_json_fmt(&t->json, ",\"live_bytes\":%ld", h->live.now);
    kp_json_lit(&t->json, "},\n");
}

// SPDX-License-Identifier: Apache-2.0
/*
 * symbol_slices.c - writes calls of functions by name as slices, on their thread's row or beside it
 *
 * Called by: export.c, for every event of the host in order of start time
 * Memory:    16 bytes for each open slice, 64 for each row, and each name once, in its own scratch
 * On fail:   -ENOMEM
 *
 * Viewers want slices of a row to nest. Calls of a stack nest. Calls of coroutines do not, nor does a call with a range
 * that ends outside it. A call that would end after the slice it began in goes to another row: the first of ROWS where
 * it fits. If it fits in none, the last row gets it, cut so that it nests.
 */
#include "export/write/trace/parts.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_log.h"
#include "export/write/names/demangle.h"
#include "export/write/names/shorten.h"
#include "export/write/out/slice.h"
#include "collector/base/kp_poison.h"

enum { ROWS = 8, ROWS_FIRST = 256, ENDS_FIRST = 16, TEXT_MAX = 2048 };
#define BESIDE 0x40000000u /* tid of the first row beside a thread's: above all tids of the kernel */

struct slice_row {
    uint32_t thread_no, beside, tid; /* beside 0: the thread's own */
    bool is_taken;                   /* thread_no may be 0: a damaged file */
    uint32_t n, cap;
    uint64_t *ends; /* of the slices that are open, innermost last */
};
struct kp_named {
    struct kp_trace *t;
    struct slice_row *rows; /* a hash table by thread_no and beside */
    uint32_t rows_n, cap;
    uint32_t beside_n; /* rows beside so far */
    struct kp_demangle names;
    struct kp_scratch scratch;
    char text[TEXT_MAX];
};

int kp_named_open(struct kp_named **out, struct kp_trace *t)
{
    const char *globs = kp_reader_text(t->reader, "KPROF_SYMBOLS");
    *out = NULL;
    if (!globs || !globs[0]) return 0;
    struct kp_named *n = kp_map_alloc(sizeof *n);
    if (!n) return -ENOMEM;
    n->t = t;
    kp_scratch_init(&n->scratch, t->options->scratch_dir, t->options->scratch_most);
    kp_demangle_init(&n->names, &n->scratch, t->options->loads_cpp, t->options->cpp);
    n->cap = ROWS_FIRST;
    n->rows = kp_map_alloc(n->cap * sizeof *n->rows);
    *out = n;
    return n->rows ? 0 : -ENOMEM;
}

void kp_named_close(struct kp_named *n)
{
    if (!n) return;
    for (uint32_t i = 0; n->rows && i < n->cap; i++)
        if (n->rows[i].ends) kp_map_free(n->rows[i].ends, n->rows[i].cap * sizeof(uint64_t));
    if (n->rows) kp_map_free(n->rows, n->cap * sizeof *n->rows);
    kp_demangle_fini(&n->names);
    kp_scratch_fini(&n->scratch);
    kp_map_free(n, sizeof *n);
}

/* --- rows --- */

static struct slice_row *place(struct slice_row *rows, uint32_t cap, uint32_t thread_no, uint32_t beside)
{
    for (uint32_t at = (thread_no * 2654435761u ^ beside * 40503u) % cap;; at = (at + 1) % cap)
        if (!rows[at].is_taken || (rows[at].thread_no == thread_no && rows[at].beside == beside)) return &rows[at];
}

static bool grow(struct kp_named *n)
{
    struct slice_row *more = kp_map_alloc((size_t)n->cap * 2 * sizeof *more);
    if (!more) return false;
    for (uint32_t i = 0; i < n->cap; i++)
        if (n->rows[i].is_taken) *place(more, n->cap * 2, n->rows[i].thread_no, n->rows[i].beside) = n->rows[i];
    kp_map_free(n->rows, n->cap * sizeof *n->rows);
    n->rows = more;
    n->cap *= 2;
    return true;
}

static struct slice_row *row_get(struct kp_named *n, const struct kp_event *e, uint32_t beside)
{
    if (n->rows_n * 2 >= n->cap && !grow(n)) return NULL;
    struct slice_row *row = place(n->rows, n->cap, e->thread_no, beside);
    if (row->is_taken) return row;
    n->rows_n++;
    *row = (struct slice_row){
        .is_taken = true, .thread_no = e->thread_no, .beside = beside, .tid = beside ? BESIDE + n->beside_n++ : e->tid};
    return row;
}

/* The end of the innermost slice open on the row at `start`, or UINT64_MAX. */
static uint64_t row_until(struct slice_row *row, uint64_t start_ns)
{
    while (row->n && row->ends[row->n - 1] <= start_ns) row->n--;
    return row->n ? row->ends[row->n - 1] : UINT64_MAX;
}

static int row_add(struct slice_row *row, uint64_t end_ns)
{
    if (!kp_map_room(&row->ends, row->n, &row->cap, sizeof *row->ends, ENDS_FIRST)) return -ENOMEM;
    row->ends[row->n++] = end_ns;
    return 0;
}

int kp_named_around(struct kp_named *n, const struct kp_event *e)
{
    struct slice_row *row = row_get(n, e, 0);
    if (!row) return -ENOMEM;
    row_until(row, e->start_ns);
    return row_add(row, e->end_ns);
}

/* --- slices --- */

static const char *name_get(struct kp_named *n, const struct kp_event *e)
{
    if (strncmp(e->name, "_Z", 2) != 0)
        return e->name; /* the demangler takes a C function named f for the type float */
    const char *plain = kp_demangle_name(&n->names, e->name);
    if (plain == e->name) return plain;
    kp_symbol_short(plain, n->text, sizeof n->text);
    return n->text[0] ? n->text : e->name;
}

static void slice_write(struct kp_named *n, const struct kp_event *e, uint32_t tid, uint64_t end_ns)
{
    struct kp_trace *t = n->t;
    const char *name = name_get(n, e);
    kp_json_fmt(&t->json,
                "{\"ph\":\"X\",\"cat\":\"symbol\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%ju,\"dur\":%ju,"
                "\"args\":{\"object\":\"%s",
                name, t->pid, tid, kp_ts_of(t, e->start_ns), end_ns - e->start_ns, e->overload);
    if (name != e->name) kp_json_fmt(&t->json, "\",\"symbol\":\"%s", e->name);
    kp_json_char(&t->json, '"');
    if (e->flags & KP_OP_UNFINISHED) kp_json_lit(&t->json, ",\"finished\":false");
    kp_json_fmt(&t->json, ",\"Ev Idx\":%lu}},\n", t->index++);
}

int kp_named_write(struct kp_named *n, const struct kp_event *e)
{
    struct slice_row *row = NULL;
    uint64_t until = 0;
    for (uint32_t beside = 0; !row || (beside < ROWS && until < e->end_ns); beside++) {
        row = row_get(n, e, beside);
        if (!row) return -ENOMEM;
        until = row_until(row, e->start_ns);
    }
    const uint64_t end_ns = until < e->end_ns ? until : e->end_ns;
    slice_write(n, e, row->tid, end_ns);
    return row_add(row, end_ns);
}

void kp_named_rows_write(struct kp_named *n)
{
    char name[64];
    for (uint32_t i = 0; i < n->cap; i++) {
        const struct slice_row *row = &n->rows[i];
        if (!row->beside) continue;
        const struct slice_row *own = place(n->rows, n->cap, row->thread_no, 0);
        kp_fmt(name, sizeof name, "calls beside thread %u", own->tid);
        kp_row_write(n->t, "thread_name", n->t->pid, row->tid, "name", name, 0);
        kp_row_write(n->t, "thread_sort_index", n->t->pid, row->tid, "sort_index", NULL, own->tid);
    }
}

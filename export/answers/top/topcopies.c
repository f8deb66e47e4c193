// SPDX-License-Identifier: Apache-2.0
/* topcopies.c - prints copies and fills of a GPU by direction: how many, how much, how fast, and the host's memory */
#include "export/answers/top/toptable.h"

#include <string.h>

#include "export/show/columns.h"
#include "export/show/plain.h"
#include "export/read/store/qsort.h"

/* CUPTI's names of copies: "Memcpy HtoD (Pageable -> Device)", "Memset (Device)". */
struct copies {
    char what[24];   /* "HtoD"; "fill" */
    char memory[24]; /* of the host: "pageable", "pinned"; "": of a device alone, or not told */
    struct kp_top_cost cost;
};
enum { COPIES_MOST = 32 };

double kp_top_gbps(const struct kp_top_cost *c)
{
    return c->gpu_self_ns > 0 ? (double)c->moved_bytes / c->gpu_self_ns : 0;
}

static bool has(const char *text, const char *word) { return strstr(text, word) != NULL; }

static bool kind_read(const char *name, struct copies *out)
{
    const bool is_copy = strncmp(name, "Memcpy ", 7) == 0;
    if (!is_copy && strncmp(name, "Memset (", 8) != 0) return false;
    *out = (struct copies){.what = "fill"};
    if (is_copy) snprintf(out->what, sizeof out->what, "%.*s", (int)strcspn(name + 7, " ("), name + 7);
    const char *memory = has(name, "Pageable") ? "pageable" : has(name, "Pinned") ? "pinned" : "";
    if (has(name, "Pageable") && has(name, "Pinned")) memory = "pageable, pinned";
    if (has(name, "Managed")) memory = "managed";
    snprintf(out->memory, sizeof out->memory, "%s", memory);
    return true;
}

static void copies_add(struct copies *all, size_t *count, const struct copies *one, const struct kp_top_cost *cost)
{
    size_t at = 0;
    while (at < *count && (strcmp(all[at].what, one->what) != 0 || strcmp(all[at].memory, one->memory) != 0)) at++;
    if (at == COPIES_MOST) return;
    if (at == *count) all[(*count)++] = *one;
    all[at].cost.count += cost->count;
    all[at].cost.gpu_self_ns += cost->gpu_self_ns;
    all[at].cost.moved_bytes += cost->moved_bytes;
}

static int longest_first(const void *a, const void *b)
{
    const struct copies *x = a, *y = b;
    const double more = y->cost.gpu_self_ns - x->cost.gpu_self_ns;
    return more > 0 ? 1 : more < 0 ? -1 : strcmp(x->what, y->what);
}

static const char *amount_text(const struct copies *c, char *room, size_t bytes)
{
    const double megabytes = (double)c->cost.moved_bytes / 1048576.0;
    if (c->cost.moved_bytes <= 0) return "-";
    snprintf(room, bytes, "%.*f", megabytes < 0.1 ? 4 : 2, megabytes);
    return room;
}

#define KP_TABLE struct kp_top
#define KP_ROW struct copies
/* clang-format off */
#define COLUMNS(NUMBER, TEXT) \
    TEXT(what, "copies", NULL, -8, true, (kp_plain_text(room, bytes, r->what, strlen(r->what)), room)) \
    NUMBER(times, "count", NULL, COUNT, 8, true, (double)r->cost.count) \
    TEXT(amount, "MiB", NULL, 10, true, amount_text(r, room, bytes)) \
    NUMBER(gpu_ms, "GPU ms", NULL, MS, 8, true, r->cost.gpu_self_ns) \
    NUMBER(speed, "GB/s", NULL, TIMES, 7, true, r->cost.moved_bytes > 0 ? kp_top_gbps(&r->cost) : NAN) \
    TEXT(memory, "host memory", NULL, 0, true, *r->memory ? r->memory : NULL)
KP_COLUMNS(columns, COLUMNS)
/* clang-format on */

void kp_top_copies_print(FILE *out, const struct kp_top *top)
{
    struct copies all[COPIES_MOST], one;
    size_t count = 0;
    if (top->by != KP_TOP_BY_KERNEL) return;
    for (size_t i = 0; i < top->count; i++)
        if (kind_read(kp_kineto_text(top->trace, top->rows[i].name), &one))
            copies_add(all, &count, &one, &top->rows[i].cost);
    if (!count) return;
    kp_qsort(all, count, sizeof *all, longest_first);
    fputs("\n", out);
    kp_columns_print(out, KP_COLUMNS_OF(columns, top, all, count));
}

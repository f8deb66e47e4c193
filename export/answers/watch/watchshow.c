// SPDX-License-Identifier: Apache-2.0
/* watchshow.c - shows ranks of a run while it goes on: a sentence, and a row a rank */
#include <math.h>
#include <string.h>

#include "export/answers/watch/watch.h"
#include "export/show/fields.h"
#include "export/show/plain.h"
#include "export/show/units.h"

/* ---- the sentence ---- */

static size_t state_count(const struct kp_watch *w, enum kp_watch_state state, const struct kp_watch_rank **first)
{
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++)
        if (w->ranks[i].state == state && !count++) *first = &w->ranks[i];
    return count;
}

static const struct kp_watch_rank *rank_of(const struct kp_watch *w, bool is_most)
{
    const struct kp_watch_rank *found = &w->ranks[0];
    for (size_t i = 1; i < w->count; i++)
        if (is_most ? w->ranks[i].last.step > found->last.step : w->ranks[i].last.step < found->last.step)
            found = &w->ranks[i];
    return found;
}

/* "rank 3", "rank 3 and 2 more". */
static void who_write(char *out, size_t bytes, const struct kp_watch_rank *first, size_t count)
{
    if (count > 1) snprintf(out, bytes, "rank %u and %zu more", first->head.rank, count - 1);
    else snprintf(out, bytes, "rank %u", first->head.rank);
}

static char *trouble_say(const struct kp_watch *w, char *out, size_t bytes)
{
    const struct kp_watch_rank *gone = NULL, *silent = NULL;
    const size_t gones = state_count(w, KP_WATCH_GONE, &gone), silents = state_count(w, KP_WATCH_SILENT, &silent);
    char who[64], since[32], median[32];
    if (gones) {
        who_write(who, sizeof who, gone, gones);
        kp_units_span(since, sizeof since, (int64_t)gone->quiet_ns);
        snprintf(out, bytes, "%s %s killed or left without an exit after step %lu, %s ago", who,
                 gones > 1 ? "were" : "was", (unsigned long)gone->last.step, since);
        return out;
    }
    if (!silents) return NULL;
    who_write(who, sizeof who, silent, silents);
    kp_units_span(since, sizeof since, (int64_t)silent->quiet_ns);
    kp_units_span(median, sizeof median, (int64_t)silent->median_ns);
    snprintf(out, bytes, "%s %s ended no step for %s (the median step takes %s): %s at step %lu", who,
             silents > 1 ? "have" : "has", since, median, silents > 1 ? "they are stuck" : "it is stuck",
             (unsigned long)silent->last.step);
    return out;
}

/*
 * Files are read at different moments, and their last lines are as old as their writers left them. The steps that the
 * other rank ended since then are no sign.
 */
static bool is_behind(const struct kp_watch_rank *r, const struct kp_watch_rank *front)
{
    const double behind = (double)(front->last.step - r->last.step);
    const double since_ns = front->last.end_ns > r->last.end_ns ? (double)(front->last.end_ns - r->last.end_ns) : 0;
    const double since = front->median_ns > 0 ? ceil(since_ns / front->median_ns) : 0;
    return behind - since > 1;
}

char *kp_watch_say(const struct kp_watch *w, char *out, size_t bytes)
{
    const struct kp_watch_rank *const front = rank_of(w, true), *const last = rank_of(w, false);
    const unsigned long most = front->last.step, least = last->last.step;
    char median[32];
    if (trouble_say(w, out, bytes)) return out;
    kp_units_span(median, sizeof median, (int64_t)w->ranks[0].median_ns);
    if (!kp_watch_goes_on(w)) snprintf(out, bytes, "the program ended after step %lu", most);
    else if (is_behind(last, front))
        snprintf(out, bytes, "rank %u is %lu steps behind: step %lu of %lu", last->head.rank, most - least, least,
                 most);
    else snprintf(out, bytes, "step %lu, %s a step, %zu rank%s", most, median, w->count, kp_units_s(w->count));
    return out;
}

/* ---- the table ---- */

static const char *const states[] = {"runs", "silent", "ended", "gone"};

static const char *state_text(const struct kp_watch_rank *r, char *room, size_t bytes)
{
    char since[32];
    if (r->state == KP_WATCH_RUNS) return states[r->state];
    kp_units_span(since, sizeof since, (int64_t)r->quiet_ns);
    snprintf(room, bytes, r->state == KP_WATCH_SILENT ? "%s for %s" : "%s %s ago", states[r->state], since);
    return room;
}

static double known(double value) { return value > 0 ? value : NAN; }

static const char *plain(const char *text, char *room, size_t bytes)
{
    kp_plain_text(room, bytes, text, strlen(text));
    return room;
}

#define KP_TABLE struct kp_watch
#define KP_ROW struct kp_watch_rank
/* clang-format off */
#define COLUMNS(NUMBER, TEXT) \
    NUMBER(rank, "rank", "rank", COUNT, 4, true, r->head.rank) \
    NUMBER(ranks, NULL, "ranks", COUNT, 0, true, r->head.ranks) \
    NUMBER(step, "step", "step", COUNT, 6, true, r->last.count ? (double)r->last.step : NAN) \
    TEXT(state, "state", NULL, -6, true, state_text(r, room, bytes)) \
    NUMBER(last, "last ms", "last_ms", MS_FIT, 8, true, known(r->last_ns)) \
    NUMBER(median, "median ms", "median_ms", MS_FIT, 9, true, known(r->median_ns)) \
    NUMBER(p99, "p99 ms", "p99_ms", MS_FIT, 8, true, known(r->p99_ns)) \
    NUMBER(had, "on a core", "on_core", SHARE, 9, true, r->had) \
    NUMBER(waited, "no core", "no_core", SHARE, 7, true, r->waited) \
    NUMBER(memory, "memory", "resident_bytes", BYTES, 9, true, known(r->last.resident_kb * 1024.0)) \
    NUMBER(quiet, NULL, "quiet_s", TIMES, 0, true, r->quiet_ns / 1e9) \
    NUMBER(lost, NULL, "lost_lines", COUNT, 0, true, (double)r->head.lost) \
    NUMBER(pid, NULL, "pid", COUNT, 0, true, r->head.pid) \
    TEXT(host, "host", "host", 0, true, plain(r->head.host, room, bytes)) \
    TEXT(script, NULL, "script", 0, true, r->head.script) \
    TEXT(job, NULL, "job", 0, true, r->head.job)
KP_COLUMNS(columns, COLUMNS)
/* clang-format on */

void kp_watch_print(FILE *out, const struct kp_watch *w)
{
    char say[256];
    kp_plain_fmt(out, "%s\n\n", kp_watch_say(w, say, sizeof say));
    kp_columns_print(out, KP_COLUMNS_OF(columns, w, w->ranks, w->count));
    for (size_t i = 0; i < w->count; i++)
        if (*w->ranks[i].oom) kp_plain_fmt(out, "rank %u: %s\n", w->ranks[i].head.rank, w->ranks[i].oom);
}

struct watch_row {
    const struct kp_watch *watch;
    const struct kp_watch_rank *rank;
};
#define RANK(F, IF)                                                    \
    F(WORD, state, (states[r->rank->state], "runs|silent|ended|gone")) \
    F(COLUMNS, , (columns, r->watch, r->rank))                         \
    F(MAYBE, out_of_memory, *r->rank->oom ? r->rank->oom : NULL)
KP_FIELDS(rank, struct watch_row, RANK)

#define WATCH(F, IF)                                 \
    F(TEXT, say, kp_watch_say(r, room, sizeof room)) \
    F(BOOL, goes_on, kp_watch_goes_on(r))            \
    F(LIST, ranks, (rank, r->count, &(struct watch_row){r, &r->ranks[i]}))
KP_FIELDS(watch, struct kp_watch, WATCH)

const struct kp_fields *const kp_watch_schema = &watch_fields;

void kp_watch_json(FILE *out, const struct kp_watch *w) { kp_fields_line(out, &watch_fields, w); }

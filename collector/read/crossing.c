// SPDX-License-Identifier: Apache-2.0
/*
 * crossing.c - has frames of Python nest with the ranges that begin or end inside them
 *
 * Called by: events.c, for each event of a thread in order of start, before the walk
 * Memory:    what is open on one thread, 16 bytes for each frame that is cut, 40 for each further part; mapped
 * On fail:   -ENOMEM
 *
 * A range is opened inside the frame of __enter__ and goes on when that frame has ended; a step ends inside the frames
 * of the optimizer. Viewers drop one of two slices that overlap so. Ranges, steps and ops keep their times. A frame
 * that one of them crosses ends there: it is hidden. The rest is a further part of it, if that lasts long, or has an op
 * or more than a few calls. Else these calls stand in the range itself. A wait, as for a lock, is long and has nothing
 * inside it: the next event of the thread shows what was left of it. See decisions/131.
 */
#include "collector/read/crossing.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_search.h"
#include "collector/base/kp_sort.h"
#include "collector/base/kp_poison.h"

enum { OPEN_FIRST = 256, FOUND_FIRST = 256, CALLS_FEW = 4, NEAR_IN_LONG = 100000 };

struct kp_crossing_open {
    struct kp_crossing_part of;
    uint64_t shown_until; /* below of.end: hidden from then on */
    uint32_t cut, part;   /* index + 1 of what says when the part that is shown ends; 0: it ends with the frame */
    uint32_t calls;       /* made while it was hidden */
    bool is_frame;
};

void kp_crossings_fini(struct kp_crossings *x)
{
    if (x->cuts) kp_map_free(x->cuts, x->cuts_cap * sizeof *x->cuts);
    if (x->parts) kp_map_free(x->parts, x->parts_cap * sizeof *x->parts);
    if (x->open) kp_map_free(x->open, x->open_cap * sizeof *x->open);
    *x = (struct kp_crossings){0};
}

/* ---- what was found ---- */

static bool is_rec_before(const void *left, const void *right, const void *context)
{
    (void)context;
    return ((const struct kp_crossing_cut *)left)->rec < ((const struct kp_crossing_cut *)right)->rec;
}

static bool is_rec_below(const void *cut, const void *rec)
{
    return (const void *)((const struct kp_crossing_cut *)cut)->rec < rec;
}

void kp_crossings_sort(struct kp_crossings *x)
{
    if (x->cuts_n) kp_sort(x->cuts, sizeof *x->cuts, x->cuts_n, is_rec_before, NULL);
}

uint64_t kp_crossings_end(const struct kp_crossings *x, const struct kp_rec *rec, uint64_t end)
{
    if (!x->cuts_n) return end;
    const size_t at = kp_search(x->cuts, sizeof *x->cuts, x->cuts_n, is_rec_below, rec);
    return at < x->cuts_n && x->cuts[at].rec == rec && x->cuts[at].end < end ? x->cuts[at].end : end;
}

/* The frame's first part ends at `at`. */
static int cut_put(struct kp_crossings *x, struct kp_crossing_open *frame, uint64_t at)
{
    if (!frame->cut) {
        if (!kp_map_room(&x->cuts, x->cuts_n, &x->cuts_cap, sizeof *x->cuts, FOUND_FIRST)) return -ENOMEM;
        frame->cut = ++x->cuts_n;
    }
    x->cuts[frame->cut - 1] = (struct kp_crossing_cut){frame->of.rec, at};
    return 0;
}

static int part_put(struct kp_crossings *x, struct kp_crossing_open *frame, uint64_t start, uint64_t end, bool is_first)
{
    struct kp_crossing_part part = frame->of;
    if (!kp_map_room(&x->parts, x->parts_n, &x->parts_cap, sizeof *x->parts, FOUND_FIRST)) return -ENOMEM;
    part.start = start, part.end = end, part.is_first = is_first;
    x->parts[x->parts_n++] = part;
    frame->part = x->parts_n;
    frame->shown_until = end;
    return 0;
}

/* The part of the frame that is shown ends at `at`. */
static int hide(struct kp_crossings *x, struct kp_crossing_open *frame, uint64_t at)
{
    if (frame->part) x->parts[frame->part - 1].end = at;
    else if (cut_put(x, frame, at)) return -ENOMEM;
    frame->shown_until = at;
    x->is_crossed = true;
    return 0;
}

/* ---- what is open ---- */

/* When the first of the ranges below `depth` that are open now ends, or `end`. */
static uint64_t end_in_ranges(const struct kp_crossings *x, uint32_t depth, uint64_t now, uint64_t end)
{
    for (uint32_t i = 0; i < depth; i++)
        if (!x->open[i].is_frame && x->open[i].of.end > now && x->open[i].of.end < end) end = x->open[i].of.end;
    return end;
}

static int put(struct kp_crossings *x, uint32_t at, const struct kp_crossing_open *entry)
{
    if (!kp_map_room(&x->open, x->depth, &x->open_cap, sizeof *x->open, OPEN_FIRST)) return -ENOMEM;
    memmove(&x->open[at + 1], &x->open[at], (x->depth - at) * sizeof *x->open);
    x->open[at] = *entry;
    x->depth++;
    return 0;
}

static void drop_ended(struct kp_crossings *x, uint64_t now)
{
    uint32_t kept = 0;
    if (!x->is_crossed) {
        while (x->depth && x->open[x->depth - 1].of.end <= now) x->depth--;
        return;
    }
    x->is_crossed = false;
    for (uint32_t i = 0; i < x->depth; i++) {
        if (x->open[i].of.end <= now) continue;
        x->is_crossed |= x->open[i].shown_until < x->open[i].of.end;
        x->open[kept++] = x->open[i];
    }
    x->depth = kept;
}

/* Shows the hidden frame again, up to the end of the range that it crosses next. */
static int show(struct kp_crossings *x, uint32_t at, uint64_t now)
{
    struct kp_crossing_open *const frame = &x->open[at];
    const uint64_t since = x->last_start > frame->shown_until ? now : frame->shown_until + 1;
    return part_put(x, frame, since, end_in_ranges(x, at, now, frame->of.end), false);
}

/* Whether a frame that is shown, or a range, lies in the one at `at`: that would cross it. */
static bool has_shown_inside(const struct kp_crossings *x, uint32_t at, uint64_t now)
{
    while (++at < x->depth)
        if (x->open[at].shown_until > now) return true;
    return false;
}

/* Whether the hidden frame is to be shown around the event. A range that crosses it hides it on. */
static bool is_worth(const struct kp_crossings *x, struct kp_crossing_open *frame, const struct kp_crossing_part *event,
                     bool is_call)
{
    if (!is_call) return event->end <= frame->of.end;
    return frame->of.end - frame->shown_until >= x->long_ticks || ++frame->calls > CALLS_FEW;
}

/* Before an event: shows the hidden frames around it that are worth a part. */
static int show_around(struct kp_crossings *x, const struct kp_crossing_part *event, bool is_call)
{
    int rc = 0;
    for (uint32_t i = 0; i < x->depth && !rc; i++) {
        struct kp_crossing_open *const o = &x->open[i];
        if (!o->is_frame || o->shown_until >= event->start || o->shown_until >= o->of.end) continue;
        if (has_shown_inside(x, i, event->start)) continue;
        if (is_worth(x, o, event, is_call)) rc = show(x, i, event->start);
    }
    return rc;
}

static bool is_long_rest(const struct kp_crossings *x, const struct kp_crossing_open *o)
{
    return o->is_frame && o->shown_until < o->of.end && o->shown_until >= x->last_start &&
           o->of.end - o->shown_until >= x->long_ticks;
}

/* Whether a hidden frame ended, with a long rest in which the thread has no event. */
static bool has_ended_long(const struct kp_crossings *x, uint64_t now)
{
    for (uint32_t i = 0; i < x->depth; i++)
        if (x->open[i].of.end <= now && is_long_rest(x, &x->open[i])) return true;
    return false;
}

/* Shows long rests in which nothing began, the outer ones first: each up to the end of a range that crosses it. */
static int show_ended(struct kp_crossings *x, uint64_t now)
{
    bool is_shown = true;
    int rc = 0;
    while (x->is_crossed && is_shown && !rc && has_ended_long(x, now)) {
        is_shown = false;
        for (uint32_t i = 0; i < x->depth && !rc; i++) {
            const uint64_t since = x->open[i].shown_until + 1;
            if (!is_long_rest(x, &x->open[i]) || has_shown_inside(x, i, since)) continue;
            rc = show(x, i, since);
            is_shown = true;
        }
    }
    return rc;
}

int kp_crossings_thread(struct kp_crossings *x)
{
    const int rc = show_ended(x, UINT64_MAX);
    x->depth = 0;
    x->last_start = 0;
    x->is_crossed = false;
    return rc;
}

static int frame_take(struct kp_crossings *x, const struct kp_crossing_part *event)
{
    struct kp_crossing_open frame = {.of = *event, .shown_until = event->end, .is_frame = true};
    const uint64_t until = end_in_ranges(x, x->depth, event->start, event->end);
    const int rc = until < event->end ? hide(x, &frame, until) : 0;
    return rc ? rc : put(x, x->depth, &frame);
}

/* The frame ends inside the range that begins at `at`. An op that was open before a window begins with the window's
 * first step. */
static int enter(struct kp_crossings *x, struct kp_crossing_open *frame, uint64_t at)
{
    const bool is_begin = !frame->part && !frame->cut && at - frame->of.start <= x->long_ticks / NEAR_IN_LONG;
    int rc;
    if (is_begin && frame->of.end > at + 1) {
        rc = cut_put(x, frame, 0);
        return rc ? rc : part_put(x, frame, at + 1, frame->of.end, true);
    }
    rc = hide(x, frame, at < frame->shown_until ? at : frame->shown_until);
    frame->shown_until = at;
    return rc;
}

/* Frames that end before the range does are in it from now on. */
static int range_take(struct kp_crossings *x, const struct kp_crossing_part *event)
{
    uint32_t at = x->depth;
    int rc = 0;
    while (at && x->open[at - 1].is_frame && x->open[at - 1].of.end < event->end) at--;
    for (uint32_t i = at; i < x->depth && !rc; i++) rc = enter(x, &x->open[i], event->start);
    return rc ? rc : put(x, at, &(struct kp_crossing_open){.of = *event, .shown_until = event->end});
}

/* Events mostly nest: then the innermost that is open tells. */
static bool is_nested(const struct kp_crossings *x, const struct kp_crossing_part *event)
{
    return !x->is_crossed && (!x->depth || x->open[x->depth - 1].of.end >= event->end);
}

int kp_crossings_take(struct kp_crossings *x, const struct kp_crossing_part *event, bool is_frame)
{
    if (event->start < x->last_start || event->end <= event->start) return 0;
    int rc = show_ended(x, event->start);
    if (rc) return rc;
    drop_ended(x, event->start);
    if (is_nested(x, event))
        rc =
            put(x, x->depth, &(struct kp_crossing_open){.of = *event, .shown_until = event->end, .is_frame = is_frame});
    else {
        rc = show_around(x, event, is_frame);
        if (!rc) rc = is_frame ? frame_take(x, event) : range_take(x, event);
    }
    x->last_start = event->start;
    return rc;
}

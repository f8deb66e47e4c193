// SPDX-License-Identifier: Apache-2.0
/* hangidle.c - a main thread that waits for what no other thread can bring, or that waits for this one */
#include "export/answers/hang/hangidle.h"

#include <string.h>

#include "export/answers/hang/hangchild.h"
#include "export/read/frames/ownline.h"
#include "export/show/units.h"

enum { POOL_THREADS_SHOWN = 4 };

static bool is_at(const struct kp_hang_frame *f, const char *file_end, const char *function)
{
    const size_t bytes = strlen(f->file), end = strlen(file_end);
    return bytes >= end && strcmp(f->file + bytes - end, file_end) == 0 && strcmp(f->function, function) == 0 &&
           !kp_ownline_is_file(NULL, f->file);
}

/* An event, a condition, a queue or a Future: all wait in Condition.wait, which another thread must notify. */
static bool waits_for_notice(const struct kp_hang_thread *t)
{
    return t && t->frame_count && strcmp(t->call.name, "futex") == 0 && !*t->call.on &&
           is_at(&t->frames[0], "/threading.py", "wait");
}

static bool is_pool_idle(const struct kp_hang_thread *t)
{
    return strcmp(t->call.name, "futex") == 0 && is_at(&t->frames[0], "/concurrent/futures/thread.py", "_worker");
}

/* False: another thread of Python runs, or one of C++ that may call Python. */
static bool pool_count(const struct kp_hang_process *p, size_t *idle)
{
    *idle = 0;
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct kp_hang_thread *const t = &p->threads[i];
        if (t->is_main) continue;
        if (t->frame_count ? !is_pool_idle(t) : strcmp(t->call.name, "futex") != 0) return false;
        *idle += t->frame_count > 0;
    }
    return true;
}

/* It waits in the get() of a queue.Queue. */
static bool is_in_get(const struct kp_hang_thread *t)
{
    return waits_for_notice(t) && t->frame_count > 1 && is_at(&t->frames[1], "/queue.py", "get");
}

/* "; main and threads 7, 8 all wait in get() of queues": each waits for another to put. */
static bool gets_say(FILE *out, const struct kp_hang_process *p)
{
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct kp_hang_thread *const t = &p->threads[i];
        const bool is_in = is_in_get(t);
        if (t->frame_count ? !is_in && !is_pool_idle(t) : strcmp(t->call.name, "futex") != 0) return false;
        count += !t->is_main && is_in;
    }
    if (!count || !is_in_get(kp_hang_main(p))) return false;
    fprintf(out, "; the main thread and thread%s ", kp_units_s(count));
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct kp_hang_thread *const t = &p->threads[i];
        const struct kp_hang_frame *const own = kp_hang_own(t);
        if (t->is_main || !is_in_get(t) || shown++ >= POOL_THREADS_SHOWN) continue;
        fprintf(out, "%s%ld", shown > 1 ? ", " : "", t->tid);
        if (own) fputs(" (", out), kp_hang_frame_put(out, own), fputs(")", out);
    }
    if (count > POOL_THREADS_SHOWN) fprintf(out, " and %zu more", count - POOL_THREADS_SHOWN);
    fputs(" all wait in get() of queues: no thread of Python is left that puts", out);
    return true;
}

void kp_hang_idle_say(FILE *out, const struct kp_hang_process *p)
{
    size_t idle, shown = 0;
    if (!*p->no_python && !p->left_out && gets_say(out, p)) return;
    if (!waits_for_notice(kp_hang_main(p)) || *p->no_python || p->left_out || !pool_count(p, &idle)) return;
    fputs("; no other thread runs code of Python that could end this wait", out);
    if (!idle) {
        fputs(". Did the thread that should end it end by an exception?", out);
        return;
    }
    fprintf(out, ": thread%s ", kp_units_s(idle));
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct kp_hang_thread *const t = &p->threads[i];
        if (t->is_main || !t->frame_count) continue;
        if (shown++ < POOL_THREADS_SHOWN) fprintf(out, "%s%ld", shown > 1 ? ", " : "", t->tid);
    }
    if (idle > POOL_THREADS_SHOWN) fprintf(out, " and %zu more", idle - POOL_THREADS_SHOWN);
    fprintf(out,
            " of a ThreadPoolExecutor wait%s for work. Did what %s ran end by an exception that nobody read "
            "(Future.exception())?",
            idle == 1 ? "s" : "", idle == 1 ? "it" : "they");
}

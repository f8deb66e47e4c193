// SPDX-License-Identifier: Apache-2.0
/* hangidle.c - a main thread that waits for what no other thread can bring */
#include "export/answers/hang/hangidle.h"

#include <string.h>

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

void kp_hang_idle_say(FILE *out, const struct kp_hang_process *p)
{
    size_t idle, shown = 0;
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

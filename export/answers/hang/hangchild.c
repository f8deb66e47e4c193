// SPDX-License-Identifier: Apache-2.0
/* hangchild.c - the child processes of one that stands: what they do, and which were killed */
#include "export/answers/hang/hangchild.h"

#include <string.h>
#include <sys/wait.h>

#include "collector/base/kp_crash.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_signalname.h"
#include "export/read/frames/ownline.h"
#include "export/read/kineto/ended.h"
#include "export/show/plain.h"

void kp_hang_call_put(FILE *out, const struct kp_hang_call *call)
{
    const bool has_words = *call->words;
    kp_plain_fmt(out, "%s", call->words);
    if (!*call->name) return;
    kp_plain_fmt(out, "%s%s", has_words ? " (" : "", call->name);
    if (*call->on) kp_plain_fmt(out, ": %s", call->on);
    if (has_words) fputc(')', out);
}

void kp_hang_frame_put(FILE *out, const struct kp_hang_frame *f)
{
    kp_plain_fmt(out, "%s:%ld %s", kp_path_base(f->file), f->line, f->function);
}

/* Leaves out the folder of packages, which is the same for all of them. */
static const char *file_short(const char *file)
{
    static const char folder[] = "-packages/"; /* site-packages, dist-packages */
    const char *const packages = strstr(file, folder);
    return packages ? packages + sizeof folder - 1 : file;
}

void kp_hang_frames_print(FILE *out, const struct kp_hang_thread *t)
{
    for (size_t i = 0; i < t->frame_count; i++) {
        const struct kp_hang_frame *const f = &t->frames[i];
        kp_plain_fmt(out, "    %s:%ld %s\n", file_short(f->file), f->line, f->function);
    }
    if (t->is_cut) fputs("    (more, which could not be read)\n", out);
}

/* No part of a program ends its children so. SIGTERM is the usual way. */
static bool is_killed(int status) { return status > 0 && WIFSIGNALED(status) && kp_crash_is(WTERMSIG(status)); }

static void end_put(FILE *out, int status)
{
    char name[16];
    if (status < 0) fputs("has ended", out);
    else if (WIFSIGNALED(status))
        fprintf(out, "was killed by %s", kp_signalname_put(WTERMSIG(status), name, sizeof name));
    else fprintf(out, "has ended with status %d", WEXITSTATUS(status));
}

static void child_put(FILE *out, const struct kp_hang_child *c)
{
    const struct kp_hang_frame *const own = kp_hang_own(&c->main);
    const struct kp_hang_call *const call = &c->main.call;
    const bool has_call = *call->words || *call->name;
    kp_plain_fmt(out, "process %ld", c->main.tid);
    if (*c->main.name) kp_plain_fmt(out, " (%s)", c->main.name);
    fputc(' ', out);
    if (own) fputs("is at ", out), kp_hang_frame_put(out, own);
    if (own && has_call) fputs(", ", out);
    if (c->is_over) end_put(out, c->status);
    else if (has_call) kp_hang_call_put(out, call);
    else if (!own) fputs("runs", out);
    if (c->is_over && c->ago_ms > 0) fprintf(out, " %.1f s before", c->ago_ms / 1e3);
}

static bool is_awaited(const struct kp_hang_process *p, const struct kp_hang_child *c)
{
    char name[32];
    snprintf(name, sizeof name, "process %ld", c->main.tid);
    const struct kp_hang_thread *const main = kp_hang_main(p);
    return main && strcmp(main->call.on, name) == 0;
}

/* A lock of the child's own memory, at a line of the program: no worker waits so for work. */
static bool is_locked(const struct kp_hang_child *c)
{
    const struct kp_hang_frame *const own = kp_hang_own(&c->main);
    return !c->is_over && strcmp(c->main.call.name, "futex") == 0 && !*c->main.call.on && own &&
           kp_ownline_is_file(NULL, own->file);
}

static bool is_in_library(const struct kp_hang_frame *f) { return !kp_ownline_is_file(NULL, f->file); }

/* Its frame of Python's library, of that function. */
static bool has_frame(const struct kp_hang_thread *t, const char *file, const char *function)
{
    for (size_t i = 0; i < t->frame_count; i++) {
        const struct kp_hang_frame *const f = &t->frames[i];
        if (strcmp(f->function, function) == 0 && strcmp(kp_path_base(f->file), file) == 0 && is_in_library(f))
            return true;
    }
    return false;
}

/* The thread of a multiprocessing.Queue that stands in a write, for whose end the child waits. NULL: none. */
static const struct kp_hang_thread *feeder_of(const struct kp_hang_child *c)
{
    if (!has_frame(&c->main, "queues.py", "_finalize_join")) return NULL;
    for (size_t i = 0; i < c->thread_count; i++)
        if (has_frame(&c->threads[i], "queues.py", "_feed") && strcmp(c->threads[i].call.name, "write") == 0)
            return &c->threads[i];
    return NULL;
}

/* A thread that it waits for, or one that works, is in the child: no lock of its parent's is what it waits for. */
static bool may_be_orphaned(const struct kp_hang_child *c)
{
    bool works = false;
    for (size_t i = 0; i < c->thread_count; i++)
        works |= c->threads[i].state == 'R' || strcmp(c->threads[i].call.name, "futex") != 0;
    return !works && !has_frame(&c->main, "threading.py", "join");
}

/* The facts about why it waits. */
static void reason_say(FILE *out, const struct kp_hang_child *c)
{
    const struct kp_hang_thread *const feeder = feeder_of(c);
    if (feeder) {
        kp_plain_fmt(out, ". At its exit it waits for its thread %ld, which puts into a queue: ", feeder->tid);
        kp_hang_call_put(out, &feeder->call);
        fputs(". The pipe is full until another process reads that queue: call get() before join()", out);
    } else if (is_locked(c) && !c->is_spawned && may_be_orphaned(c))
        fputs(". Was it forked while a thread held that lock? Then it waits for ever", out);
}

static bool waits_for_data(const struct kp_hang_process *p)
{
    const struct kp_hang_thread *const main = kp_hang_main(p);
    return main && *main->call.words && strcmp(main->call.name, "futex") != 0;
}

void kp_hang_child_say(FILE *out, const struct kp_hang_process *p)
{
    const struct kp_hang_child *said = NULL;
    for (size_t i = 0; i < p->child_count; i++)
        if (!said && is_awaited(p, &p->children[i])) said = &p->children[i];
    for (size_t i = p->child_count; !said && i-- > 0;) /* the newest last */
        if (p->children[i].is_over && is_killed(p->children[i].status)) said = &p->children[i];
    for (size_t i = 0; i < p->child_count && !said && waits_for_data(p); i++)
        if (is_locked(&p->children[i])) said = &p->children[i];
    if (!said) return;
    fputs(said->is_over ? "; its child " : "; ", out);
    child_put(out, said);
    if (!said->is_over) reason_say(out, said);
}

/* One with frames, or that does something. */
static void thread_print(FILE *out, const struct kp_hang_thread *t)
{
    if (!t->frame_count && strcmp(t->call.name, "futex") == 0) return;
    kp_plain_fmt(out, "    its thread %ld", t->tid);
    if (*t->name) kp_plain_fmt(out, " (%s)", t->name);
    fputs(": ", out);
    if (*t->call.words || *t->call.name) kp_hang_call_put(out, &t->call);
    else fputs("runs", out);
    fputc('\n', out);
    kp_hang_frames_print(out, t);
}

void kp_hang_children_print(FILE *out, const struct kp_hang_process *p)
{
    for (size_t i = 0; i < p->child_count; i++) {
        fputs("  child ", out);
        child_put(out, &p->children[i]);
        fputc('\n', out);
        kp_hang_frames_print(out, &p->children[i].main);
        for (size_t k = 0; k < p->children[i].thread_count; k++) thread_print(out, &p->children[i].threads[k]);
    }
}

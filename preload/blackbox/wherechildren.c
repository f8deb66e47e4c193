// SPDX-License-Identifier: Apache-2.0
/*
 * wherechildren.c - what the child processes of this one do, and which were killed
 *
 * Called by: where.c, on the thread that answers
 * Owns:      the numbers of the children
 * Locks:     none
 * Memory:    static
 * On fail:   children that cannot be read are left out. A kernel without /proc/TID/children shows none.
 * Safe in:   signal handlers no; after fork yes
 *
 * A program that waits for a child says so by its own frames alone: what that child does, or that it was killed, is
 * the cause. A child's frames of Python are read from here as well: it may wait for a lock that a thread of this
 * process held when it was forked. Children of multiprocessing's fork server count as the program's. Which ended is
 * known until the program waits for it (a zombie), and where waitpid took it (endlist.c).
 */
#include "preload/blackbox/where.h"

#include <string.h>
#include <sys/wait.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "export/write/out/json.h"
#include "preload/blackbox/task.h"
#include "preload/procfacts/endlist.h"
#include "preload/python_bridge.h"
#include "collector/base/kp_poison.h"

enum { CHILDREN_MAX = 32, CHILDREN_WITH_FRAMES = 8, FRAMES_MOST = 24 };
enum { THREADS_MOST = 8, THREAD_FRAMES_MOST = 8 }; /* of a child, beside its main thread */

static uint32_t children[CHILDREN_MAX], children_n;

static void started_note(uint32_t pid, uint32_t tid)
{
    children_n += kp_task_children(pid, tid, children + children_n, CHILDREN_MAX - children_n);
}

void kp_wherechildren_note(uint32_t tid)
{
    uint32_t i = children_n;
    started_note(0, tid);
    for (const uint32_t end = children_n; i < end; i++) /* it forks what is started */
        if (kp_io_command_has(children[i], "multiprocessing.forkserver")) started_note(children[i], children[i]);
}

void kp_wherechildren_call_put(struct kp_json *j, const struct kp_task *t)
{
    const char *words = "", *const name = kp_task_call(t, &words);
    if (t->call == KP_TASK_RUNS) kp_json_lit(j, ",\"words\":\"runs\"");
    if (t->call < 0) return;
    if (name) kp_json_fmt(j, ",\"call\":\"%s\",\"words\":\"%s\"", name, words);
    else kp_json_fmt(j, ",\"call\":\"%ld\"", t->call);
    if (*t->on) kp_json_fmt(j, ",\"on\":\"%s\"", t->on);
}

void kp_wherechildren_frames_put(struct kp_json *j, const struct kp_pywhere_stack *s)
{
    kp_json_lit(j, ",\"python\":[");
    for (uint32_t i = 0; i < s->count; i++) {
        const struct kp_pywhere_frame *const f = &s->frames[i];
        kp_json_fmt(j, "%s{\"file\":\"%s\",\"line\":", i ? "," : "", f->file);
        if (f->line < 0) kp_json_lit(j, "null");
        else kp_json_i64(j, f->line);
        kp_json_fmt(j, ",\"function\":\"%s\"}", f->function);
    }
    kp_json_char(j, ']');
    if (s->is_cut) kp_json_lit(j, ",\"cut\":true");
    if (s->has_moved) kp_json_lit(j, ",\"moved\":true");
}

/* Not a process of the library that writes where the folder stands. */
static bool is_of_host(const struct kp_task *t) { return strncmp(t->name, "kprof-", 6) != 0; }

static void lost_put(struct kp_json *j)
{
    char text[KP_ENDLIST_MAX * KP_ENDLIST_LINE + 1] = "";
    bool is_first = true;
    const uint64_t now_ns = kp_clock_ns(CLOCK_REALTIME);
    text[kp_endlist_text(text, sizeof text)] = '\0';
    kp_json_lit(j, ",\"lost\":[");
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        const uint32_t pid = (uint32_t)kp_digits_read(&at);
        at += *at == ' ';
        const int status = (int)kp_digits_read(&at);
        at += *at == ' ';
        const uint64_t at_ns = kp_digits_read(&at);
        if (!WIFSIGNALED(status)) continue; /* programs run commands that fail */
        kp_json_fmt(j, "%s{\"pid\":%u,\"status\":%d,\"ago_ms\":%lu}", is_first ? "" : ",", pid, status,
                    (unsigned long)(now_ns > at_ns ? (now_ns - at_ns) / 1000000 : 0));
        is_first = false;
    }
    kp_json_char(j, ']');
}

static void child_put(struct kp_json *j, const struct kp_task *t)
{
    kp_json_fmt(j, "{\"pid\":%u,\"name\":\"%s\",\"state\":\"%c\"", t->tid, t->name, t->state);
    kp_wherechildren_call_put(j, t);
    if (t->status >= 0) kp_json_fmt(j, ",\"status\":%d", t->status);
}

static void frames_cut(struct kp_pywhere_stack *s, uint32_t most)
{
    if (s->count > most) s->count = most, s->is_cut = true;
}

static struct thread_list {
    uint32_t tids[THREADS_MOST], count, main;
} list;

static void thread_note(void *context, const char *name)
{
    struct thread_list *const l = context;
    const uint32_t tid = (uint32_t)kp_digits(name);
    if (tid != l->main && l->count < THREADS_MOST) l->tids[l->count++] = tid;
}

/* The first few other threads of a child: its main thread may wait for them. */
static void threads_put(struct kp_json *j, uint32_t pid, struct kp_pywhere_stack *room)
{
    char path[64];
    bool is_first = true;
    struct kp_task t;
    list = (struct thread_list){.main = pid};
    kp_fmt(path, sizeof path, "/proc/%u/task", pid);
    (void)kp_io_each_name(path, thread_note, &list);
    kp_json_lit(j, ",\"threads\":[");
    for (uint32_t i = 0; i < list.count; i++) {
        if (!kp_task_look(&t, pid, list.tids[i]) || !is_of_host(&t)) continue;
        kp_json_fmt(j, "%s{\"tid\":%u,\"name\":\"%s\",\"state\":\"%c\"", is_first ? "" : ",", t.tid, t.name, t.state);
        kp_wherechildren_call_put(j, &t);
        (void)kp_pywhere_child(pid, t.tid, room);
        frames_cut(room, THREAD_FRAMES_MOST);
        if (room->count) kp_wherechildren_frames_put(j, room);
        kp_json_char(j, '}');
        is_first = false;
    }
    kp_json_char(j, ']');
}

/* False: no frame of it is known. */
static bool child_frames_put(struct kp_json *j, uint32_t pid, struct kp_pywhere_stack *room)
{
    const bool is_forked = kp_pywhere_child(pid, pid, room);
    frames_cut(room, FRAMES_MOST);
    if (!room->count) return false;
    kp_wherechildren_frames_put(j, room);
    if (!is_forked) kp_json_lit(j, ",\"spawned\":true");
    threads_put(j, pid, room);
    return true;
}

void kp_wherechildren_put(struct kp_json *j, struct kp_pywhere_stack *room)
{
    struct kp_task t;
    unsigned with_frames = CHILDREN_WITH_FRAMES;
    bool is_first = true;
    kp_json_lit(j, ",\"children\":[");
    for (uint32_t i = 0; i < children_n; i++) {
        if (!kp_task_look(&t, children[i], children[i]) || !is_of_host(&t)) continue;
        if (!is_first) kp_json_char(j, ',');
        child_put(j, &t);
        if (t.status < 0 && with_frames) with_frames -= child_frames_put(j, t.tid, room);
        kp_json_char(j, '}');
        is_first = false;
    }
    kp_json_char(j, ']');
    children_n = 0;
    lost_put(j);
}

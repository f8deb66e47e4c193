// SPDX-License-Identifier: Apache-2.0
/*
 * where.c - writes where every thread of this process stands: its Python frames, else its system call
 *
 * Called by: the thread kprof-control, for `kprof ctl DIR where`
 * Owns:      lists of threads and the frames of one, mapped at the first call
 * Locks:     none; no thread is stopped, and no signal sent
 * Memory:    100 KB, and the text, of 256 KB at most
 * On fail:   what cannot be read is left out, and the text says so
 * Safe in:   signal handlers no; after fork yes
 *
 * Threads come and go meanwhile. A thread that is gone when its files are read is left out.
 */
#include "preload/blackbox/where.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/kp_rank.h"
#include "export/write/out/json.h"
#include "preload/blackbox/task.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "preload/torch_bridge.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { COLLECTIVES_MAX = 64, MAIN_BYTES = 512, TASKS_MAX = 2048, TEXT_MAX = 256 << 10, TEXT_FIRST = 64 << 10 };

static struct where {
    uint32_t tids[TASKS_MAX], count, ours, left_out;
    struct kp_pywhere_thread python[TASKS_MAX];
    uint32_t python_count;
    struct kp_pywhere_stack stack;
    char main[MAIN_BYTES]; /* the main thread's place */
} * here;

/* ---- threads ---- */

static void task_note(void *context, const char *name)
{
    struct where *const w = context;
    const uint32_t tid = (uint32_t)kp_digits_read(&name);
    if (!tid || *name) return;
    if (w->count < TASKS_MAX) w->tids[w->count++] = tid;
    else w->left_out++;
}

/* ---- the text ---- */

static int text_add(void *context, const void *data, size_t bytes)
{
    struct kp_where_text *const t = context;
    while (t->used + bytes + 1 > t->room) {
        const size_t room = t->room ? 2 * t->room : TEXT_FIRST;
        char *const grown = t->at ? kp_map_grow(t->at, t->room, room) : kp_map_alloc(room);
        if (!grown) return -ENOMEM;
        t->at = grown;
        t->room = room;
    }
    memcpy(t->at + t->used, data, bytes);
    t->used += bytes;
    return 0;
}

void kp_where_drop(struct kp_where_text *t)
{
    if (t->at) kp_map_free(t->at, t->room);
    *t = (struct kp_where_text){0};
}

static const struct kp_pywhere_thread *python_of(const struct where *w, uint32_t tid)
{
    for (uint32_t i = 0; i < w->python_count; i++)
        if (w->python[i].tid == tid) return &w->python[i];
    return NULL;
}

/* The innermost frame of no package and not of Python's library; without one the innermost. */
static const struct kp_pywhere_frame *own_find(const struct kp_pywhere_stack *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (kp_pyfile_is_own(s->frames[i].file)) return &s->frames[i];
    return s->count ? &s->frames[0] : NULL;
}

static void call_note(struct where *w, const struct kp_task *t)
{
    const char *words, *const name = kp_task_call(t, &words);
    w->main[0] = '\0'; /* a thread that runs, in no frame of Python */
    if (name) kp_fmt(w->main, sizeof w->main, "%s, which %s", name, words);
    else if (t->call >= 0) kp_fmt(w->main, sizeof w->main, "system call %ld", t->call);
}

static void main_note(struct where *w, const struct kp_task *t, const struct kp_pywhere_stack *stack)
{
    const struct kp_pywhere_frame *const f = stack ? own_find(stack) : NULL;
    if (t->tid != (uint32_t)getpid()) return;
    if (f) kp_fmt(w->main, sizeof w->main, "%s:%d %s", kp_path_base(f->file), f->line, f->function);
    else call_note(w, t);
}

const char *kp_where_main(void) { return here && *here->main ? here->main : "a place that is not known"; }

static void gil_note(const struct where *w, struct kp_task *t)
{
    const uint32_t holder = t->futex ? kp_pywhere_gil_holder(t->futex, w->python, w->python_count) : 0;
    if (!holder || holder == t->tid) return;
    t->words = "waits for Python's GIL";
    kp_fmt(t->on, sizeof t->on, "thread %u", holder);
}

static void task_put(struct kp_json *j, struct where *w, struct kp_task *t, bool is_first)
{
    const struct kp_pywhere_thread *const python = python_of(w, t->tid);
    kp_json_fmt(j, "%s{\"tid\":%u,\"name\":\"%s\",\"state\":\"%c\",\"cpu_ms\":%lu", is_first ? "" : ",", t->tid,
                t->name, t->state, (unsigned long)t->cpu_ms);
    if (t->tid == (uint32_t)getpid()) kp_json_lit(j, ",\"main\":true");
    gil_note(w, t);
    kp_wherechildren_call_put(j, t);
    if (*t->channel) kp_json_fmt(j, ",\"kernel\":\"%s\"", t->channel);
    if (python) {
        kp_pywhere_stack(python, &w->stack);
        kp_wherechildren_frames_put(j, &w->stack);
    }
    main_note(w, t, python ? &w->stack : NULL);
    kp_json_char(j, '}');
}

/* If the text has no room for another deep stack, the threads that follow are counted alone. */
static int tasks_put(struct kp_json *j, struct where *w, const struct kp_where_text *out)
{
    struct kp_task t;
    bool is_first = true;
    int rc = 0;
    kp_json_lit(j, ",\"threads\":[");
    for (uint32_t i = 0; i < w->count && rc == 0; i++) {
        const bool is_there = kp_task_look(&t, 0, w->tids[i]), is_ours = is_there && strncmp(t.name, "kprof-", 6) == 0;
        w->ours += is_ours;
        kp_wherechildren_note(w->tids[i]);
        if (!is_there || is_ours) continue;
        rc = kp_json_flush(j);
        if (out->used > TEXT_MAX - sizeof w->stack) {
            w->left_out++;
            continue;
        }
        task_put(j, w, &t, is_first);
        is_first = false;
    }
    kp_json_fmt(j, "],\"left_out\":%u,\"ours\":%u", w->left_out, w->ours);
    return rc;
}

void kp_where_process(struct kp_json *j, const char *event)
{
    const struct kp_rank place = kp_run_rank();
    char host[KP_IO_HOST_BYTES];
    kp_io_host_name(host);
    kp_json_fmt(j, "\"event\":\"%s\",\"pid\":%d,\"host\":\"%s\",\"time_ms\":%lu", event, (int)getpid(), host,
                (unsigned long)(kp_clock_ns(CLOCK_REALTIME) / 1000000));
    if (place.is_launched || place.size > 1) kp_json_fmt(j, ",\"rank\":%u,\"size\":%u", place.rank, place.size);
    if (*kp_run_job()) kp_json_fmt(j, ",\"job\":\"%s\"", kp_run_job());
    kp_json_fmt(j, ",\"step\":%lu,\"steps_by\":\"%s\"", (unsigned long)kp_steps_seen(),
                kp_step_source_name(kp_steps_source()));
}

static void collectives_put(struct kp_json *j)
{
    struct kp_collective_count all[COLLECTIVES_MAX];
    const uint32_t count = kp_torch_collectives(all, COLLECTIVES_MAX);
    const uint64_t now_ms = kp_clock_ms();
    kp_json_lit(j, ",\"collectives\":[");
    for (uint32_t i = 0; i < count; i++)
        kp_json_fmt(j, "%s{\"name\":\"%s\",\"begun\":%lu,\"ended\":%lu,\"since_ms\":%lu}", i ? "," : "", all[i].name,
                    (unsigned long)all[i].begun, (unsigned long)all[i].ended,
                    (unsigned long)(now_ms - all[i].since_ms));
    kp_json_char(j, ']');
}

static void python_put(struct kp_json *j, struct where *w)
{
    const char *const why = kp_pywhere_threads(w->python, TASKS_MAX, &w->python_count);
    const uint32_t version = kp_pywhere_version();
    if (version) kp_json_fmt(j, ",\"python\":\"%u.%u\"", version / 100, version % 100);
    if (why) kp_json_fmt(j, ",\"no_python\":\"%s\"", why);
}

int kp_where_write(struct kp_where_text *out, const char *event)
{
    struct kp_json j;
    if (!here) here = kp_map_alloc(sizeof *here);
    int rc = here ? kp_json_init(&j, text_add, out) : -ENOMEM;
    if (rc < 0) return rc;
    out->used = 0;
    here->main[0] = '\0';
    here->count = here->ours = here->left_out = 0;
    kp_io_apart(false); /* the files of this process, and no disk */
    kp_json_lit(&j, "{\"where\":1,");
    kp_where_process(&j, event);
    collectives_put(&j);
    python_put(&j, here);
    rc = kp_io_each_name("/proc/self/task", task_note, here);
    if (rc < 0) kp_json_fmt(&j, ",\"no_threads\":%d", rc);
    rc = tasks_put(&j, here, out);
    kp_wherechildren_put(&j, &here->stack);
    kp_json_lit(&j, "}\n");
    kp_io_apart(true);
    if (rc == 0) rc = kp_json_flush(&j);
    kp_json_fini(&j);
    return rc;
}

/* ---- the file ---- */

void kp_where_path(char path[KP_WHERE_PATH], const char *what)
{
    const struct kp_rank place = kp_run_rank();
    char host[KP_IO_HOST_BYTES];
    char rank[24] = "";
    kp_io_host_name(host);
    if (place.is_launched) kp_fmt(rank, sizeof rank, "_r%u", place.rank);
    kp_fmt(path, KP_WHERE_PATH, "%s/%s-%lu-%s%s_%d.json", kp_run_out_dir(), what,
           (unsigned long)(kp_clock_ns(CLOCK_REALTIME) / 1000000000), host, rank, (int)getpid());
}

int kp_where_keep(const struct kp_where_text *text, const char *path)
{
    char temporary[KP_WHERE_PATH + 8];
    kp_fmt(temporary, sizeof temporary, "%s.tmp", path);
    int rc = kp_io_mkdirs(kp_run_out_dir(), KP_IO_FOLDER_MODE);
    const int fd = rc < 0 ? rc : kp_io_open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, KP_IO_FILE_MODE);
    if (fd < 0) return fd;
    const ssize_t n = kp_io_write_all(fd, text->at, text->used);
    kp_io_close(fd);
    rc = n < 0 ? (int)n : kp_io_rename_new(temporary, path);
    if (rc < 0) kp_io_unlink(temporary);
    return rc;
}

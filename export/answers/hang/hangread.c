// SPDX-License-Identifier: Apache-2.0
/* hangread.c - reads where the threads of processes stand, as each process wrote it */
#include "export/answers/hang/hangread.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "collector/base/text/kp_jsonread.h"
#include "collector/base/text/kp_jsonvalue.h"
#include "export/read/frames/ownline.h"
#include "export/read/kineto/kineto.h"

enum { SLACK = 16, NUMBER_BYTES = 40 }; /* kp_jsonvalue_text may leave some of its room unused */

struct source {
    struct kp_jsonvalue object;
    char *texts;
    size_t used, room;
};

/* A string of the object at the key, "" for none. */
static const char *text_of(struct source *s, struct kp_jsonvalue object, const char *key)
{
    const struct kp_jsonvalue v = kp_jsonvalue_member(object, key);
    if (!v.at || !kp_jsonvalue_is_string(v) || s->used + v.bytes + SLACK > s->room) return "";
    char *const to = s->texts + s->used;
    s->used += kp_jsonvalue_text(to, v.bytes + SLACK, v) + 1;
    return to;
}

static double number_of(struct kp_jsonvalue object, const char *key, double none)
{
    const struct kp_jsonvalue v = kp_jsonvalue_member(object, key);
    char text[NUMBER_BYTES], *end;
    if (!v.at || v.bytes >= sizeof text || kp_jsonvalue_is_string(v)) return none;
    memcpy(text, v.at, v.bytes);
    text[v.bytes] = '\0';
    const double number = strtod(text, &end);
    return end != text && number > -1e15 && number < 1e15 ? number : none;
}

static bool is_true(struct kp_jsonvalue object, const char *key)
{
    const struct kp_jsonvalue v = kp_jsonvalue_member(object, key);
    return v.at && v.bytes == 4 && memcmp(v.at, "true", 4) == 0;
}

static struct kp_hang_call call_of(struct source *s, struct kp_jsonvalue v)
{
    return (struct kp_hang_call){text_of(s, v, "call"), text_of(s, v, "words"), text_of(s, v, "on")};
}

static void thread_read(struct source *s, struct kp_jsonvalue v, const char *number, struct kp_hang_thread *out)
{
    const char *at = NULL;
    struct kp_jsonvalue frame;
    out->tid = (long)number_of(v, number, 0);
    out->name = text_of(s, v, "name");
    out->call = call_of(s, v);
    out->state = *text_of(s, v, "state");
    out->is_main = is_true(v, "main");
    out->is_cut = is_true(v, "cut");
    out->has_moved = is_true(v, "moved");
    const struct kp_jsonvalue frames = kp_jsonvalue_member(v, "python");
    while (frames.at && *frames.at == '[' && kp_jsonvalue_element(frames, &at, &frame)) {
        struct kp_hang_frame *const f = KP_KINETO_NEXT(out->frames, out->frame_count, out->frame_capacity);
        *f = (struct kp_hang_frame){.file = text_of(s, frame, "file"),
                                    .function = text_of(s, frame, "function"),
                                    .line = (long)number_of(frame, "line", 0)};
    }
}

/* The name of a process, or of a child. */
static void threads_read(struct source *s, struct kp_jsonvalue object, struct kp_hang_thread **of, size_t *count,
                         size_t *capacity)
{
    const struct kp_jsonvalue threads = kp_jsonvalue_member(object, "threads");
    const char *at = NULL;
    struct kp_jsonvalue v;
    while (threads.at && *threads.at == '[' && kp_jsonvalue_element(threads, &at, &v)) {
        struct kp_hang_thread *const t = KP_KINETO_NEXT(*of, *count, *capacity);
        *t = (struct kp_hang_thread){0};
        thread_read(s, v, "tid", t);
    }
}

static void lists_read(struct source *s, struct kp_hang_process *p)
{
    const struct kp_jsonvalue collectives = kp_jsonvalue_member(s->object, "collectives");
    const char *at = NULL;
    struct kp_jsonvalue v;
    threads_read(s, s->object, &p->threads, &p->thread_count, &p->thread_capacity);
    while (collectives.at && *collectives.at == '[' && kp_jsonvalue_element(collectives, &at, &v)) {
        struct kp_hang_collective *const c =
            KP_KINETO_NEXT(p->collectives, p->collective_count, p->collective_capacity);
        *c = (struct kp_hang_collective){.name = text_of(s, v, "name"),
                                         .begun = (long)number_of(v, "begun", 0),
                                         .ended = (long)number_of(v, "ended", 0),
                                         .since_ms = number_of(v, "since_ms", 0)};
    }
}

/* A list of children, or of those that waitpid took when they had ended. */
static void children_read(struct source *s, struct kp_hang_process *p, const char *key)
{
    const struct kp_jsonvalue list = kp_jsonvalue_member(s->object, key);
    const char *at = NULL;
    struct kp_jsonvalue v;
    while (list.at && *list.at == '[' && kp_jsonvalue_element(list, &at, &v)) {
        struct kp_hang_child *const c = KP_KINETO_NEXT(p->children, p->child_count, p->child_capacity);
        *c = (struct kp_hang_child){.status = (int)number_of(v, "status", -1), .ago_ms = number_of(v, "ago_ms", 0)};
        thread_read(s, v, "pid", &c->main);
        threads_read(s, v, &c->threads, &c->thread_count, &c->thread_capacity);
        c->is_spawned = is_true(v, "spawned");
        c->is_over = !c->main.state || c->main.state == 'Z' || c->main.state == 'X';
    }
}

bool kp_hang_add(struct kp_hang *hang, const char *text, size_t bytes, const char **why)
{
    struct source s = {.object = {text, bytes}, .room = 2 * bytes + SLACK};
    size_t offset;
    if (kp_jsonread_check_object(text, bytes, &offset, why) != 0) return false;
    *why = "it does not tell where threads stand";
    if (number_of(s.object, "where", 0) < 1) return false;
    s.texts = kp_kineto_zeros(s.room, 1);
    struct kp_hang_process *const p = KP_KINETO_NEXT(hang->of, hang->count, hang->capacity);
    *p = (struct kp_hang_process){.texts = s.texts,
                                  .rank = (long)number_of(s.object, "rank", -1),
                                  .size = (long)number_of(s.object, "size", 1),
                                  .pid = (long)number_of(s.object, "pid", 0),
                                  .step = (long)number_of(s.object, "step", 0),
                                  .time_ms = number_of(s.object, "time_ms", 0),
                                  .left_out = (long)number_of(s.object, "left_out", 0)};
    p->host = text_of(&s, s.object, "host");
    p->job = text_of(&s, s.object, "job");
    p->event = text_of(&s, s.object, "event");
    p->python = text_of(&s, s.object, "python");
    p->no_python = text_of(&s, s.object, "no_python");
    lists_read(&s, p);
    children_read(&s, p, "children");
    children_read(&s, p, "lost");
    return true;
}

void kp_hang_add_silent(struct kp_hang *hang, enum kp_hang_state state, long pid, long rank, long size)
{
    struct kp_hang_process *const p = KP_KINETO_NEXT(hang->of, hang->count, hang->capacity);
    *p = (struct kp_hang_process){.state = state, .pid = pid, .rank = rank, .size = size};
    p->host = p->job = p->event = p->python = p->no_python = "";
}

struct kp_hang_process *kp_hang_find(const struct kp_hang *hang, const char *host, long pid)
{
    for (size_t i = 0; i < hang->count; i++) {
        struct kp_hang_process *const p = &hang->of[i];
        if (p->pid == pid && (!*host || !*p->host || strcmp(host, p->host) == 0)) return p;
    }
    return NULL;
}

KP_ORDER2(by_rank, struct kp_hang_process, rank, pid)

const struct kp_hang_thread *kp_hang_main(const struct kp_hang_process *p)
{
    for (size_t i = 0; i < p->thread_count; i++)
        if (p->threads[i].is_main) return &p->threads[i];
    return NULL;
}

const struct kp_hang_frame *kp_hang_own(const struct kp_hang_thread *t)
{
    for (size_t i = 0; i < t->frame_count; i++)
        if (kp_ownline_is_file(NULL, t->frames[i].file)) return &t->frames[i];
    return t->frame_count ? &t->frames[0] : NULL;
}

void kp_hang_sort(struct kp_hang *hang)
{
    if (hang->count) qsort(hang->of, hang->count, sizeof *hang->of, by_rank);
}

void kp_hang_drop_last(struct kp_hang *hang)
{
    struct kp_hang_process *const p = &hang->of[--hang->count];
    for (size_t i = 0; i < p->thread_count; i++) free(p->threads[i].frames);
    for (size_t i = 0; i < p->child_count; i++) {
        for (size_t k = 0; k < p->children[i].thread_count; k++) free(p->children[i].threads[k].frames);
        free(p->children[i].threads);
        free(p->children[i].main.frames);
    }
    free(p->threads);
    free(p->collectives);
    free(p->children);
    free(p->texts);
}

void kp_hang_fini(struct kp_hang *hang)
{
    while (hang->count) kp_hang_drop_last(hang);
    free(hang->of);
    *hang = (struct kp_hang){0};
}

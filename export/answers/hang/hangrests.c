// SPDX-License-Identifier: Apache-2.0
/*
 * hangrests.c - whether a program of no job rests: its main thread waits, and nothing works that could end the wait
 *
 * A program without an op may read data, compile or serve. It counts as resting where that is known alone: what may
 * wait for something outside the process, such as a socket, may go on.
 */
#include "export/answers/hang/hangrests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/hang/hangjudge.h"

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0) names++;
    return *names != NULL;
}

static bool is_main_waiting(const struct kp_hang_thread *t)
{
    static const char *const calls[] = {"futex", "wait4", "waitid", NULL};
    return t && is_one_of(t->call.name, calls) && strcmp(t->call.words, "waits for Python's GIL") != 0;
}

static bool is_same_place(const struct kp_hang_thread *a, const struct kp_hang_thread *b)
{
    if (strcmp(a->call.name, b->call.name) != 0 || a->frame_count != b->frame_count || !a->frame_count) return false;
    for (size_t i = 0; i < a->frame_count; i++)
        if (a->frames[i].line != b->frames[i].line || strcmp(a->frames[i].function, b->frames[i].function) != 0)
            return false;
    return true;
}

static bool is_working(const struct kp_hang_thread *t) { return t->state == 'R' || t->state == 'D'; }

/* A thread of Python in another call than these may read what others send. */
static bool may_go_on(const struct kp_hang_thread *t)
{
    static const char *const calls[] = {"futex", "nanosleep", "clock_nanosleep", "pause", NULL};
    return is_working(t) || (t->frame_count && !is_one_of(t->call.name, calls));
}

/* One that writes into a pipe waits for a reader. A worker of a DataLoader waits for work in a call of any kind. */
static bool may_child_go_on(const struct kp_hang_child *c)
{
    static const char *const calls[] = {"futex", NULL};
    const bool has_pipe = strcmp(c->main.call.name, "write") == 0 && strcmp(c->main.call.on, "a pipe") == 0;
    bool may = false;
    if (c->is_over) return false;
    for (size_t i = 0; i < c->thread_count; i++) may |= is_working(&c->threads[i]);
    if (is_working(&c->main) || may) return true;
    return !has_pipe && !is_one_of(c->main.call.name, calls) && strcmp(c->main.name, "pt_data_worker") != 0;
}

static bool may_any_go_on(const struct kp_hang_process *p)
{
    bool may = p->left_out > 0;
    for (size_t i = 0; i < p->thread_count; i++) may |= !p->threads[i].is_main && may_go_on(&p->threads[i]);
    for (size_t i = 0; i < p->child_count; i++) may |= may_child_go_on(&p->children[i]);
    return may;
}

bool kp_hang_rests(const struct kp_hang_process *now, const struct kp_hang_process *before, char *where, size_t bytes)
{
    struct kp_hang_spot spot;
    kp_hang_spot(&spot, now);
    const struct kp_hang_thread *const main = kp_hang_main(now), *const was = kp_hang_main(before);
    if (now->state != KP_HANG_TOLD || before->state != KP_HANG_TOLD || now->step != before->step) return false;
    if (!is_main_waiting(main) || !was || is_working(main) || !is_same_place(main, was)) return false;
    if (may_any_go_on(now) || may_any_go_on(before)) return false;
    char *text = NULL;
    size_t length = 0;
    FILE *const to = open_memstream(&text, &length);
    if (!to) return false;
    kp_hang_spot_put(to, now, &spot);
    fclose(to);
    snprintf(where, bytes, "%s", text);
    free(text);
    return true;
}

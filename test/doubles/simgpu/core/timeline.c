// SPDX-License-Identifier: Apache-2.0
/*
 * timeline.c - two threads of the simulator that do things when their time has come: tell the observer that work is
 * done, and run host functions (their own thread, so that a slow one does not hold up the records)
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "test/doubles/simgpu/core/core.h"

struct due {
    uint64_t at_ns, order;
    void (*fn)(void *arg);
    void *arg;
};

/* A heap by time, then by order of arrival. */
static struct timeline {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct due *heap;
    size_t count, room;
    uint64_t order;
    bool is_running;
} timelines[2] = {{.lock = PTHREAD_MUTEX_INITIALIZER}, {.lock = PTHREAD_MUTEX_INITIALIZER}};

static bool is_before(const struct due *a, const struct due *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(struct due *a, struct due *b)
{
    struct due t = *a;
    *a = *b;
    *b = t;
}

static void push(struct timeline *t, struct due due)
{
    if (t->count == t->room) {
        t->room = t->room ? 2 * t->room : 256;
        t->heap = realloc(t->heap, t->room * sizeof *t->heap);
        if (t->heap == NULL) abort();
    }
    size_t i = t->count++;
    t->heap[i] = due;
    for (; i > 0 && is_before(&t->heap[i], &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&t->heap[i], &t->heap[(i - 1) / 2]);
}

static struct due pop(struct timeline *t)
{
    struct due first = t->heap[0];
    t->heap[0] = t->heap[--t->count];
    for (size_t i = 0, least;; i = least) {
        least = i;
        for (size_t c = 2 * i + 1; c <= 2 * i + 2 && c < t->count; c++)
            if (is_before(&t->heap[c], &t->heap[least])) least = c;
        if (least == i) break;
        swap(&t->heap[i], &t->heap[least]);
    }
    return first;
}

static void *run(void *arg)
{
    struct timeline *t = arg;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        if (t->count == 0) {
            pthread_cond_wait(&t->changed, &t->lock);
            continue;
        }
        uint64_t at = t->heap[0].at_ns;
        if (at > sim_now()) {
            struct timespec until = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
            pthread_cond_timedwait(&t->changed, &t->lock, &until);
            continue;
        }
        struct due due = pop(t);
        pthread_mutex_unlock(&t->lock);
        due.fn(due.arg);
        pthread_mutex_lock(&t->lock);
    }
    return NULL;
}

/* With all signals blocked, as the driver's own threads have them. */
static void start(struct timeline *t, const char *name)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    pthread_t thread;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, run, t) == 0) {
        pthread_setname_np(thread, name);
        pthread_detach(thread);
        t->is_running = true;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void sim_timeline_add(uint64_t at_ns, void (*fn)(void *arg), void *arg, bool is_host_function)
{
    if (at_ns == SIM_NEVER) return; /* behind a kernel that hangs */
    struct timeline *t = &timelines[is_host_function];
    pthread_mutex_lock(&t->lock);
    if (!t->is_running) start(t, is_host_function ? "simgpu-host" : "simgpu-done");
    push(t, (struct due){at_ns, t->order++, fn, arg});
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* The threads did not come along, and the locks may have been held: begin anew. */
void sim_timeline_after_fork(void)
{
    for (int i = 0; i < 2; i++) timelines[i] = (struct timeline){.lock = PTHREAD_MUTEX_INITIALIZER};
}

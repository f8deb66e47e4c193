// SPDX-License-Identifier: Apache-2.0
/*
 * kineto_processes.c - keeps ids of several processes in one file apart: External ids and correlations count in each
 *
 * Files of ranks that were merged into one have them twice. Work of a device has the device as its process: whose it is
 * tell its correlation, a call that begins before it, and what stands before it in the file.
 */
#include "export/read/kineto/kineto_processes.h"

#include <stdlib.h>

#include "export/read/store/keyindex.h"

enum { PROCESSES_MOST = 4096 };

struct processes {
    uint64_t *keys; /* pid, and whether it is a text */
    size_t count, capacity;
};

static bool is_of_host(const struct kp_kineto_event *e)
{
    return e->kind == KP_KINETO_OP || e->kind == KP_KINETO_ANNOTATION || e->kind == KP_KINETO_RUNTIME;
}

static uint64_t key_of(const struct kp_kineto_event *e)
{
    return (uint64_t)e->pid << 1 | ((e->flags & KP_KINETO_TEXT_PID) != 0);
}

/* Its number; a new one is added. Neighbours are mostly of one process. */
static size_t number_of(struct processes *p, const struct kp_kineto_event *e, size_t last)
{
    const uint64_t key = key_of(e);
    if (last < p->count && p->keys[last] == key) return last;
    for (size_t i = 0; i < p->count; i++)
        if (p->keys[i] == key) return i;
    *KP_KINETO_NEXT(p->keys, p->count, p->capacity) = key;
    return p->count - 1;
}

static void processes_find(struct processes *p, const struct kp_kineto *t)
{
    size_t last = 0;
    for (size_t i = 0; i < t->count && p->count < PROCESSES_MOST; i++)
        if (is_of_host(&t->events[i])) last = number_of(p, &t->events[i], last);
}

bool kp_kineto_has_processes(const struct kp_kineto *t)
{
    struct processes p = {0};
    processes_find(&p, t);
    free(p.keys);
    return p.count > 1;
}

/* ---- work of devices ---- */

struct lane_votes { /* of a stream: how often each process has a call for its work, and stands before it in the file */
    size_t *called, *before;
};
struct owners {
    struct processes of;
    struct kp_keyindex calls; /* correlation and process; rows: when the call begins */
    struct kp_keyindex lanes; /* rows: struct lane_votes */
};

static uint64_t call_key(const struct owners *o, int64_t correlation, size_t process)
{
    return (uint64_t)correlation * o->of.count + process;
}

/* Has the process a call of that correlation which begins before the work? */
static bool has_call(struct owners *o, const struct kp_kineto_event *e, size_t process)
{
    const int64_t none = INT64_MAX;
    const int64_t *const begins = kp_keyindex_row(&o->calls, call_key(o, e->fwd_tid, process), &none, sizeof none);
    return *begins <= e->start_ns;
}

static void calls_gather(struct owners *o, const struct kp_kineto *t)
{
    size_t last = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct kp_kineto_event *const e = &t->events[i];
        if (e->kind != KP_KINETO_RUNTIME || e->fwd_tid <= 0) continue;
        last = number_of(&o->of, e, last);
        kp_keyindex_row(&o->calls, call_key(o, e->fwd_tid, last), &e->start_ns, sizeof e->start_ns);
    }
}

static struct lane_votes *lane_of(struct owners *o, const struct kp_kineto_event *e)
{
    struct lane_votes *const lane =
        kp_keyindex_row(&o->lanes, key_of(e) * 1000003u + (uint64_t)e->tid, &(struct lane_votes){0}, sizeof *lane);
    if (!lane->called) {
        lane->called = kp_kineto_zeros(o->of.count, sizeof *lane->called);
        lane->before = kp_kineto_zeros(o->of.count, sizeof *lane->before);
    }
    return lane;
}

static void lanes_vote(struct owners *o, const struct kp_kineto *t)
{
    size_t last = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct kp_kineto_event *const e = &t->events[i];
        if (is_of_host(e)) last = number_of(&o->of, e, last);
        if (e->kind != KP_KINETO_GPU || e->fwd_tid <= 0) continue;
        struct lane_votes *const lane = lane_of(o, e);
        lane->before[last]++;
        for (size_t p = 0; p < o->of.count; p++) lane->called[p] += has_call(o, e, p);
    }
}

static size_t owner_of(struct owners *o, const struct kp_kineto_event *e)
{
    const struct lane_votes *const lane = lane_of(o, e);
    size_t best = 0;
    for (size_t p = 1; p < o->of.count; p++)
        if (lane->called[p] > lane->called[best] ||
            (lane->called[p] == lane->called[best] && lane->before[p] > lane->before[best]))
            best = p;
    return best;
}

/* ---- ids ---- */

static int64_t id_most(const struct kp_kineto *t)
{
    int64_t most = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->events[i].external_id > most) most = t->events[i].external_id;
        if (t->events[i].fwd_tid > most) most = t->events[i].fwd_tid;
    }
    return most;
}

static void ids_move(struct kp_kineto_event *e, int64_t by)
{
    if (e->external_id > 0) e->external_id += by;
    if (e->fwd_tid > 0) e->fwd_tid += by;
}

static void owners_fini(struct owners *o)
{
    struct lane_votes *const lanes = o->lanes.rows;
    for (size_t i = 0; i < o->lanes.count; i++) {
        free(lanes[i].called);
        free(lanes[i].before);
    }
    kp_keyindex_fini(&o->lanes);
    kp_keyindex_fini(&o->calls);
    free(o->of.keys);
}

void kp_kineto_part_processes(struct kp_kineto *t)
{
    struct owners o = {0};
    size_t last = 0;
    processes_find(&o.of, t);
    const int64_t most = id_most(t);
    t->processes = o.of.count;
    if (o.of.count > 1 && o.of.count < PROCESSES_MOST && most < INT64_MAX / PROCESSES_MOST - 1) {
        calls_gather(&o, t);
        lanes_vote(&o, t);
        for (size_t i = 0; i < t->count; i++) {
            struct kp_kineto_event *const e = &t->events[i];
            const bool on_device = e->kind == KP_KINETO_GPU || e->kind == KP_KINETO_GPU_ANNOTATION;
            if (is_of_host(e)) last = number_of(&o.of, e, last);
            if (is_of_host(e)) ids_move(e, (int64_t)last * (most + 1));
            else if (on_device) ids_move(e, (int64_t)owner_of(&o, e) * (most + 1));
        }
    }
    owners_fini(&o);
}

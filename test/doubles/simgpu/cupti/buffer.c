// SPDX-License-Identifier: Apache-2.0
/*
 * buffer.c - the client's buffers: asked for on the thread that makes a record, filled, handed back
 *
 *   current (one, or one a thread)  --full-->  closed  --no unfinished record-->  ready  --worker, FlushAll-->  client
 *
 * FlushAll(0) hands over every buffer that has no unfinished record, full or not; FlushAll(1) every buffer: its
 * unfinished records stay as they are (no end) and are never told again. The worker hands over closed buffers as soon
 * as they are ready.
 */
#include "test/doubles/simgpu/cupti/simcupti.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct buffer {
    struct buffer *next; /* in order of their request */
    uint8_t *data;
    size_t size, used, last; /* last: where its newest record begins */
    size_t records, max_records;
    struct lane *lane;             /* whose current buffer it is */
    uint64_t thread_id;            /* who asked for it */
    simcupti_complete_fn complete; /* registered when it was asked for */
    struct simcupti_slot *slots;   /* unfinished */
};

struct simcupti_slot {
    struct buffer *buffer; /* NULL: handed over unfinished */
    uint8_t *record;
    struct simcupti_slot *next, **link; /* in buffer->slots */
    struct simcupti_slot *later;        /* in the list of records that wait for their time */
    uint64_t due_ns;
    void (*fill)(struct simcupti_slot *, void *);
    void *arg;
};

struct lane {
    struct buffer *current;
};

static struct buffer *buffers;
static struct simcupti_slot *late_slots;
static struct lane common_lane;
static pthread_key_t lane_key;
static pthread_once_t lane_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t request_lock = PTHREAD_MUTEX_INITIALIZER;  /* before simcupti_lock */
static pthread_mutex_t delivery_lock = PTHREAD_MUTEX_INITIALIZER; /* before simcupti_lock */
static pthread_cond_t worker_wakes = PTHREAD_COND_INITIALIZER;
static bool has_worker, is_exiting;
static uint32_t record_count;

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- lanes --- */

static void close_buffer(struct buffer *buffer)
{
    if (!buffer || !buffer->lane) return;
    buffer->lane->current = NULL;
    buffer->lane = NULL;
    pthread_cond_signal(&worker_wakes);
}

static void lane_end(void *at)
{
    struct lane *lane = at;
    pthread_mutex_lock(&simcupti_lock);
    close_buffer(lane->current);
    pthread_mutex_unlock(&simcupti_lock);
    free(lane);
}

static void lane_prepare(void) { pthread_key_create(&lane_key, lane_end); }

static struct lane *lane_mine(void)
{
    if (!simcupti.attributes[9]) return &common_lane;
    pthread_once(&lane_once, lane_prepare);
    struct lane *lane = pthread_getspecific(lane_key);
    if (!lane) {
        lane = calloc(1, sizeof *lane);
        pthread_setspecific(lane_key, lane);
    }
    return lane;
}

/* --- asking the client --- */

static void crash_on_null(void)
{
    if (!simcupti_set.crash_null || simcupti_set.version >= 27) return;
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static struct buffer *ask_client(void)
{
    uint8_t *data = NULL;
    size_t size = 0, max_records = 0;
    size_t info[8] = {sizeof info[0]}; /* CUpti_BufferCallbackRequestInfo: its size */
    bool has_client = simcupti.request || simcupti.request_v2;
    if (has_client) simcupti_log_request();
    simcupti_in_client++;
    if (simcupti.request) simcupti.request(&data, &size, &max_records);
    else if (simcupti.request_v2) simcupti.request_v2(&data, &size, &max_records, info);
    simcupti_in_client--;
    if (has_client && !data) crash_on_null();
    if (!data || !size) return NULL;
    struct buffer *buffer = calloc(1, sizeof *buffer);
    *buffer = (struct buffer){.data = data,
                              .size = size,
                              .max_records = max_records,
                              .thread_id = simcupti_thread_id(),
                              .complete = simcupti.complete};
    if (!simcupti.attributes[5]) memset(data, 0, size);
    return buffer;
}

static void append_buffer(struct buffer *buffer)
{
    struct buffer **link = &buffers;
    while (*link) link = &(*link)->next;
    *link = buffer;
}

/* With the lock held; lets go of it while the client is asked. */
static struct buffer *request_buffer(struct lane *lane)
{
    pthread_mutex_unlock(&simcupti_lock);
    pthread_mutex_lock(&request_lock);
    pthread_mutex_lock(&simcupti_lock);
    if (!lane->current) {
        pthread_mutex_unlock(&simcupti_lock);
        struct buffer *buffer = ask_client();
        pthread_mutex_lock(&simcupti_lock);
        if (buffer) {
            append_buffer(buffer);
            buffer->lane = lane;
            lane->current = buffer;
        }
    }
    pthread_mutex_unlock(&request_lock);
    return lane->current;
}

/* --- records --- */

static bool has_room(const struct buffer *buffer, size_t size)
{
    return buffer->used + size <= buffer->size && (!buffer->max_records || buffer->records < buffer->max_records);
}

static struct buffer *buffer_for(size_t size)
{
    struct lane *lane = lane_mine();
    for (int tries = 0; tries < 3; tries++) {
        struct buffer *buffer = lane->current;
        if (!buffer) buffer = request_buffer(lane);
        if (!buffer || has_room(buffer, size)) return buffer;
        bool is_useless = !buffer->records;
        close_buffer(buffer);
        if (is_useless) return NULL; /* too small for any record: it goes back as it came */
    }
    return NULL;
}

static uint8_t *place_record(struct buffer *buffer, size_t size)
{
    buffer->last = buffer->used;
    buffer->used += size;
    buffer->records++;
    return buffer->data + buffer->last;
}

struct simcupti_slot *simcupti_reserve(uint32_t kind)
{
    size_t size = kind < KIND_COUNT ? layout_sizes[kind][simcupti_set.layout] : 0;
    if (!size) return NULL;
    uint32_t nth = ++record_count;
    bool is_dropped = simcupti_set.drop && nth % simcupti_set.drop == 0;
    struct buffer *buffer = is_dropped ? NULL : buffer_for(size);
    if (!buffer) {
        simcupti.dropped++;
        return NULL;
    }
    if (simcupti_set.holes && nth % simcupti_set.holes == 0 && has_room(buffer, 2 * size))
        memset(place_record(buffer, size), 0, size);
    struct simcupti_slot *slot = calloc(1, sizeof *slot);
    slot->buffer = buffer;
    slot->record = place_record(buffer, size);
    memcpy(slot->record, &(uint32_t){kind}, 4);
    slot->next = buffer->slots;
    slot->link = &buffer->slots;
    if (slot->next) slot->next->link = &slot->next;
    buffer->slots = slot;
    return slot;
}

uint8_t *simcupti_record(struct simcupti_slot *slot) { return slot ? slot->record : NULL; }

static void detach(struct simcupti_slot *slot)
{
    if (!slot->buffer) return;
    *slot->link = slot->next;
    if (slot->next) slot->next->link = slot->link;
    slot->buffer = NULL;
    slot->record = NULL;
}

void simcupti_complete(struct simcupti_slot *slot)
{
    if (!slot) return;
    struct buffer *buffer = slot->buffer;
    detach(slot);
    if (buffer && !buffer->lane && !buffer->slots) pthread_cond_signal(&worker_wakes);
    free(slot);
}

void simcupti_complete_at(struct simcupti_slot *slot, uint64_t host_ns, void (*fill)(struct simcupti_slot *, void *),
                          void *arg)
{
    slot->due_ns = host_ns;
    slot->fill = fill;
    slot->arg = arg;
    slot->later = late_slots;
    late_slots = slot;
    pthread_cond_signal(&worker_wakes);
}

static void complete_due(uint64_t now)
{
    for (struct simcupti_slot **link = &late_slots, *slot = *link; slot; slot = *link) {
        if (slot->due_ns > now) {
            link = &slot->later;
            continue;
        }
        *link = slot->later;
        slot->fill(slot, slot->arg);
        simcupti_complete(slot);
    }
}

/* --- handing over --- */

enum { TAKE_CLOSED, TAKE_COMPLETE, TAKE_ALL };

static struct buffer *take_buffers(int which)
{
    struct buffer *taken = NULL, **end = &taken;
    for (struct buffer **link = &buffers, *buffer = *link; buffer; buffer = *link) {
        bool is_wanted = which == TAKE_ALL || (!buffer->slots && (which == TAKE_COMPLETE || !buffer->lane));
        if (!is_wanted) {
            link = &buffer->next;
            continue;
        }
        *link = buffer->next;
        if (buffer->lane) buffer->lane->current = NULL;
        while (buffer->slots) detach(buffer->slots);
        buffer->next = NULL;
        if (simcupti_set.shuffle) { /* the newest first */
            buffer->next = taken;
            taken = buffer;
        } else {
            *end = buffer;
            end = &buffer->next;
        }
    }
    return taken;
}

static size_t valid_bytes(const struct buffer *buffer)
{
    if (!simcupti_set.truncate || buffer->records < 2) return buffer->used;
    return buffer->last + (buffer->used - buffer->last) / 2;
}

/* For whoever wants to see what a client got. */
static void dump(const struct buffer *buffer)
{
    if (simcupti_set.dump_fd < 0) return;
    ssize_t written = write(simcupti_set.dump_fd, buffer->data, valid_bytes(buffer));
    (void)written;
}

static void give_back(const struct buffer *buffer)
{
    bool is_of_another = buffer->complete != simcupti.complete;
    if (is_of_another && simcupti_set.replaced == REPLACED_LOST) return;
    simcupti_complete_fn complete =
        is_of_another && simcupti_set.replaced == REPLACED_OWN ? buffer->complete : simcupti.complete;
    uint64_t info[8] = {32, buffer->thread_id}; /* CUpti_BufferCallbackCompleteInfo: its size, the thread, no layouts */
    simcupti_in_client++;
    if (complete) complete(NULL, 0, buffer->data, buffer->size, valid_bytes(buffer));
    else if (simcupti.complete_v2) simcupti.complete_v2(buffer->data, buffer->size, valid_bytes(buffer), info);
    simcupti_in_client--;
}

static void hand_over(struct buffer *taken)
{
    while (taken) {
        struct buffer *buffer = taken;
        taken = buffer->next;
        dump(buffer);
        give_back(buffer);
        free(buffer);
    }
}

static void deliver(int which)
{
    pthread_mutex_lock(&delivery_lock);
    pthread_mutex_lock(&simcupti_lock);
    complete_due(monotonic_ns());
    struct buffer *taken = take_buffers(which);
    pthread_mutex_unlock(&simcupti_lock);
    hand_over(taken);
    pthread_mutex_unlock(&delivery_lock);
}

int simcupti_flush(bool is_forced)
{
    if (simcupti_in_client)
        return CUPTI_INVALID_OPERATION; /* the real one may hang here: never from a callback of buffers */
    if (is_exiting && simcupti_hangs("exit")) simcupti_hang();
    simcupti_clock_sample();
    simcupti_catch_up();
    deliver(is_forced ? TAKE_ALL : TAKE_COMPLETE);
    return CUPTI_OK;
}

/* --- the worker --- */

static bool has_ready_buffer(void)
{
    for (struct buffer *buffer = buffers; buffer; buffer = buffer->next)
        if (!buffer->lane && !buffer->slots) return true;
    return false;
}

static void *worker_run(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&simcupti_lock);
        while (!has_ready_buffer()) {
            uint64_t tick_ms = late_slots ? 1 : simcupti.flush_period_ms ? simcupti.flush_period_ms : 1000;
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            uint64_t ns = (uint64_t)until.tv_nsec + tick_ms * 1000000;
            until.tv_sec += (time_t)(ns / 1000000000);
            until.tv_nsec = (long)(ns % 1000000000);
            pthread_cond_timedwait(&worker_wakes, &simcupti_lock, &until);
            complete_due(monotonic_ns());
        }
        pthread_mutex_unlock(&simcupti_lock);
        if (simcupti_set.shuffle) nanosleep(&(struct timespec){0, 100000000}, NULL); /* let several become ready */
        deliver(TAKE_CLOSED);
    }
    return NULL;
}

void simcupti_worker_start(void)
{
    if (has_worker) return;
    has_worker = true;
    atexit(simcupti_exit_begins); /* whoever flushes later than this may wait for a worker that is gone */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    if (!pthread_create(&thread, NULL, worker_run, NULL)) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void simcupti_flush_period(uint32_t ms)
{
    simcupti.flush_period_ms = ms;
    pthread_cond_signal(&worker_wakes);
}

/* --- ends --- */

void simcupti_buffers_forget(void)
{
    for (struct simcupti_slot *slot = late_slots; slot; slot = slot->later) detach(slot);
    for (struct buffer *buffer = buffers, *next; buffer; buffer = next) {
        next = buffer->next;
        if (buffer->lane) buffer->lane->current = NULL;
        while (buffer->slots) detach(buffer->slots);
        free(buffer);
    }
    buffers = NULL;
}

size_t simcupti_outstanding(void)
{
    size_t count = 0;
    for (struct buffer *buffer = buffers; buffer; buffer = buffer->next) count++;
    return count;
}

void simcupti_exit_begins(void) { is_exiting = true; }

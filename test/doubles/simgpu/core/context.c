// SPDX-License-Identifier: Apache-2.0
/* context.c - contexts with CUPTI's numbers, the stack of them that each thread has, their sticky errors */
#include <stdlib.h>
#include <string.h>

#include "test/doubles/simgpu/core/core.h"

enum { STACK = 32 };
static _Thread_local struct sim_context *stack[STACK];
static _Thread_local int depth;
static struct sim_context *contexts; /* in order of making */
static uint32_t last_id;

struct sim_context *sim_contexts(void) { return contexts; }
struct sim_context *sim_context_current(void) { return depth ? stack[depth - 1] : NULL; }

int sim_context_bind(struct sim_context *context)
{
    if (context != NULL && context->magic != SIM_MAGIC_CONTEXT) return SIM_INVALID_CONTEXT;
    if (depth == 0 && context != NULL) depth = 1;
    if (depth == 0) return SIM_OK;
    if (context == NULL) depth--;
    else stack[depth - 1] = context;
    return SIM_OK;
}

int sim_context_push(struct sim_context *context)
{
    if (context == NULL || context->magic != SIM_MAGIC_CONTEXT || depth == STACK) return SIM_INVALID_CONTEXT;
    stack[depth++] = context;
    return SIM_OK;
}

struct sim_context *sim_context_pop(void) { return depth ? stack[--depth] : NULL; }

/* Call with the lock held. The id goes up for good: a primary context that was reset comes back under a new one. */
static void fill(struct sim_context *c, int device)
{
    c->magic = SIM_MAGIC_CONTEXT;
    c->id = ++last_id;
    c->device = device;
    c->is_made = true;
    c->error = 0;
    c->error_at = 0;
    c->next_stream_id = SIM_FIRST_STREAM_ID;
    c->next_event_id = 0;
    c->next_sync_id = 0;
    c->limits[0] = 1024;     /* stack */
    c->limits[1] = 1u << 20; /* printf */
    c->limits[2] = 8u << 20; /* heap */
    c->null_stream = (struct sim_stream){
        .magic = SIM_MAGIC_STREAM, .id = SIM_NULL_STREAM_ID, .context = c, .uid = SIM_NULL_STREAM_ID};
    struct sim_context **end = &contexts;
    while (*end) end = &(*end)->next;
    c->next = NULL;
    *end = c;
}

static void tell(const struct sim_context *c)
{
    const struct simgpu_observer *o = sim_observer();
    if (o && o->context_made) o->context_made(c->id, (uint32_t)c->device, SIM_NULL_STREAM_ID);
}

struct sim_context *sim_context_primary(int device)
{
    struct sim_device *d = sim_device_at(device);
    if (d == NULL) return NULL;
    sim_lock();
    bool is_new = !d->primary.is_made;
    if (is_new) {
        d->primary.is_primary = true;
        fill(&d->primary, device);
    }
    sim_unlock();
    if (is_new) tell(&d->primary);
    return &d->primary;
}

struct sim_context *sim_context_create(int device, uint32_t flags)
{
    struct sim_context *c = calloc(1, sizeof *c);
    if (c == NULL || sim_device_at(device) == NULL) {
        free(c);
        return NULL;
    }
    c->flags = flags;
    sim_lock();
    fill(c, device);
    sim_unlock();
    tell(c);
    return c;
}

/* Takes it off the list; its streams go with it. Handles that the program kept are dead but stay readable. */
static void unmake(struct sim_context *c)
{
    sim_lock();
    for (struct sim_context **at = &contexts; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    for (struct sim_stream *s = c->streams; s; s = s->next) s->magic = 0;
    c->streams = NULL;
    c->is_made = false;
    c->error = 0;
    sim_unlock();
}

void sim_context_destroy(struct sim_context *context)
{
    unmake(context);
    context->magic = 0;
    while (depth && stack[depth - 1] == context) depth--;
}

void sim_context_reset_primary(int device)
{
    struct sim_device *d = sim_device_at(device);
    if (d && d->primary.is_made) unmake(&d->primary);
}

int sim_context_error(struct sim_context *context)
{
    return context->error != 0 && sim_now() >= context->error_at ? context->error : 0;
}

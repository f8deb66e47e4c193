// SPDX-License-Identifier: Apache-2.0
/* object.c - things of the program's that graphs keep alive, counted */
#include <stdlib.h>

#include "test/doubles/simgpu/core/graph.h"

struct sim_object *sim_object_create(void *thing, void (*destroy)(void *), uint32_t references)
{
    struct sim_object *o = malloc(sizeof *o);
    if (o) *o = (struct sim_object){SIM_MAGIC_OBJECT, references, thing, destroy};
    return o;
}

bool sim_object_is(const struct sim_object *object) { return object != NULL && object->magic == SIM_MAGIC_OBJECT; }

void sim_object_retain(struct sim_object *object, uint32_t count)
{
    sim_lock();
    object->references += count;
    sim_unlock();
}

void sim_object_release(struct sim_object *object, uint32_t count)
{
    sim_lock();
    object->references = count < object->references ? object->references - count : 0;
    bool is_last = object->references == 0;
    sim_unlock();
    if (!is_last) return;
    object->magic = 0;
    object->destroy(object->thing);
    free(object);
}

/* The same object once for each reference: graphs hold few. */
void sim_holds_add(struct sim_holds *holds, struct sim_object *object, uint32_t count)
{
    for (; count > 0; count--) {
        if (holds->count == holds->room) {
            holds->room = holds->room ? 2 * holds->room : 4;
            holds->at = realloc(holds->at, holds->room * sizeof *holds->at);
            if (holds->at == NULL) abort();
        }
        holds->at[holds->count++] = object;
    }
}

bool sim_holds_remove(struct sim_holds *holds, struct sim_object *object, uint32_t count)
{
    for (size_t i = holds->count; i > 0 && count > 0; i--) {
        if (holds->at[i - 1] != object) continue;
        holds->at[i - 1] = holds->at[--holds->count];
        count--;
    }
    return count == 0;
}

void sim_holds_copy(struct sim_holds *to, const struct sim_holds *from)
{
    for (size_t i = 0; i < from->count; i++) {
        sim_object_retain(from->at[i], 1);
        sim_holds_add(to, from->at[i], 1);
    }
}

void sim_holds_clear(struct sim_holds *holds)
{
    for (size_t i = 0; i < holds->count; i++) sim_object_release(holds->at[i], 1);
    free(holds->at);
    *holds = (struct sim_holds){0};
}

// SPDX-License-Identifier: Apache-2.0
/*
 * slots.c - the objects that torch keeps for us between the start and the end of an op
 *
 * Called by: ops.c (take: hot, inside a hook), torch (delete: hot, any thread)
 * Owns:      a pool per thread. A slot never changes its pool, and belongs to an op from take to delete.
 * Locks:     none. Memory: 32 slots from the arena when a thread's ops nest deeper than ever before.
 * On fail:   take returns NULL and counts a loss.
 *
 * To torch a slot is an at::ObserverContext. Torch only destroys it, through the second entry of its vtable (Itanium
 * C++ ABI: complete destructor, deleting destructor). The thread that destroys it may not be the one that took it:
 * it then pushes the slot on the pool's `returned` list. The owner empties that list in one exchange, so there is no
 * ABA problem.
 */

#include "collector/base/kp_arena.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

enum { BATCH = 32 };

static _Atomic(struct kp_torch_pool *) pools;

static KP_HOT void slot_keep(struct kp_torch_slot *slot);
static KP_HOT void slot_delete(struct kp_torch_slot *slot);
static const struct {
    intptr_t offset_to_top;
    const void *type_info;
    void (*destroy)(struct kp_torch_slot *);
    void (*destroy_and_delete)(struct kp_torch_slot *);
} slot_class = {0, NULL, slot_keep, slot_delete};

static void slot_keep(struct kp_torch_slot *slot) { (void)slot; }

static KP_COLD void give_home(struct kp_torch_slot *slot)
{
    struct kp_torch_slot *head = kp_load_relaxed(&slot->pool->returned);
    do {
        slot->next = head;
        /* pairs with: slots.c:kp_torch_slot_take_slowly */
    } while (!kp_cas_acq_rel(&slot->pool->returned, &head, slot));
}

static void slot_delete(struct kp_torch_slot *slot)
{
    struct kp_thread *t = kp_thread_self;
    if (t && t == slot->pool->owner) {
        slot->next = slot->pool->idle;
        slot->pool->idle = slot;
    } else {
        give_home(slot);
    }
}

static bool pool_grow(struct kp_torch_pool *pool)
{
    struct kp_torch_slot *slots = kp_arena_alloc_line(BATCH * sizeof *slots);
    if (!slots) return false;
    for (int i = 0; i < BATCH; i++) {
        slots[i].vptr = &slot_class.destroy;
        slots[i].pool = pool;
        slots[i].next = i + 1 < BATCH ? &slots[i + 1] : pool->idle;
    }
    pool->idle = slots;
    return true;
}

static struct kp_torch_pool *pool_make(struct kp_thread *t)
{
    /* A thread state that a new thread reuses finds its old pool again. */
    struct kp_torch_pool *pool = kp_load_acquire(&pools);
    while (pool && pool->owner != t) pool = pool->next;
    if (!pool) {
        pool = kp_arena_alloc_line(sizeof *pool);
        if (!pool) return NULL;
        pool->owner = t;
        pool->next = kp_load_relaxed(&pools);
        /* pairs with: the search above */
        while (!kp_cas_acq_rel(&pools, &pool->next, pool)) {}
    }
    t->source_state[KP_STATE_TORCH] = pool;
    return pool;
}

struct kp_torch_slot *kp_torch_slot_take_slowly(struct kp_thread *t)
{
    struct kp_torch_pool *pool = t->source_state[KP_STATE_TORCH];
    if (!pool) pool = pool_make(t);
    if (pool && !pool->idle) pool->idle = kp_exchange_acquire(&pool->returned, NULL);
    if (!pool || (!pool->idle && !pool_grow(pool))) {
        kp_loss_count(KP_KIND_OP, KP_LOSS_NO_SLOT);
        return NULL;
    }
    struct kp_torch_slot *slot = pool->idle;
    pool->idle = slot->next;
    return slot;
}

char **kp_torch_slot_buffer(struct kp_thread *t)
{
    struct kp_torch_pool *pool = t->source_state[KP_STATE_TORCH];
    return pool ? &pool->buffer : NULL;
}

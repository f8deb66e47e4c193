// SPDX-License-Identifier: Apache-2.0
/*
 * slots.c - the objects that torch keeps for us between the start and the end of an op
 *
 * Called by: ops.c (take: hot, inside a hook), torch (delete: hot, any thread)
 * Owns:      a pool per thread. A slot never changes its pool, and belongs to an op from take to delete.
 * Locks:     none. Memory: 32 slots, the first beside the thread's state (an op then touches few pages), others from
 *            the arena when a thread's ops nest deeper than ever before.
 * On fail:   take returns NULL and counts a loss.
 *
 * To torch a slot is an at::ObserverContext. Torch only destroys it, through the second entry of its vtable (Itanium
 * C++ ABI: complete destructor, deleting destructor). The thread that destroys it may not be the one that took it:
 * it then pushes the slot on the pool's `returned` list. The owner empties that list in one exchange, so there is no
 * ABA problem.
 */

#include "collector/base/sys/kp_arena.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

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
    struct kp_torch_pool *pool = kp_torch_pool_of(slot->owner);
    struct kp_torch_slot *head = kp_load_relaxed(&pool->returned);
    do {
        slot->next = head;
        /* pairs with: slots.c:kp_torch_slot_take_slowly */
    } while (!kp_cas_acq_rel(&pool->returned, &head, slot));
}

static void slot_delete(struct kp_torch_slot *slot)
{
    struct kp_thread *t = kp_thread_self;
    if (KP_LIKELY(t && t == slot->owner)) {
        slot->next = t->source_state[KP_STATE_TORCH];
        t->source_state[KP_STATE_TORCH] = slot;
    } else {
        give_home(slot);
    }
}

static struct kp_torch_slot *pool_grow(struct kp_thread *t, struct kp_torch_pool *pool)
{
    struct kp_torch_slot *slots = pool->has_first ? kp_arena_alloc_line(KP_TORCH_SLOTS * sizeof *slots) : pool->first;
    if (!slots) return NULL;
    pool->has_first = true;
    for (int i = 0; i < KP_TORCH_SLOTS; i++) {
        slots[i].vptr = &slot_class.destroy;
        slots[i].owner = t;
        slots[i].next = i + 1 < KP_TORCH_SLOTS ? &slots[i + 1] : NULL;
    }
    return slots;
}

struct kp_torch_slot *kp_torch_slot_take_slowly(struct kp_thread *t)
{
    struct kp_torch_pool *pool = kp_torch_pool_of(t);
    struct kp_torch_slot *slot = kp_exchange_acquire(&pool->returned, NULL);
    if (!slot) slot = pool_grow(t, pool);
    if (slot) t->source_state[KP_STATE_TORCH] = slot->next;
    else kp_loss_count(KP_KIND_OP, KP_LOSS_NO_SLOT);
    return slot;
}

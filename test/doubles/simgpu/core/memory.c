// SPDX-License-Identifier: Apache-2.0
/* memory.c - memory of the simulated devices: zeroed pages of the host, with a table of what lies where */
#include "test/doubles/simgpu/core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { POOL_MAGIC = 0x504f4f4c, PAGE = 4096 };

/* Sorted by address. All under the core's lock. */
static struct sim_block *blocks;
static size_t block_count, block_room;
static uint64_t last_id;
static struct sim_pool default_pools[SIM_MAX_DEVICES], *pools;

static size_t position_of(uintptr_t at) /* the first block that begins after it */
{
    size_t low = 0, high = block_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (blocks[mid].base <= at) low = mid + 1;
        else high = mid;
    }
    return low;
}

static struct sim_block *block_of(uintptr_t at)
{
    size_t i = position_of(at);
    return i > 0 && at - blocks[i - 1].base < blocks[i - 1].bytes ? &blocks[i - 1] : NULL;
}

static void insert(struct sim_block block)
{
    if (block_count == block_room) {
        block_room = block_room ? 2 * block_room : 256;
        blocks = realloc(blocks, block_room * sizeof *blocks);
        if (blocks == NULL) abort();
    }
    size_t i = position_of(block.base);
    memmove(blocks + i + 1, blocks + i, (block_count - i) * sizeof *blocks);
    block.id = ++last_id;
    blocks[i] = block;
    block_count++;
}

static void take_out(struct sim_block *block)
{
    size_t i = (size_t)(block - blocks);
    memmove(blocks + i, blocks + i + 1, (block_count - i - 1) * sizeof *blocks);
    block_count--;
}

static bool counts(uint8_t kind) { return kind == SIM_DEVICE_MEMORY || kind == SIM_MANAGED; }

bool sim_memory_reserve(int device, size_t bytes)
{
    struct sim_device *d = sim_device_at(device);
    sim_lock();
    bool fits = bytes <= d->facts.total_memory && d->used_bytes <= d->facts.total_memory - bytes;
    if (fits) d->used_bytes += bytes;
    sim_unlock();
    return fits;
}

void sim_memory_unreserve(int device, size_t bytes)
{
    sim_lock();
    sim_device_at(device)->used_bytes -= bytes;
    sim_unlock();
}

static void tell(const struct sim_block *block, bool is_free, uint32_t stream)
{
    struct simgpu_alloc alloc = {.is_free = is_free,
                                 .kind = block->kind,
                                 .address = block->base,
                                 .bytes = block->bytes,
                                 .host_ns = sim_now(),
                                 .device = (uint32_t)block->device,
                                 .context = block->context->id,
                                 .stream = stream,
                                 .correlation = sim_correlation()};
    sim_truth_alloc(&alloc);
    const struct simgpu_observer *o = sim_observer();
    if (o && o->allocated) o->allocated(&alloc);
}

static size_t rounded(size_t bytes) { return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1); }

static void count_pool(struct sim_pool *pool, size_t bytes, bool is_free)
{
    if (pool == NULL) return;
    pool->used = is_free ? pool->used - bytes : pool->used + bytes;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
}

int sim_memory_alloc(struct sim_context *context, uint8_t kind, size_t bytes, uint32_t flags, struct sim_pool *pool,
                     uint32_t stream, void **out)
{
    struct sim_block block = {
        .bytes = bytes, .kind = kind, .device = context->device, .context = context, .pool = pool, .flags = flags};
    if (counts(kind) && !sim_memory_reserve(block.device, bytes)) return SIM_OUT_OF_MEMORY;
    void *at = mmap(NULL, rounded(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        if (counts(kind)) sim_memory_unreserve(block.device, bytes);
        return SIM_OUT_OF_MEMORY;
    }
    block.base = (uintptr_t)at;
    sim_lock();
    count_pool(pool, bytes, false);
    insert(block);
    sim_unlock();
    *out = at;
    tell(&block, false, stream);
    return SIM_OK;
}

int sim_memory_free(void *at, uint8_t kind, uint32_t stream)
{
    sim_lock();
    struct sim_block *found = block_of((uintptr_t)at), block;
    bool is_ours = found && found->base == (uintptr_t)at && !found->is_registered && !found->is_mapped &&
                   (kind == 0 || found->kind == kind);
    if (is_ours) {
        block = *found;
        take_out(found);
        count_pool(block.pool, block.bytes, true);
    }
    sim_unlock();
    if (!is_ours) return SIM_INVALID_VALUE;
    munmap((void *)block.base, rounded(block.bytes));
    if (counts(block.kind)) sim_memory_unreserve(block.device, block.bytes);
    tell(&block, true, stream);
    return SIM_OK;
}

int sim_memory_register(struct sim_context *context, void *at, size_t bytes, uint32_t flags)
{
    struct sim_block block = {.base = (uintptr_t)at,
                              .bytes = bytes,
                              .kind = SIM_PINNED,
                              .is_registered = true,
                              .device = context->device,
                              .context = context,
                              .flags = flags};
    if (at == NULL || bytes == 0) return SIM_INVALID_VALUE;
    sim_lock();
    bool is_taken = block_of(block.base) != NULL;
    if (!is_taken) insert(block);
    sim_unlock();
    return is_taken ? SIM_HOST_ALREADY_REGISTERED : SIM_OK;
}

int sim_memory_unregister(void *at)
{
    sim_lock();
    struct sim_block *found = block_of((uintptr_t)at);
    bool is_ours = found && found->is_registered && found->base == (uintptr_t)at;
    if (is_ours) take_out(found);
    sim_unlock();
    return is_ours ? SIM_OK : SIM_HOST_NOT_REGISTERED;
}

bool sim_memory_find(const void *at, struct sim_block *out)
{
    sim_lock();
    struct sim_block *found = block_of((uintptr_t)at);
    if (found) *out = *found;
    sim_unlock();
    return found != NULL;
}

void sim_memory_note(const struct sim_block *block)
{
    sim_lock();
    insert(*block);
    sim_unlock();
}

bool sim_memory_forget(uintptr_t base, struct sim_block *out)
{
    sim_lock();
    struct sim_block *found = block_of(base);
    bool is_there = found && found->base == base && found->is_mapped;
    if (is_there) {
        *out = *found;
        take_out(found);
    }
    sim_unlock();
    return is_there;
}

void sim_memory_info(int device, size_t *free_bytes, size_t *total_bytes)
{
    struct sim_device *d = sim_device_at(device);
    sim_lock();
    *total_bytes = d->facts.total_memory;
    *free_bytes = *total_bytes - d->used_bytes;
    sim_unlock();
}

static uint8_t kind_of(const void *at)
{
    struct sim_block block;
    return sim_memory_find(at, &block) ? block.kind : SIM_PAGEABLE;
}

/* Managed memory counts as the device's here: that is where it was touched last as far as we model it. */
uint8_t sim_copy_kind(const void *dst, const void *src, uint8_t *dst_kind, uint8_t *src_kind)
{
    *dst_kind = kind_of(dst);
    *src_kind = kind_of(src);
    bool to_device = counts(*dst_kind), from_device = counts(*src_kind);
    return to_device ? (from_device ? 8 : 1) : (from_device ? 2 : 9);
}

/* --- pools --- */
struct sim_pool *sim_pool_default(int device)
{
    struct sim_pool *p = &default_pools[device];
    p->magic = POOL_MAGIC;
    p->device = device;
    p->is_default = true;
    return p;
}

bool sim_pool_is(const struct sim_pool *pool) { return pool != NULL && pool->magic == POOL_MAGIC; }

struct sim_pool *sim_pool_create(int device)
{
    struct sim_pool *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    *p = (struct sim_pool){.magic = POOL_MAGIC, .device = device};
    sim_lock();
    p->next = pools;
    pools = p;
    sim_unlock();
    return p;
}

/* Kept: blocks of it may live on. */
void sim_pool_destroy(struct sim_pool *pool) { pool->magic = 0; }

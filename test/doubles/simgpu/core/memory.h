// SPDX-License-Identifier: Apache-2.0
/* memory.h - who owns which addresses: device, pinned, registered, managed and mapped memory, and the pools */
#pragma once

#include "test/doubles/simgpu/core/core.h"

enum sim_memory_kind { SIM_PAGEABLE = 1, SIM_PINNED = 2, SIM_DEVICE_MEMORY = 3, SIM_MANAGED = 5 }; /* CUPTI's numbers */

struct sim_block {
    uintptr_t base;
    size_t bytes;
    uint8_t kind;
    bool is_registered; /* the program's own memory, pinned later */
    bool is_mapped;     /* by cuMemMap */
    int device;
    struct sim_context *context;
    struct sim_pool *pool;
    uint32_t flags;
    uint64_t id;
};

struct sim_pool {
    uint32_t magic;
    int device;
    bool is_default;
    uint64_t release_threshold, used, used_high, flags[4];
    struct sim_pool *next;
};

int sim_memory_alloc(struct sim_context *context, uint8_t kind, size_t bytes, uint32_t flags, struct sim_pool *pool,
                     uint32_t stream, void **out);
int sim_memory_free(void *at, uint8_t kind, uint32_t stream); /* kind 0: any but registered */
int sim_memory_register(struct sim_context *context, void *at, size_t bytes, uint32_t flags);
int sim_memory_unregister(void *at);
bool sim_memory_find(const void *at, struct sim_block *out); /* false: pageable memory of the host */
void sim_memory_note(const struct sim_block *block);         /* a range that cuMemMap made */
bool sim_memory_forget(uintptr_t base, struct sim_block *out);
void sim_memory_info(int device, size_t *free_bytes, size_t *total_bytes);
bool sim_memory_reserve(int device, size_t bytes); /* counts against the device's total; false: over it */
void sim_memory_unreserve(int device, size_t bytes);
uint8_t sim_copy_kind(const void *dst, const void *src, uint8_t *dst_kind, uint8_t *src_kind);
struct sim_pool *sim_pool_default(int device);
bool sim_pool_is(const struct sim_pool *pool);
struct sim_pool *sim_pool_create(int device);
void sim_pool_destroy(struct sim_pool *pool);

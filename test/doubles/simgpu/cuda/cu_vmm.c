// SPDX-License-Identifier: Apache-2.0
/* cu_vmm.c - address ranges and physical memory apart: reserve, create, map, share (files in memory stand for the
 * device's) */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/doubles/simgpu/cuda/cu.h"

enum { GRANULE = 2 << 20, MAGIC_PHYSICAL = 0x50485953, HANDLE_FD = 1, ACCESS_READ_WRITE = 3 };

struct location {
    int type, id;
};

struct properties { /* of an allocation; what follows these we do not look at */
    int type, handle_types;
    struct location location;
    void *windows;
    unsigned char flags[8];
};

struct physical {
    uint32_t magic, references;
    int fd, device;
    size_t bytes;
    struct properties properties;
};

static bool is_physical(const struct physical *p) { return p != NULL && p->magic == MAGIC_PHYSICAL; }

static void give(struct physical *p)
{
    if (--p->references > 0) return;
    p->magic = 0;
    close(p->fd);
    sim_memory_unreserve(p->device, p->bytes);
    free(p);
}

CU_API cuMemGetAllocationGranularity(size_t *bytes, const struct properties *properties, int option)
{
    CU_CALL(cuMemGetAllocationGranularity, bytes, properties, option);
    CU_NEEDS(bytes && properties, SIM_INVALID_VALUE);
    *bytes = GRANULE;
    return DONE(SIM_OK);
}

static int create(struct physical **out, size_t bytes, const struct properties *properties)
{
    int device = properties->location.id;
    if (bytes == 0 || bytes % GRANULE != 0) return SIM_INVALID_VALUE;
    if (sim_device_at(device) == NULL) return SIM_INVALID_DEVICE;
    if (!sim_memory_reserve(device, bytes)) return SIM_OUT_OF_MEMORY;
    int fd = memfd_create("simgpu", MFD_CLOEXEC);
    struct physical *p = malloc(sizeof *p);
    if (fd < 0 || p == NULL || ftruncate(fd, (off_t)bytes) != 0) {
        if (fd >= 0) close(fd);
        free(p);
        sim_memory_unreserve(device, bytes);
        return SIM_OUT_OF_MEMORY;
    }
    *p = (struct physical){MAGIC_PHYSICAL, 1, fd, device, bytes, *properties};
    *out = p;
    return SIM_OK;
}

CU_API cuMemCreate(struct physical **handle, size_t bytes, const struct properties *properties,
                   unsigned long long flags)
{
    CU_CALL(cuMemCreate, handle, bytes, properties, flags);
    CU_NEEDS(handle && properties, SIM_INVALID_VALUE);
    return DONE(create(handle, bytes, properties));
}

CU_API cuMemRelease(struct physical *handle)
{
    CU_CALL(cuMemRelease, handle);
    CU_NEEDS(is_physical(handle), SIM_INVALID_VALUE);
    give(handle);
    return DONE(SIM_OK);
}

CU_API cuMemGetAllocationPropertiesFromHandle(struct properties *properties, struct physical *handle)
{
    CU_CALL(cuMemGetAllocationPropertiesFromHandle, properties, handle);
    CU_NEEDS(is_physical(handle), SIM_INVALID_VALUE);
    *properties = handle->properties;
    return DONE(SIM_OK);
}

/* --- addresses --- */
CU_API cuMemAddressReserve(void **out, size_t bytes, size_t alignment, void *wanted, unsigned long long flags)
{
    CU_CALL(cuMemAddressReserve, out, bytes, alignment, wanted, flags);
    if (alignment < GRANULE) alignment = GRANULE;
    CU_NEEDS(out && bytes && bytes % GRANULE == 0, SIM_INVALID_VALUE);
    char *raw = mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_NEEDS(raw != MAP_FAILED, SIM_OUT_OF_MEMORY);
    char *at = (char *)(((uintptr_t)raw + alignment - 1) / alignment * alignment);
    if (at > raw) munmap(raw, (size_t)(at - raw));
    if (raw + alignment > at) munmap(at + bytes, (size_t)(raw + alignment - at));
    *out = at;
    return DONE(SIM_OK);
}

CU_API cuMemAddressFree(void *at, size_t bytes)
{
    CU_CALL(cuMemAddressFree, at, bytes);
    return DONE(munmap(at, bytes) == 0 ? SIM_OK : SIM_INVALID_VALUE);
}

/* The mapping holds a reference; which one is found again in the block's `pool`. */
CU_API cuMemMap(void *at, size_t bytes, size_t offset, struct physical *handle, unsigned long long flags)
{
    CU_CALL(cuMemMap, at, bytes, offset, handle, flags);
    CU_NEEDS(is_physical(handle) && offset + bytes <= handle->bytes, SIM_INVALID_VALUE);
    struct sim_context *context = sim_context_primary(handle->device);
    void *got = mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->fd, (off_t)offset);
    CU_NEEDS(got == at, SIM_INVALID_VALUE);
    handle->references++;
    struct sim_block block = {.base = (uintptr_t)at,
                              .bytes = bytes,
                              .kind = SIM_DEVICE_MEMORY,
                              .is_mapped = true,
                              .device = handle->device,
                              .context = context,
                              .pool = (struct sim_pool *)(void *)handle};
    sim_memory_note(&block);
    return DONE(SIM_OK);
}

CU_API cuMemUnmap(void *at, size_t bytes)
{
    CU_CALL(cuMemUnmap, at, bytes);
    struct sim_block block;
    size_t done = 0;
    while (done < bytes && sim_memory_forget((uintptr_t)at + done, &block)) {
        done += block.bytes;
        give((struct physical *)(void *)block.pool);
    }
    CU_NEEDS(done == bytes, SIM_INVALID_VALUE);
    mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return DONE(SIM_OK);
}

struct access {
    struct location location;
    int flags;
};

CU_API cuMemSetAccess(void *at, size_t bytes, const struct access *access, size_t count)
{
    CU_CALL(cuMemSetAccess, at, bytes, access, count);
    bool may_write = false;
    for (size_t i = 0; i < count; i++) may_write |= access[i].flags == ACCESS_READ_WRITE;
    return DONE(mprotect(at, bytes, may_write ? PROT_READ | PROT_WRITE : PROT_READ) == 0 ? SIM_OK : SIM_INVALID_VALUE);
}

CU_API cuMemGetAccess(unsigned long long *flags, const struct location *location, void *at)
{
    CU_CALL(cuMemGetAccess, flags, location, at);
    struct sim_block block;
    CU_NEEDS(sim_memory_find(at, &block), SIM_INVALID_VALUE);
    *flags = ACCESS_READ_WRITE;
    return DONE(SIM_OK);
}

CU_API cuMemRetainAllocationHandle(struct physical **handle, void *at)
{
    CU_CALL(cuMemRetainAllocationHandle, handle, at);
    struct sim_block block;
    CU_NEEDS(sim_memory_find(at, &block) && block.is_mapped, SIM_INVALID_VALUE);
    *handle = (struct physical *)(void *)block.pool;
    (*handle)->references++;
    return DONE(SIM_OK);
}

/* --- between processes: a file descriptor --- */
CU_API cuMemExportToShareableHandle(void *out, struct physical *handle, int type, unsigned long long flags)
{
    CU_CALL(cuMemExportToShareableHandle, out, handle, type, flags);
    CU_NEEDS(is_physical(handle) && out, SIM_INVALID_VALUE);
    CU_NEEDS(type == HANDLE_FD, SIM_NOT_SUPPORTED);
    int fd = dup(handle->fd);
    CU_NEEDS(fd >= 0, SIM_OUT_OF_MEMORY);
    *(int *)out = fd;
    return DONE(SIM_OK);
}

CU_API cuMemImportFromShareableHandle(struct physical **handle, void *from, int type)
{
    CU_CALL(cuMemImportFromShareableHandle, handle, from, type);
    CU_NEEDS(handle && type == HANDLE_FD, SIM_NOT_SUPPORTED);
    struct sim_context *context = cu_context();
    struct physical *p = calloc(1, sizeof *p);
    CU_NEEDS(context && p, SIM_INVALID_CONTEXT);
    *p = (struct physical){
        .magic = MAGIC_PHYSICAL, .references = 1, .fd = dup((int)(intptr_t)from), .device = context->device};
    off_t bytes = p->fd >= 0 ? lseek(p->fd, 0, SEEK_END) : -1;
    bool fits = bytes > 0 && sim_memory_reserve(p->device, (size_t)bytes);
    if (!fits) {
        if (p->fd >= 0) close(p->fd);
        free(p);
        return DONE(SIM_INVALID_VALUE);
    }
    p->bytes = (size_t)bytes;
    p->properties = (struct properties){.type = 1, .handle_types = HANDLE_FD, .location = {1, p->device}};
    *handle = p;
    return DONE(SIM_OK);
}

// SPDX-License-Identifier: Apache-2.0
/* rt_register.c - what nvcc's code registers at load: fat binaries, host stubs and their kernels, variables */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test/doubles/simgpu/cudart/rt.h"

/* An open table from host address to name; grows by doubling. Names live in the program's read-only data. */
struct entry {
    const void *host;
    const char *name;
    void *kernel, *storage;
    size_t bytes;
};
static struct entry *entries;
static size_t entry_count, entry_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t slot_of(const struct entry *table, size_t room, const void *host)
{
    size_t i = ((uintptr_t)host >> 4) * 0x9e3779b97f4a7c15u >> 20 & (room - 1);
    while (table[i].host != NULL && table[i].host != host) i = (i + 1) & (room - 1);
    return i;
}

static void grow(void)
{
    size_t room = entry_room ? 2 * entry_room : 8192;
    struct entry *table = calloc(room, sizeof *table);
    if (table == NULL) abort();
    for (size_t i = 0; i < entry_room; i++)
        if (entries[i].host) table[slot_of(table, room, entries[i].host)] = entries[i];
    free(entries);
    entries = table;
    entry_room = room;
}

static void add(const void *host, const char *name, size_t bytes)
{
    pthread_mutex_lock(&lock);
    if (2 * entry_count >= entry_room) grow();
    struct entry *e = &entries[slot_of(entries, entry_room, host)];
    if (e->host == NULL) entry_count++;
    *e = (struct entry){.host = host, .name = name, .bytes = bytes};
    pthread_mutex_unlock(&lock);
}

static bool find(const void *host, struct entry *out)
{
    pthread_mutex_lock(&lock);
    struct entry *e = entry_room ? &entries[slot_of(entries, entry_room, host)] : NULL;
    bool is_there = e != NULL && e->host != NULL && host != NULL;
    if (is_there) *out = *e;
    pthread_mutex_unlock(&lock);
    return is_there;
}

/* A kernel's own handle may stand where a host stub is asked for. */
const char *rt_kernel_name(const void *host_function)
{
    struct entry e;
    if (find(host_function, &e)) return e.name;
    return rt_core() ? rt_core()->function_name(host_function) : NULL;
}

void *rt_kernel(const void *host_function)
{
    const char *name = rt_kernel_name(host_function);
    return name ? rt_core()->function(name) : NULL;
}

/* --- called by nvcc's constructors; none of these is a call that CUPTI reports before a driver is there --- */
RT_EXPORT void **__cudaRegisterFatBinary(void *fat_binary)
{
    void **handle = malloc(sizeof *handle);
    if (handle == NULL) abort();
    *handle = fat_binary;
    return handle;
}

RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
RT_EXPORT void __cudaUnregisterFatBinary(void **handle) { free(handle); }
RT_EXPORT char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

RT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device_function, const char *name,
                                      int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp_size)
{
    (void)handle, (void)device_function, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid,
        (void)warp_size;
    add(host, name, 0);
}

RT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int is_extern,
                                 size_t bytes, int is_constant, int is_global)
{
    (void)handle, (void)address, (void)is_extern, (void)is_constant, (void)is_global;
    add(host, name, bytes);
}

RT_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name, int is_extern,
                                        size_t bytes, int is_constant, int is_global)
{
    (void)handle, (void)address, (void)is_extern, (void)is_constant, (void)is_global;
    add(host, name, bytes);
}

/* --- the configuration between <<<...>>> and the stub --- */
enum { NESTED = 8 };
static _Thread_local struct {
    struct dim3 grid, block;
    size_t smem;
    void *stream;
} configured[NESTED];
static _Thread_local int configured_count;

RT_EXPORT unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t smem, void *stream)
{
    if (configured_count == NESTED) return 1;
    configured[configured_count].grid = grid;
    configured[configured_count].block = block;
    configured[configured_count].smem = smem;
    configured[configured_count++].stream = stream;
    return 0;
}

RT_API __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *smem, void *stream)
{
    if (configured_count == 0) return RT_INVALID_CONFIGURATION;
    configured_count--;
    *grid = configured[configured_count].grid;
    *block = configured[configured_count].block;
    *smem = configured[configured_count].smem;
    *(void **)stream = configured[configured_count].stream;
    return RT_OK;
}

/* --- variables of the device: storage comes at the first look, zeroed --- */
static int storage_of(const void *symbol, void **address, size_t *bytes)
{
    struct entry e;
    if (!find(symbol, &e) || e.bytes == 0) return 13; /* invalid symbol */
    if (e.storage == NULL) {
        int error = drv.cuMemAlloc_v2(&e.storage, e.bytes);
        if (error) return error;
        pthread_mutex_lock(&lock);
        entries[slot_of(entries, entry_room, symbol)].storage = e.storage;
        pthread_mutex_unlock(&lock);
    }
    *address = e.storage;
    *bytes = e.bytes;
    return RT_OK;
}

RT_API cudaGetSymbolAddress(void **out, const void *symbol)
{
    RT_CALL(cudaGetSymbolAddress, RT_CONTEXT, out, symbol);
    size_t bytes;
    return DONE(storage_of(symbol, out, &bytes));
}

RT_API cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    RT_CALL(cudaGetSymbolSize, RT_CONTEXT, bytes, symbol);
    void *address;
    return DONE(storage_of(symbol, &address, bytes));
}

static int symbol_range(const void *symbol, size_t count, size_t offset, char **at)
{
    void *address;
    size_t bytes;
    int error = storage_of(symbol, &address, &bytes);
    if (error) return error;
    if (offset > bytes || count > bytes - offset) return RT_INVALID_VALUE;
    *at = (char *)address + offset;
    return RT_OK;
}

RT_API cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset, int kind)
{
    RT_CALL(cudaMemcpyToSymbol, RT_CONTEXT, symbol, src, count, offset, kind);
    char *at;
    int error = symbol_range(symbol, count, offset, &at);
    return DONE(error ? error : drv.cuMemcpyHtoD_v2(at, src, count));
}

RT_API cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset, int kind, void *stream)
{
    RT_CALL(cudaMemcpyToSymbolAsync, RT_CONTEXT, symbol, src, count, offset, kind, stream);
    char *at;
    int error = symbol_range(symbol, count, offset, &at);
    return DONE(error ? error : drv.cuMemcpyHtoDAsync_v2(at, src, count, stream));
}

RT_API cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset, int kind)
{
    RT_CALL(cudaMemcpyFromSymbol, RT_CONTEXT, dst, symbol, count, offset, kind);
    char *at;
    int error = symbol_range(symbol, count, offset, &at);
    return DONE(error ? error : drv.cuMemcpyDtoH_v2(dst, at, count));
}

RT_API cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset, int kind, void *stream)
{
    RT_CALL(cudaMemcpyFromSymbolAsync, RT_CONTEXT, dst, symbol, count, offset, kind, stream);
    char *at;
    int error = symbol_range(symbol, count, offset, &at);
    return DONE(error ? error : drv.cuMemcpyDtoHAsync_v2(dst, at, count, stream));
}

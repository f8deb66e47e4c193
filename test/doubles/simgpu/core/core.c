// SPDX-License-Identifier: Apache-2.0
/* core.c - the process's one simulated GPU system: devices, cuInit, fork, the observer, the table for the other
 * libraries */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/doubles/simgpu/core/core.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_device devices[SIM_MAX_DEVICES];
static _Atomic(const struct simgpu_observer *) observer;
static _Atomic int state = SIM_NOT_INITIALIZED; /* 0 once cuInit succeeded */
static bool is_forked;                          /* this process is the child of one that had initialised */

void sim_lock(void) { pthread_mutex_lock(&lock); }
void sim_unlock(void) { pthread_mutex_unlock(&lock); }

const struct simgpu_observer *sim_observer(void) { return atomic_load_explicit(&observer, memory_order_acquire); }
static void observe(const struct simgpu_observer *o) { atomic_store_explicit(&observer, o, memory_order_release); }

int sim_init_state(void) { return atomic_load_explicit(&state, memory_order_acquire); }
int sim_device_count(void) { return sim_init_state() == 0 ? sim_settings()->devices : 0; }

struct sim_device *sim_device_at(int index)
{
    return index >= 0 && index < sim_settings()->devices ? &devices[index] : NULL;
}

/* --- fork: a child of a process that used the GPU can never use it --- */
static void before_fork(void)
{
    pthread_mutex_lock(&init_lock);
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&init_lock);
}

static void in_child(void)
{
    in_parent();
    if (sim_init_state() == 0) is_forked = true;
    atomic_store(&state, SIM_NOT_INITIALIZED);
    observe(NULL);
    sim_timeline_after_fork();
}

static void at_exit(void)
{
    const struct simgpu_observer *o = sim_observer();
    if (o && o->process_exit) o->process_exit();
}

/* --- cuInit --- */
static void make_devices(void)
{
    for (int i = 0; i < sim_settings()->devices; i++) {
        struct simgpu_device *d = &devices[i].facts;
#define FACT(field, value) d->field = value;
#include "test/doubles/simgpu/core/devices.def"
#undef FACT
        snprintf(d->name, sizeof d->name, "NVIDIA H100 80GB HBM3 (simulated)");
        memcpy(d->uuid, "simulated gpu  ", 16);
        d->uuid[15] = (uint8_t)i;
        d->total_memory = sim_settings()->memory_bytes;
        devices[i].primary.device = i;
    }
}

/* The driver's documented way in for tools: a library named by the environment, before the first call returns. */
static void inject(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (path == NULL || *path == '\0' || strcmp(path, "none") == 0) return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        sim_truth_note("injection_failed", path);
        return;
    }
    int (*entry)(void);
    *(void **)&entry = dlsym(library, "InitializeInjection");
    if (entry) entry();
    sim_truth_note(entry ? "injected" : "injection_has_no_entry", path);
}

static int first_init(void)
{
    const struct sim_settings *s = sim_settings();
    if (is_forked) return SIM_NOT_INITIALIZED;
    if (s->is_stub) return SIM_STUB_LIBRARY;
    if (s->has_no_device) return SIM_NO_DEVICE;
    make_devices();
    pthread_atfork(before_fork, in_parent, in_child);
    atexit(at_exit);
    return SIM_OK;
}

/* The injected library runs with no lock held: it may call cuInit itself, as a tool in the driver's hands may. */
int sim_init(void)
{
    pthread_mutex_lock(&init_lock);
    int was = sim_init_state(), now = was == 0 ? 0 : first_init();
    if (was != 0 && now == 0) atomic_store_explicit(&state, 0, memory_order_release);
    pthread_mutex_unlock(&init_lock);
    if (was != 0 && now == 0) inject();
    return now;
}

/* --- the table for libcupti and libcudart --- */
static bool is_initialised(void) { return sim_init_state() == 0; }
static const struct simgpu_device *device(int index)
{
    struct sim_device *d = sim_device_at(index);
    return d ? &d->facts : NULL;
}

static uint32_t context_of(int index)
{
    struct sim_device *d = sim_device_at(index);
    return d && d->primary.is_made ? d->primary.id : 0;
}

static void each_context(void (*fn)(void *, uint32_t, uint32_t, uint32_t), void *arg)
{
    sim_lock();
    for (struct sim_context *c = sim_contexts(); c; c = c->next)
        fn(arg, c->id, (uint32_t)c->device, SIM_NULL_STREAM_ID);
    sim_unlock();
}

static void each_stream(void (*fn)(void *, uint32_t, uint32_t, int32_t), void *arg)
{
    sim_lock();
    for (struct sim_context *c = sim_contexts(); c; c = c->next)
        for (struct sim_stream *s = c->streams; s; s = s->next) fn(arg, c->id, s->id, s->priority);
    sim_unlock();
}

static uint64_t stream_id(void *handle, uint32_t *context)
{
    struct sim_stream *s = sim_stream_of(handle);
    if (s == NULL) return SIM_NOT_APPLICABLE;
    if (context) *context = s->context->id;
    return s->id;
}

static void *function(const char *name) { return sim_kernel_of(name); }
static void *current_context(void) { return sim_context_current(); }

static const char *function_name(const void *handle)
{
    const struct sim_kernel *k = handle;
    return k != NULL && ((uintptr_t)handle & 7) == 0 && k->magic == SIM_MAGIC_KERNEL ? k->name : NULL;
}

static int use_device(int index)
{
    struct sim_context *c = sim_context_primary(index);
    return c ? sim_context_bind(c) : SIM_INVALID_DEVICE;
}

static int sticky_error(void)
{
    struct sim_context *c = sim_context_current();
    return c ? sim_context_error(c) : SIM_OK;
}

const struct simgpu_core sim_core_table = {
    .size = sizeof sim_core_table,
    .observe = observe,
    .is_initialised = is_initialised,
    .device_count = sim_device_count,
    .device = device,
    .host_ns = sim_now,
    .device_ns = sim_device_ns,
    .context_of = context_of,
    .each_context = each_context,
    .each_stream = each_stream,
    .stream_id = stream_id,
    .call_enter = sim_call_enter,
    .call_exit = sim_call_exit,
    .function = function,
    .next_kernel = sim_next_kernel,
    .function_name = function_name,
    .current_context = current_context,
    .use_device = use_device,
    .sticky_error = sticky_error,
    .note = sim_truth_note,
    .calls_disturb = sim_calls_disturb,
};

__attribute__((visibility("default"))) const struct simgpu_core *simgpu_core(void) { return &sim_core_table; }

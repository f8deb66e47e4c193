// SPDX-License-Identifier: Apache-2.0
/*
 * memory.c - records the blocks that torch's allocators allocate and free
 *
 * Called by: libc10, libc10_cuda and libtorch_cpu through tapped GOT slots, on any thread, for each block (hot)
 * Owns:      nothing; the taps are never removed and pass calls through while no window wants memory
 * Locks:     none. Memory: none.
 * On fail:   an event that finds no room is counted
 * Safe in:   after fork yes (the gate reads 0 in a child)
 *
 * Device allocators report each block with sizes and totals, whether a profiler runs or not. The CPU allocator reports
 * only when c10::memoryProfilingEnabled() is true. It then also keeps a table of blocks and warns of unknown ones,
 * which the host would notice. So our tap does not return true, and alloc_cpu and free_cpu are tapped instead.
 * Only calls from libc10 are recorded: torch.profiler does not show blocks that other libraries allocate by alloc_cpu.
 * A table beside the taps holds each block's size, in windows and between them (cpu_blocks.h). So a window begins with
 * a record of each block that was there before, and a free has its size. The reader finds the totals.
 *
 * Out of memory, alloc_cpu throws past our tap. libc10 then asks memoryProfilingEnabled() whether to report that; only
 * there our tap returns true.
 *
 * With KPROF_ON_OOM the table has the blocks of devices, too, and each has a mark: the line of the program, the step
 * and the device. A failed allocation is then told to the run, which writes what is live.
 *
 * Memory that is mapped (a file of weights, torch.from_file, a batch of a DataLoader's worker) is reported by
 * libtorch_cpu, also without a profiler: as a block of the CPU without totals.
 */
#include <errno.h>
#include <link.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_log.h"
#include "preload/guard.h"
#include "preload/hook/hook.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "preload/torch/cpu_blocks.h"
#include "preload/torch/forwardline.h"
#include "preload/torch/torch.h"
#include "preload/torch_bridge.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { KEEPING = KP_GATE_RECORD | KP_GATE_MEMORY, TAPS_MAX = 5 };

KP_HOT_DATA static const struct kp_torch_api *real;
static void (*real_report)(void *block, int64_t bytes, size_t allocated, size_t reserved, uint16_t device);
static void (*real_report_oom)(int64_t bytes, size_t allocated, size_t reserved, uint16_t device);
KP_HOT_DATA static uintptr_t c10_begin, c10_end;                                    /* bounds of libc10's code */
static _Thread_local bool is_allocating __attribute__((tls_model("initial-exec"))); /* stays set if alloc_cpu throws */

KP_HOT_DATA static bool is_watched; /* KPROF_ON_OOM */
static struct kp_tap taps[TAPS_MAX];
static uint32_t taps_n;
static _Atomic uint64_t listed_window; /* begin of the last one whose blocks of before are listed */

static inline bool is_device(uint16_t device) { return (device & 0xff) != 0; }
static inline bool is_kept(uint64_t gate) { return (gate & KEEPING) == KEEPING; }

static void put(uint64_t address, int64_t bytes, uint32_t flags, const struct kp_rec_memory *totals)
{
    struct kp_guard guard;
    uint32_t size = totals ? (uint32_t)sizeof *totals : KP_MEMORY_SHORT_BYTES;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return;
    struct kp_rec_memory *rec =
        is_kept(guard.gate) ? kp_put_reserve(guard.thread, guard.gate, size, KP_KIND_MEMORY) : NULL;
    if (rec) {
        if (totals) *rec = *totals;
        rec->head = (struct kp_rec){.kind = KP_KIND_MEMORY, .flags = (uint8_t)flags, .size = (uint16_t)size};
        rec->start = kp_ticks();
        rec->address = address;
        rec->bytes = bytes;
        kp_put_commit(guard.thread, size);
    }
    KP_HOOK_LEAVE(&guard);
}

static void put_report(uint64_t address, int64_t bytes, size_t allocated, size_t reserved, uint16_t device,
                       uint32_t flags)
{
    struct kp_rec_memory totals = {
        .allocated = allocated, .reserved = reserved, .device_type = (uint8_t)device, .device = (int8_t)(device >> 8)};
    put(address, bytes, flags | KP_MEMORY_TOTALS, &totals);
}

/* --- what is live --- */

enum { DEVICE_SHIFT = 16, STEP_SHIFT = 32 }; /* of a mark: site, device, step */

static inline uint32_t site_here(void) { return kp_torch_forward_site(kp_callsite()); }

static inline void block_put(uint64_t address, int64_t bytes, uint16_t device, uint32_t site)
{
    const uint64_t number = is_device(device) ? device : 0, step = is_watched ? kp_steps_seen() : 0;
    kp_cpu_blocks_put(address, bytes, site | number << DEVICE_SHIFT | step << STEP_SHIFT);
}

struct live_walk {
    kp_torch_block_fn fn;
    void *context;
};

static bool live_tell(void *context, uint64_t address, int64_t bytes, uint64_t mark)
{
    const struct live_walk *w = context;
    (void)address;
    w->fn(w->context, &(struct kp_torch_block){.bytes = (uint64_t)bytes,
                                               .step = (uint32_t)(mark >> STEP_SHIFT),
                                               .site = (uint16_t)mark,
                                               .device = (uint16_t)(mark >> DEVICE_SHIFT)});
    return true;
}

uint64_t kp_torch_blocks(kp_torch_block_fn fn, void *context)
{
    (void)kp_cpu_blocks_each(live_tell, &(struct live_walk){fn, context});
    return kp_cpu_blocks_unkept();
}

/* --- the CPU --- */

static inline bool is_of_c10(const void *caller)
{
    return (uintptr_t)caller >= c10_begin && (uintptr_t)caller < c10_end;
}

/* The site first: where its memory comes late, the allocation goes on meanwhile. */
static KP_HOT void *tap_alloc_cpu(size_t bytes)
{
    if (!is_of_c10(__builtin_return_address(0))) return real->alloc_cpu(bytes);
    const bool keeps = is_kept(kp_gate_get());
    const uint32_t site = is_watched ? site_here() : 0;
    if (keeps || is_watched) is_allocating = true;
    void *block = real->alloc_cpu(bytes);
    if (keeps || is_watched) is_allocating = false;
    if (!block || !bytes) return block;
    block_put((uintptr_t)block, (int64_t)bytes, 0, site);
    if (keeps) put((uintptr_t)block, (int64_t)bytes, 0, NULL);
    return block;
}

static KP_HOT void tap_free_cpu(void *block)
{
    const int64_t bytes = block ? kp_cpu_blocks_take((uintptr_t)block) : 0;
    if (block && is_kept(kp_gate_get())) put((uintptr_t)block, -bytes, KP_MEMORY_FREE, NULL);
    real->free_cpu(block);
}

/* --- what was there before a window --- */

struct before_list {
    struct kp_thread *thread;
    uint64_t gate, ticks;
};

static bool before_put(void *context, uint64_t address, int64_t bytes, uint64_t mark)
{
    if (is_device((uint16_t)(mark >> DEVICE_SHIFT))) return true;
    const struct before_list *list = context;
    struct kp_rec_memory *rec = kp_put_reserve(list->thread, list->gate, KP_MEMORY_SHORT_BYTES, KP_KIND_MEMORY);
    if (!rec) return false;
    rec->head = (struct kp_rec){.kind = KP_KIND_MEMORY, .flags = KP_MEMORY_BEFORE, .size = KP_MEMORY_SHORT_BYTES};
    rec->start = list->ticks;
    rec->address = address;
    rec->bytes = bytes;
    kp_put_commit(list->thread, KP_MEMORY_SHORT_BYTES);
    return true;
}

/* Lists the blocks of before. A record without an address ends the list, and says that it is whole. */
static void before_list(struct kp_thread *thread)
{
    struct before_list list = {thread, kp_gate_get(), kp_ticks()};
    if (!is_kept(list.gate)) return;
    if (kp_cpu_blocks_each(before_put, &list)) before_put(&list, 0, (int64_t)kp_cpu_blocks_unkept(), 0);
}

/* Called on the thread that begins the window, inside a hook or outside. */
void kp_torch_memory_window(uint64_t begin_ticks)
{
    struct kp_guard guard;
    if (!taps_n || !is_kept(kp_gate_get()) || kp_exchange_acq_rel(&listed_window, begin_ticks) == begin_ticks) return;
    const int saved = errno;
    if (kp_guard_try(&guard, KP_GATE_RECORD)) {
        before_list(guard.thread);
        kp_guard_leave(&guard);
    } else if (kp_thread_self) {
        before_list(kp_thread_self);
    }
    errno = saved;
}

static KP_HOT bool tap_memory_enabled(void)
{
    bool is_oom = is_allocating;
    is_allocating = false;
    return (is_oom && (is_watched || is_kept(kp_gate_get()))) || real->memory_enabled();
}

/* --- devices and mapped memory; the CPU allocator's reports to a torch.profiler pass through --- */

static void tap_report(void *block, int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
{
    const bool is_mapped = !is_device(device) && c10_end && !is_of_c10(__builtin_return_address(0));
    const bool is_listed = is_mapped || (is_watched && is_device(device));
    if (is_listed && block && bytes > 0) block_put((uintptr_t)block, bytes, device, is_watched ? site_here() : 0);
    if (is_listed && block && bytes < 0) (void)kp_cpu_blocks_take((uintptr_t)block);
    if ((is_device(device) || is_mapped) && is_kept(kp_gate_get()))
        put_report((uintptr_t)block, bytes, allocated, reserved, device, 0);
    real_report(block, bytes, allocated, reserved, device);
}

static void tap_report_oom(int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
{
    if (is_kept(kp_gate_get())) put_report(0, bytes, allocated, reserved, device, KP_MEMORY_OOM);
    if (is_watched)
        kp_run_out_of_memory(&(struct kp_run_oom){(uint64_t)bytes, allocated, reserved, site_here(), (uint8_t)device,
                                                  (int8_t)(device >> 8)});
    real_report_oom(bytes, allocated, reserved, device);
}

/* --- attaching --- */

static int find_code(struct dl_phdr_info *info, size_t size, void *context)
{
    uintptr_t inside = *(uintptr_t *)context;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || inside < begin || inside >= begin + p->p_memsz) continue;
        c10_begin = begin;
        c10_end = begin + p->p_memsz;
        return 1;
    }
    return 0;
}

/* Adds no tap for a function that this torch lacks. */
static void tap_add(const char *symbol, uintptr_t function, uintptr_t tap)
{
    if (function) taps[taps_n++] = (struct kp_tap){symbol, (void *)function, (void *)tap};
}

static void tap_cpu(const struct kp_torch_api *api)
{
    uintptr_t inside = (uintptr_t)api->alloc_cpu;
    if (!api->alloc_cpu || !api->free_cpu || !api->memory_enabled || !dl_iterate_phdr(find_code, &inside)) {
        kp_log(0, "this torch's CPU allocator is not supported: KPROF_PROFILE_MEMORY=1 records devices only");
        return;
    }
    tap_add("_ZN3c109alloc_cpuEm", (uintptr_t)api->alloc_cpu, (uintptr_t)tap_alloc_cpu);
    tap_add("_ZN3c108free_cpuEPv", (uintptr_t)api->free_cpu, (uintptr_t)tap_free_cpu);
    tap_add("_ZN3c1022memoryProfilingEnabledEv", (uintptr_t)api->memory_enabled, (uintptr_t)tap_memory_enabled);
}

void kp_torch_memory_attach(const struct kp_torch_api *api, bool is_oom_watched)
{
    real = api;
    is_watched = is_oom_watched;
    if (is_watched) kp_torch_forwards_setup();
    if (!kp_cpu_blocks_setup(is_watched)) kp_log(1, "out of memory: what was allocated before a window is not known");
    real_report = api->report ? api->report : api->report_1_13;
    real_report_oom = api->report_oom ? api->report_oom : api->report_oom_1_13;
    tap_cpu(api);
    tap_add(api->report ? "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
                        : "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
            (uintptr_t)real_report, (uintptr_t)tap_report);
    tap_add(api->report_oom ? "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
                            : "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE",
            (uintptr_t)real_report_oom, (uintptr_t)tap_report_oom);
    int err = kp_hook_add_taps_own(taps, taps_n);
    if (err) kp_log(0, "torch's allocators cannot be hooked (%s): no memory is recorded", kp_log_error_text(err));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * devices.c - writes META records of the devices, and of each context's device
 *
 * Called by: control.c when it arms (all devices), lane.c (CUPTI's records of devices and contexts)
 * Owns:      which of them are in the spool already
 * Locks:     the one of kp_record_meta
 * On fail:   the trace lacks the device's row in deviceProperties
 *
 * The driver gives all that a device's row in the trace needs, while CUPTI's record lacks some of it. Reading device
 * attributes makes no context and does not wait.
 */
#include <string.h>

#include "collector/record/kp_record.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { DEVICES = 64, CONTEXTS = 64, NAME_BYTES = 256 };

/* CUdevice_attribute */
enum {
    ATTR_THREADS_PER_BLOCK = 1,
    ATTR_SMEM_PER_BLOCK = 8,
    ATTR_WARP = 10,
    ATTR_REGS_PER_BLOCK = 12,
    ATTR_CLOCK_KHZ = 13,
    ATTR_SMS = 16,
    ATTR_MEMORY_KHZ = 36,
    ATTR_BUS_BITS = 37,
    ATTR_THREADS_PER_SM = 39,
    ATTR_MAJOR = 75,
    ATTR_MINOR = 76,
    ATTR_SMEM_PER_SM = 81,
    ATTR_REGS_PER_SM = 82,
    ATTR_SMEM_OPTIN = 97,
    ATTR_BLOCKS_PER_SM = 106,
};

static _Atomic uint64_t written;            /* a bit for each device: its record is in the spool */
static _Atomic uint64_t contexts[CONTEXTS]; /* context << 32 | device + 1, as written last */

static uint32_t ask(int device, int attribute)
{
    int value = 0;
    return kp_driver.device_attribute(&value, attribute, device) == 0 && value > 0 ? (uint32_t)value : 0;
}

static void fill(struct kp_rec_device *r, int device)
{
    r->id = (uint32_t)device;
    r->major = ask(device, ATTR_MAJOR);
    r->minor = ask(device, ATTR_MINOR);
    r->warp_size = ask(device, ATTR_WARP);
    r->max_threads_per_block = ask(device, ATTR_THREADS_PER_BLOCK);
    r->max_threads_per_sm = ask(device, ATTR_THREADS_PER_SM);
    r->regs_per_block = ask(device, ATTR_REGS_PER_BLOCK);
    r->regs_per_sm = ask(device, ATTR_REGS_PER_SM);
    r->smem_per_block = ask(device, ATTR_SMEM_PER_BLOCK);
    r->smem_per_block_optin = ask(device, ATTR_SMEM_OPTIN);
    r->smem_per_sm = ask(device, ATTR_SMEM_PER_SM);
    r->sms = ask(device, ATTR_SMS);
    r->max_blocks_per_sm = ask(device, ATTR_BLOCKS_PER_SM);
    r->max_warps_per_sm = r->warp_size ? r->max_threads_per_sm / r->warp_size : 0;
    r->core_clock_khz = ask(device, ATTR_CLOCK_KHZ);
    r->bandwidth_kb = (uint64_t)ask(device, ATTR_MEMORY_KHZ) * 2 * ask(device, ATTR_BUS_BITS) / 8;
}

static void write_one(struct kp_rec_device *r, const char *name)
{
    struct kp_thread *self = kp_thread_get();
    if (r->id >= DEVICES || (kp_load_relaxed(&written) & UINT64_C(1) << r->id)) return;
    r->head = (struct kp_rec){.kind = KP_KIND_DEVICE, .size = sizeof *r};
    if (name && self) r->head.name = kp_name_intern(self, name, (uint32_t)strnlen(name, NAME_BYTES));
    if (kp_record_meta(r, sizeof *r) != 0) return; /* no spool yet; the next arming tries again */
    kp_add_relaxed(&written, UINT64_C(1) << r->id);
}

void kp_device_write_all(void)
{
    int count = 0;
    if (!kp_driver.device_attribute || !kp_driver.device_count || kp_driver.device_count(&count) != 0) return;
    for (int i = 0; i < count && i < DEVICES; i++) {
        struct kp_rec_device r = {.id = 0};
        char name[NAME_BYTES] = "";
        size_t memory = 0;
        fill(&r, i);
        if (kp_driver.device_memory && kp_driver.device_memory(&memory, i) == 0) r.total_memory = memory;
        if (kp_driver.device_uuid) (void)kp_driver.device_uuid(r.uuid, i);
        if (kp_driver.device_name && kp_driver.device_name(name, sizeof name - 1, i) != 0) name[0] = 0;
        write_one(&r, name[0] ? name : NULL);
    }
}

void kp_device_write(const struct kp_decoded *d)
{
    struct kp_rec_device r = d->device;
    write_one(&r, d->name);
}

void kp_context_write(const struct kp_rec_context *context)
{
    uint64_t key = (uint64_t)context->context << 32 | (context->device + 1);
    _Atomic uint64_t *last = &contexts[context->context % CONTEXTS];
    if (kp_load_relaxed(last) == key || kp_record_meta(context, sizeof *context) != 0) return;
    kp_store_relaxed(last, key);
}

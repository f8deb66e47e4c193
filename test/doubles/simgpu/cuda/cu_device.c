// SPDX-License-Identifier: Apache-2.0
/* cu_device.c - what devices there are, what they say of themselves, and their primary contexts */
#include <stdio.h>
#include <string.h>

#include "test/doubles/simgpu/cuda/cu.h"

#define CU_DEVICE(d, index)                      \
    struct sim_device *d = sim_device_at(index); \
    if (d == NULL) return DONE(SIM_INVALID_DEVICE)

CU_API cuDeviceGetCount(int *count)
{
    CU_CALL(cuDeviceGetCount, count);
    *count = sim_device_count();
    return DONE(SIM_OK);
}

CU_API cuDeviceGet(int *device, int index)
{
    CU_CALL(cuDeviceGet, device, index);
    CU_NEEDS(sim_device_at(index), SIM_INVALID_DEVICE);
    *device = index;
    return DONE(SIM_OK);
}

CU_API cuDeviceGetName(char *name, int length, int device)
{
    CU_CALL(cuDeviceGetName, name, length, device);
    CU_DEVICE(d, device);
    snprintf(name, (size_t)length, "%s", d->facts.name);
    return DONE(SIM_OK);
}

CU_API cuDeviceGetUuid(uint8_t *uuid, int device)
{
    CU_CALL(cuDeviceGetUuid, uuid, device);
    CU_DEVICE(d, device);
    memcpy(uuid, d->facts.uuid, 16);
    return DONE(SIM_OK);
}

CU_API cuDeviceGetUuid_v2(uint8_t *uuid, int device)
{
    CU_CALL(cuDeviceGetUuid_v2, uuid, device);
    CU_DEVICE(d, device);
    memcpy(uuid, d->facts.uuid, 16);
    return DONE(SIM_OK);
}

CU_API cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    CU_CALL(cuDeviceTotalMem_v2, bytes, device);
    CU_DEVICE(d, device);
    *bytes = d->facts.total_memory;
    return DONE(SIM_OK);
}

static int attribute(const struct simgpu_device *d, int device, int number)
{
    switch (number) {
#define ATTRIBUTE(n, value) \
    case n:                 \
        return (int)(value);
#include "test/doubles/simgpu/cuda/attributes.def"
#undef ATTRIBUTE
    default: return 0;
    }
}

CU_API cuDeviceGetAttribute(int *value, int number, int device)
{
    CU_CALL(cuDeviceGetAttribute, value, number, device);
    CU_DEVICE(d, device);
    CU_NEEDS(value && number > 0, SIM_INVALID_VALUE);
    *value = attribute(&d->facts, device, number);
    return DONE(SIM_OK);
}

CU_API cuDeviceGetPCIBusId(char *id, int length, int device)
{
    CU_CALL(cuDeviceGetPCIBusId, id, length, device);
    CU_NEEDS(sim_device_at(device), SIM_INVALID_DEVICE);
    snprintf(id, (size_t)length, "0000:%02X:00.0", device + 1);
    return DONE(SIM_OK);
}

CU_API cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    CU_CALL(cuDeviceCanAccessPeer, can, device, peer);
    CU_NEEDS(sim_device_at(device) && sim_device_at(peer), SIM_INVALID_DEVICE);
    *can = device != peer;
    return DONE(SIM_OK);
}

CU_API cuCtxEnablePeerAccess(struct sim_context *peer, unsigned flags)
{
    CU_CALL(cuCtxEnablePeerAccess, peer, flags);
    CU_CONTEXT(context);
    CU_NEEDS(peer && peer->magic == SIM_MAGIC_CONTEXT, SIM_INVALID_CONTEXT);
    struct sim_device *d = sim_device_at(context->device);
    uint32_t bit = 1u << peer->device;
    bool is_new = !(d->peers & bit);
    d->peers |= bit;
    return DONE(is_new ? SIM_OK : SIM_PEER_ALREADY);
}

CU_API cuCtxDisablePeerAccess(struct sim_context *peer)
{
    CU_CALL(cuCtxDisablePeerAccess, peer);
    CU_CONTEXT(context);
    CU_NEEDS(peer && peer->magic == SIM_MAGIC_CONTEXT, SIM_INVALID_CONTEXT);
    struct sim_device *d = sim_device_at(context->device);
    uint32_t bit = 1u << peer->device;
    bool was_on = d->peers & bit;
    d->peers &= ~bit;
    return DONE(was_on ? SIM_OK : SIM_PEER_NOT_ENABLED);
}

/* --- primary contexts --- */
CU_API cuDevicePrimaryCtxRetain(struct sim_context **context, int device)
{
    CU_CALL(cuDevicePrimaryCtxRetain, context, device);
    CU_DEVICE(d, device);
    *context = sim_context_primary(device);
    d->primary.references++;
    return DONE(SIM_OK);
}

CU_API cuDevicePrimaryCtxRelease_v2(int device)
{
    CU_CALL(cuDevicePrimaryCtxRelease_v2, device);
    CU_DEVICE(d, device);
    CU_NEEDS(d->primary.references > 0, SIM_INVALID_CONTEXT);
    if (--d->primary.references == 0) sim_context_reset_primary(device);
    return DONE(SIM_OK);
}

CU_API cuDevicePrimaryCtxReset_v2(int device)
{
    CU_CALL(cuDevicePrimaryCtxReset_v2, device);
    CU_NEEDS(sim_device_at(device), SIM_INVALID_DEVICE);
    sim_context_reset_primary(device);
    return DONE(SIM_OK);
}

CU_API cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    CU_CALL(cuDevicePrimaryCtxGetState, device, flags, active);
    CU_DEVICE(d, device);
    *flags = d->primary.flags;
    *active = d->primary.is_made;
    return DONE(SIM_OK);
}

CU_API cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    CU_CALL(cuDevicePrimaryCtxSetFlags_v2, device, flags);
    CU_DEVICE(d, device);
    d->primary.flags = flags;
    return DONE(SIM_OK);
}

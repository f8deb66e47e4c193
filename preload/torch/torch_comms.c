// SPDX-License-Identifier: Apache-2.0
/*
 * torch_comms.c - records the arguments of a collective: its name, sizes, group and ranks
 *
 * Called by: ops.c when an op "record_param_comms" starts (inside a hook); torch_source.c at attach
 * Owns:      nothing; torch's object lives until the op ends
 * Locks:     none. Memory: none but the names' strings.
 * On fail:   no record; the op itself is there. There is never a record with a torch before 2.7, one newer than the
 *            newest known, or one with the older std::string.
 *
 * Torch keeps the object in a list of the thread and returns its address. It is read by plain loads once its vtable
 * pointer shows the expected class.
 */
#include <string.h>

#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

#define OP_NAME "record_param_comms"

/* torch::ParamCommsDebugInfo where std::string takes 32 bytes. A std::tuple lies in memory last member first. */
enum {
    AT_GROUP_DESCRIPTION = 8,
    AT_GROUP_NAME = 40,
    AT_RANK = 72,
    AT_GROUP_SIZE = 76,
    AT_NAME = 80,
    AT_IN = 112,
    AT_OUT = 120,
    AT_DTYPE = 128,
    AT_IN_SIZES = 136,
    AT_OUT_SIZES = 160,
    AT_RANK_START = 184,
    AT_RANK_STRIDE = 188,
    AT_RANKS = 192,
    AT_ASYNC = 216,
    AT_SEQUENCE = 224,
    AT_P2P = 232, /* from 2.12 on */
};
enum { FIRST_VERSION = 207, WITH_SEQUENCE = 212, TYPED = 214, OLD_KIND = 4, VTABLE_HEAD = 16, NAME_MAX_BYTES = 4096 };

KP_HOT_DATA _Atomic uint32_t kp_torch_comms_id = UINT32_MAX;
static uintptr_t kind; /* the argument for debug_info() */

void kp_torch_comms_attach(const struct kp_torch_api *api, const struct kp_torch_layout *layout)
{
    bool is_known =
        kp_torch_is_known(layout->version) && layout->version >= FIRST_VERSION && layout->string_bytes == 32;
    if (!is_known || !api->debug_info || !api->comms_vtable || (layout->version >= 213 && !api->comms_kind)) return;
    kind = api->comms_kind ? *api->comms_kind : OLD_KIND;
    kp_store_release(&kp_torch_comms_id, 0); /* pairs with: nothing; hooks are installed after attach */
}

void kp_torch_comms_forget(void)
{
    if (kp_load_relaxed(&kp_torch_comms_id) != UINT32_MAX) kp_store_relaxed(&kp_torch_comms_id, 0);
}

uint32_t kp_torch_comms_intern(struct kp_thread *t)
{
    uint32_t id = kp_name_intern(t, OP_NAME, sizeof OP_NAME - 1);
    if (!id) id = UINT32_MAX; /* never asked again, so the lost name counts once */
    kp_store_relaxed(&kp_torch_comms_id, id);
    return id;
}

static uint32_t text_id(struct kp_thread *t, const uint8_t *string)
{
    const char *text = kp_torch_pointer(string, 0);
    uint64_t len = kp_torch_word(string, 8);
    if (len > NAME_MAX_BYTES) len = NAME_MAX_BYTES;
    return len ? kp_name_intern(t, text, (uint32_t)len) : 0;
}

/* Copies the shown part of a std::vector<int64_t>: its first values and its last. Returns its full length. */
static uint32_t list_put(const uint8_t *vector, int64_t **to)
{
    const int64_t *begin = kp_torch_pointer(vector, 0), *end = kp_torch_pointer(vector, 8);
    size_t count = end > begin ? (size_t)(end - begin) : 0;
    if (count > UINT32_MAX) count = 0;
    uint32_t shown = kp_comms_shown((uint32_t)count);
    if (!shown) return 0;
    memcpy(*to, begin, (shown - 1) * sizeof *begin);
    (*to)[shown - 1] = begin[count - 1];
    *to += shown;
    return (uint32_t)count;
}

static int32_t int_at(const uint8_t *info, size_t offset)
{
    int32_t v;
    memcpy(&v, info + offset, sizeof v);
    return v;
}

/* Returns the record's flags. In a point-to-point message rec->rank is the peer's rank in the group. */
static uint8_t flags_fill(struct kp_rec_comms *rec, const uint8_t *info)
{
    const int64_t *ranks = kp_torch_pointer(info, AT_RANKS);
    uint8_t flags = kp_torch.layout.version >= TYPED ? KP_COMMS_TYPED : 0;
    rec->peer = 0;
    rec->sequence = -1;
    if (rec->rank >= 0 && (uint32_t)rec->rank < rec->count[KP_COMMS_LISTS - 1]) {
        rec->peer = ranks[rec->rank];
        flags |= KP_COMMS_PEER;
    }
    if (kp_torch.layout.version < WITH_SEQUENCE) return flags;
    rec->sequence = (int64_t)kp_torch_word(info, AT_SEQUENCE);
    return flags | KP_COMMS_SEQ | (info[AT_ASYNC] ? KP_COMMS_ASYNC : 0) | (info[AT_P2P] ? KP_COMMS_P2P : 0);
}

static void numbers_fill(struct kp_rec_comms *rec, const uint8_t *info)
{
    rec->in_elements = (int64_t)kp_torch_word(info, AT_IN);
    rec->out_elements = (int64_t)kp_torch_word(info, AT_OUT);
    rec->rank = int_at(info, AT_RANK);
    rec->group_size = int_at(info, AT_GROUP_SIZE);
    rec->rank_start = int_at(info, AT_RANK_START);
    rec->rank_stride = int_at(info, AT_RANK_STRIDE);
    rec->dtype = info[AT_DTYPE];
    memset(rec->pad, 0, sizeof rec->pad);
}

__attribute__((noinline)) void kp_torch_comms_put(struct kp_thread *t, uint64_t gate)
{
    const uint8_t *info = kp_torch.api.debug_info(kind);
    if (!info || kp_torch_word(info, 0) != (uintptr_t)kp_torch.api.comms_vtable + VTABLE_HEAD) return;
    uint32_t name = text_id(t, info + AT_NAME), group = text_id(t, info + AT_GROUP_NAME);
    uint32_t description = text_id(t, info + AT_GROUP_DESCRIPTION);
    struct kp_rec_comms *rec = kp_put_reserve(t, gate, KP_COMMS_MAX_BYTES, KP_KIND_COMMS);
    if (!rec) return;
    int64_t *to = (int64_t *)(rec + 1);
    numbers_fill(rec, info);
    rec->group_name = group;
    rec->group_description = description;
    rec->count[0] = list_put(info + AT_IN_SIZES, &to);
    rec->count[1] = list_put(info + AT_OUT_SIZES, &to);
    rec->count[2] = list_put(info + AT_RANKS, &to);
    uint32_t bytes = (uint32_t)((uint8_t *)to - (uint8_t *)rec);
    rec->head =
        (struct kp_rec){.kind = KP_KIND_COMMS, .flags = flags_fill(rec, info), .size = (uint16_t)bytes, .name = name};
    kp_put_commit(t, bytes);
}

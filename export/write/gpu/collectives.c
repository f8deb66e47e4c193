// SPDX-License-Identifier: Apache-2.0
/*
 * collectives.c - the arguments of collectives as torch.profiler writes them on record_param_comms, and Kineto on its
 * kernels
 *
 * Called by: event.c (an op of a collective), activity.c (every kernel of a window with collectives: hot)
 * Memory:    with GPUs, a copy of each collective's record in the scratch, and 16 bytes to find it.
 *
 * Lists are texts. The first 29 of more than 30 values are shown, then "...", then the last.
 */
#include "export/write/gpu/collectives.h"

#include <string.h>

#include "collector/base/kp_poison.h"

enum { IN_SIZES, OUT_SIZES, RANKS };

struct kept { /* an item of gpu->comms */
    uint64_t external;
    const struct kp_comms *comms; /* in the scratch, no longer than its lists */
};

_Static_assert(sizeof(struct kept) == KP_COMMS_KEPT_BYTES, "window_work.c makes the list");

static const char *const dtypes[] = {
    /* by c10::ScalarType */
    "Byte",
    "Char",
    "Short",
    "Int",
    "Long",
    "Half",
    "Float",
    "Double",
    "ComplexHalf",
    "ComplexFloat",
    "ComplexDouble",
    "Bool",
    "QInt8",
    "QUInt8",
    "QInt32",
    "BFloat16",
    "QUInt4x2",
    "QUInt2x4",
    "Bits1x8",
    "Bits2x4",
    "Bits4x2",
    "Bits8",
    "Bits16",
    "Float8_e5m2",
    "Float8_e4m3fn",
    "Float8_e5m2fnuz",
    "Float8_e4m3fnuz",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt1",
    "UInt2",
    "UInt3",
    "UInt4",
    "UInt5",
    "UInt6",
    "UInt7",
    "Int1",
    "Int2",
    "Int3",
    "Int4",
    "Int5",
    "Int6",
    "Int7",
    "Float8_e8m0fnu",
    "Float4_e2m1fn_x2",
    "BComplex32",
};

/* --- the number torch gives a collective --- */

/* std::hash of a std::string in libstdc++ on 64 bits: MurmurHash64A with another seed and a stronger end. */
static uint64_t text_hash(const char *text, size_t len)
{
    const uint64_t mul = 0xc6a4a7935bd1e995u;
    uint64_t hash = 0xc70f6907u ^ len * mul, word;
    for (; len >= 8; text += 8, len -= 8) {
        memcpy(&word, text, 8);
        word *= mul;
        hash = (hash ^ (word ^ word >> 47) * mul) * mul;
    }
    if (len) {
        word = 0;
        memcpy(&word, text, len);
        hash = (hash ^ word) * mul;
    }
    hash = (hash ^ hash >> 47) * mul;
    return hash ^ hash >> 47;
}

static uint64_t hash_join(uint64_t seed, uint64_t value)
{
    return seed ^ (value + 0x9e3779b9u + (seed << 6) + (seed >> 2));
}

/* c10::get_hash of the six: each member is the seed for what the members before it gave. */
static uint64_t comms_id(const struct kp_rec_comms *r, const char *group)
{
    uint64_t hash = text_hash(group, strlen(group));
    hash = hash_join((uint64_t)r->sequence, hash);
    hash = hash_join((r->head.flags & KP_COMMS_P2P) != 0, hash);
    hash = hash_join((uint64_t)(int64_t)r->rank_start, hash);
    hash = hash_join((uint64_t)(int64_t)r->rank_stride, hash);
    return hash_join((uint64_t)(int64_t)r->group_size, hash);
}

/* --- members --- */

static void text_write(struct kp_trace *t, const char *key, const char *text)
{
    if (*text) kp_json_fmt(&t->json, ",\"%s\":\"%s\"", key, text);
}

static void list_write(struct kp_trace *t, const char *key, const struct kp_comms *c, int which)
{
    const int64_t *value = c->values;
    uint32_t shown = kp_comms_shown(c->rec.count[which]);
    for (int i = 0; i < which; i++) value += kp_comms_shown(c->rec.count[i]);
    kp_json_fmt(&t->json, ",\"%s\":\"[", key);
    for (uint32_t i = 0; i < shown; i++) {
        const bool is_cut = i == KP_COMMS_SHOWN - 1 && c->rec.count[which] > KP_COMMS_SHOWN;
        kp_json_fmt(&t->json, "%s%s%ld", i ? ", " : "", is_cut ? "..., " : "", value[i]);
    }
    kp_json_lit(&t->json, "]\"");
}

/* Writes the peer, as destination or source by the op's name. */
static void peer_write(struct kp_trace *t, const struct kp_comms *c, const char *name)
{
    if (!(c->rec.head.flags & KP_COMMS_PEER)) return;
    if (!strcmp(name, "send")) kp_json_fmt(&t->json, ",\"Dst Rank\":%ld", c->rec.peer);
    else if (!strcmp(name, "recv")) kp_json_fmt(&t->json, ",\"Src Rank\":%ld", c->rec.peer);
}

/* Writes the arguments that the op and its kernels share. */
static void both_write(struct kp_trace *t, const struct kp_comms *c)
{
    const struct kp_rec_comms *r = &c->rec;
    const char *name = kp_reader_name(t->reader, r->head.name), *group = kp_reader_name(t->reader, r->group_name);
    kp_json_fmt(&t->json, ",\"Collective name\":\"%s\"", name);
    text_write(t, "dtype", r->dtype < sizeof dtypes / sizeof *dtypes ? dtypes[r->dtype] : "Undefined");
    kp_json_fmt(&t->json, ",\"In msg nelems\":%ld,\"Out msg nelems\":%ld,\"Group size\":%d", r->in_elements,
                r->out_elements, r->group_size);
    list_write(t, "In split size", c, IN_SIZES);
    list_write(t, "Out split size", c, OUT_SIZES);
    text_write(t, "Process Group Name", group);
    text_write(t, "Process Group Description", kp_reader_name(t->reader, r->group_description));
    list_write(t, "Process Group Ranks", c, RANKS);
    peer_write(t, c, name);
    if (!(r->head.flags & KP_COMMS_SEQ) || r->sequence < 0) return;
    kp_json_fmt(&t->json, ",\"Seq\":%ld,\"Comms Id\":%lu", r->sequence, comms_id(r, group));
}

void kp_comms_op_write(struct kp_trace *t, const struct kp_comms *c)
{
    const struct kp_rec_comms *r = &c->rec;
    const char *no = r->head.flags & KP_COMMS_TYPED ? "false" : "0",
               *yes = r->head.flags & KP_COMMS_TYPED ? "true" : "1";
    both_write(t, c);
    kp_json_fmt(&t->json, ",\"Rank\":%d", r->rank);
    if (r->rank_start >= 0) kp_json_fmt(&t->json, ",\"Global rank start\":%d", r->rank_start);
    if (r->rank_stride > 0) kp_json_fmt(&t->json, ",\"Global rank stride\":%d", r->rank_stride);
    if (!(r->head.flags & KP_COMMS_SEQ)) return;
    kp_json_fmt(&t->json, ",\"Is asynchronized op\":%s", r->head.flags & KP_COMMS_ASYNC ? yes : no);
}

/* --- for the kernels --- */

void kp_comms_keep(struct kp_gpu *g, const struct kp_comms *c, uint64_t external)
{
    size_t bytes = sizeof c->rec;
    for (int i = 0; i < KP_COMMS_LISTS; i++) bytes += kp_comms_shown(c->rec.count[i]) * sizeof *c->values;
    void *copy = kp_scratch_alloc(&g->scratch, bytes);
    struct kept *kept = copy ? kp_list_add(&g->comms) : NULL;
    if (!kept) {
        g->unlinked++;
        return;
    }
    memcpy(copy, c, bytes);
    *kept = (struct kept){external, copy};
}

void kp_comms_kernel_write(struct kp_trace *t, uint64_t external)
{
    const struct kp_list *all = &t->gpu->comms;
    uint32_t low = 0, high = all->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct kept *kept = kp_list_at(all, middle);
        if (kept->external == external) {
            both_write(t, kept->comms);
            return;
        }
        if (kept->external < external) low = middle + 1;
        else high = middle;
    }
}

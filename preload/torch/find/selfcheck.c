// SPDX-License-Identifier: Apache-2.0
/*
 * selfcheck.c - proves at attach that torch's fields lie where layout.c says
 *
 * Called by: torch_source.c, once, on the attaching thread. Takes well under a millisecond.
 * Memory:    RecordFunction objects on the stack, built and destroyed by torch's functions.
 * On fail:   a field found elsewhere is corrected; one that cannot be found is dropped (kp_torch_layout.dropped).
 * Leaves:    nothing. It runs no operator, adds no callback and starts no thread. RecordFunction is disabled for
 *            this thread during the check, so that no other observer sees the objects.
 *
 * Two methods do most of it. Memory is filled with two patterns before torch builds an object in it: bytes that differ
 * are torch's. Or a value is written into a field, and torch's exported accessor must return it. Torch's memory is
 * read by process_vm_readv, which returns EFAULT where a load would kill the host.
 */
#include <string.h>

#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

enum { ROOM = 2048, MARGIN = 256 };
#define CANARY "kprof self-check, a name too long for any small string buffer"
#define CANARY_SEQ 0x1122334455667788ll

struct subject {
    _Alignas(64) uint8_t at[ROOM];
};

static void build(const struct kp_torch_api *api, struct subject *s, uint8_t scope, uint8_t paint)
{
    memset(s->at, paint, sizeof s->at);
    api->make(s->at, scope);
}

static void start(const struct kp_torch_api *api, struct subject *s)
{
    kp_torch_before(api, s->at, CANARY, CANARY_SEQ);
}

static bool points_to_canary(const struct subject *s, size_t at)
{
    char text[sizeof CANARY];
    return kp_torch_peek(kp_torch_pointer(s->at, at), text, sizeof text - 1) &&
           memcmp(text, CANARY, sizeof text - 1) == 0;
}

/* Offset of a word with this value: `likely` or `expected` if it matches, else the only match, else 0. */
static uint16_t find_word(const struct subject *s, const struct kp_torch_layout *l, uint16_t likely, uint16_t expected,
                          uint64_t value)
{
    uint16_t found = 0;
    if (likely && kp_torch_word(s->at, likely) == value) return likely;
    if (kp_torch_word(s->at, expected) == value) return expected;
    for (uint16_t i = 8; i + 8 <= l->rf_bytes; i = (uint16_t)(i + 8)) {
        if (kp_torch_word(s->at, i) != value) continue;
        if (found) return 0;
        found = i;
    }
    return found;
}

static void check_scope_and_size(struct kp_torch_layout *l, const struct subject *a, const struct subject *b,
                                 const struct subject *c)
{
    uint16_t last = 0, found = 0;
    for (uint16_t i = 0; i < ROOM; i++)
        if (a->at[i] != 0xA5 || c->at[i] != 0x5A) last = i;
    l->rf_bytes = (uint16_t)((last + 8) & ~7);
    for (uint16_t i = 0; i < l->rf_bytes && !found; i++)
        if (a->at[i] == 3 && b->at[i] == 9) found = i;
    if (a->at[l->rf_scope] == 3 && b->at[l->rf_scope] == 9) found = l->rf_scope;
    l->rf_scope = found;
    if (!found) l->dropped |= KP_TORCH_NO_SCOPE;
}

/* Points the object at a schema made here; torch's accessors must then return the schema's names. */
static bool proves_schema(const struct kp_torch_api *api, const struct kp_torch_layout *l, struct subject *s)
{
    static const char name[] = "kprof::name", overload[] = "kprof_overload";
    uint8_t kept[64];
    size_t span = (size_t)l->rf_schema + 8 - l->rf_fn;
    _Alignas(16) uint8_t schema[512] = {0};
    const void *fields[2][2] = {{name, (void *)(sizeof name - 1)}, {overload, (void *)(sizeof overload - 1)}};
    if (span > sizeof kept) return false;
    memcpy(schema, fields[0], l->string_bytes == 32 ? 16 : 8);
    memcpy(schema + l->schema_overload, fields[1], l->string_bytes == 32 ? 16 : 8);
    memcpy(kept, s->at + l->rf_fn, span);
    const void *address = schema;
    memcpy(s->at + l->rf_fn, &address, sizeof address);
    s->at[l->rf_schema] = 1;
    bool right = api->name(s->at) == name && (!api->overload || api->overload(s->at) == overload);
    memcpy(s->at + l->rf_fn, kept, span);
    return right;
}

static void check_name(const struct kp_torch_api *api, struct kp_torch_layout *l, struct subject *s)
{
    uint16_t found = points_to_canary(s, l->rf_fn) ? l->rf_fn : 0;
    for (uint16_t i = 8; i + 8 <= l->rf_bytes && !found; i = (uint16_t)(i + 8))
        if (points_to_canary(s, i)) found = i;
    if (found) {
        l->rf_schema = (uint16_t)(l->rf_schema - l->rf_fn + found);
        l->rf_fn = found;
    }
    bool long_string = found && kp_torch_word(s->at, found + 8u) == sizeof CANARY - 1;
    if (!found || long_string != (l->string_bytes == 32) || !proves_schema(api, l, s)) l->dropped |= KP_TORCH_NO_SCHEMA;
}

/* Never pokes the name's fields: num_inputs reads the variant's index there, and a bad one may crash it. */
static bool proves_inputs(const struct kp_torch_api *api, const struct kp_torch_layout *l, struct subject *s,
                          uint16_t at)
{
    static const uint64_t values[] = {5, 0, 77};
    if (at + 16 > l->rf_fn && at < l->rf_schema + 8) return false;
    uint64_t kept = kp_torch_word(s->at, at + 8u);
    bool right = true;
    for (size_t i = 0; i < sizeof values / sizeof *values && right; i++) {
        memcpy(s->at + at + 8, &values[i], 8);
        right = api->num_inputs(s->at) == values[i];
    }
    memcpy(s->at + at + 8, &kept, 8);
    return right;
}

static void check_inputs(const struct kp_torch_api *api, struct kp_torch_layout *l, struct subject *s)
{
    uint16_t found = 0;
    if (api->num_inputs && !(l->dropped & KP_TORCH_NO_SCHEMA)) {
        if (proves_inputs(api, l, s, l->rf_inputs)) found = l->rf_inputs;
        for (uint16_t i = 104; i + 16 <= l->rf_bytes && !found; i = (uint16_t)(i + 8))
            if (proves_inputs(api, l, s, i)) found = i;
    }
    l->rf_inputs = found;
    if (!found) l->dropped |= KP_TORCH_NO_INPUTS;
}

/* torch sets is_async_ itself; the two words before it are fwd_thread_id_ and handle_, zero in a new object. */
static void check_async(const struct kp_torch_api *api, struct kp_torch_layout *l, struct subject *s,
                        const struct subject *other)
{
    uint8_t before[ROOM];
    uint16_t found = 0;
    if (api->set_async && api->is_async && !api->is_async(s->at)) {
        memcpy(before, s->at, sizeof before);
        api->set_async(s->at);
        for (uint16_t i = 0; i < l->rf_bytes && !found; i++)
            if (before[i] != s->at[i]) found = i;
        if (!api->is_async(s->at)) found = 0;
    }
    if (found != l->rf_async && found > 16) {
        l->rf_handle = (uint16_t)(found - 8);
        l->rf_fwd = (uint16_t)(found - 16);
    }
    l->rf_async = found;
    if (!found) l->dropped |= KP_TORCH_NO_ASYNC;
    bool zero = kp_torch_word(s->at, l->rf_fwd) == 0 && kp_torch_word(s->at, l->rf_handle) == 0 &&
                kp_torch_word(other->at, l->rf_fwd) == 0 && kp_torch_word(other->at, l->rf_handle) == 0;
    if (!zero || (!found && !kp_torch_is_known(l->version))) l->dropped |= KP_TORCH_NO_FWD;
}

static void check_record_function(const struct kp_torch_api *api, struct kp_torch_layout *l)
{
    struct subject a, b, c;
    build(api, &a, 3, 0xA5);
    build(api, &b, 9, 0xA5);
    build(api, &c, 3, 0x5A);
    check_scope_and_size(l, &a, &b, &c);
    /* A thread id is small, so other words may equal it. In every version it lies just before the scope. */
    const uint16_t likely = l->rf_scope >= 16 ? (uint16_t)(l->rf_scope - 8) : 0;
    uint16_t thread = find_word(&a, l, likely, l->rf_thread, api->thread_id());
    if (!thread) l->dropped |= KP_TORCH_NO_THREAD;
    l->rf_thread = thread;
    start(api, &a);
    l->rf_seq = find_word(&a, l, 0, l->rf_seq, (uint64_t)CANARY_SEQ);
    if (!l->rf_seq) l->dropped |= KP_TORCH_NO_SEQ;
    check_name(api, l, &a);
    check_inputs(api, l, &a);
    check_async(api, l, &a, &c);
    api->unmake(a.at);
    api->unmake(b.at);
    api->unmake(c.at);
}

void kp_torch_selfcheck(const struct kp_torch_api *api, struct kp_torch_layout *l)
{
    if (!api->make || !api->unmake || !(api->before_view || api->before_text) || !api->thread_id || !api->enable ||
        !api->is_enabled) {
        l->dropped = ~0u; /* no field can be proved: only names are recorded */
        return;
    }
    bool was = api->is_enabled();
    api->enable(false);
    check_record_function(api, l);
    api->enable(was);
    l->undefined_tensor = api->undefined_tensor;
    l->tensor_type = api->tensor_type ? *api->tensor_type() : NULL;
    kp_torch_selfcheck_values(api, l);
}

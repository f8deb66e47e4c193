// SPDX-License-Identifier: Apache-2.0
/*
 * opnames.c - finds the id of an op's name, and whether the op marks a step
 *
 * Called by: ops.c, inside a hook (hot)
 * Owns:      the table of step marks
 * Memory:    none. On fail: id 0 ("name lost", counted by the record room).
 *
 * A dispatcher op refers to a FunctionSchema, which lives as long as the op is registered. Its address is the key
 * of the per-thread cache. Autograd nodes, user ranges and the like carry their name as text.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_hash.h"
#include "preload/torch/torch.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { NAME_MAX_BYTES = 4096, MARKS = 1024 };

/* High half: bits of the name's hash, never 0; low half: its mark. Two names that share a cell overwrite each other. */
static _Atomic uint64_t marks[MARKS];

struct text {
    const char *at;
    size_t len;
};

static struct text text_of(const void *string)
{
    struct text t = {kp_torch_pointer(string, 0), 0};
    /* The older std::string keeps its length in front of the characters. */
    t.len = kp_torch.layout.string_bytes == 32 ? kp_torch_word(string, 8) : kp_torch_word(t.at - 24, 0);
    if (t.len > NAME_MAX_BYTES) t.len = NAME_MAX_BYTES;
    return t;
}

static uint32_t join_and_intern(struct kp_thread *t, struct text name, struct text overload)
{
    char both[512];
    if (!overload.len || name.len + 1 + overload.len > sizeof both)
        return kp_name_intern(t, name.at, (uint32_t)name.len);
    memcpy(both, name.at, name.len);
    both[name.len] = 0;
    memcpy(both + name.len + 1, overload.at, overload.len);
    return kp_name_intern(t, both, (uint32_t)(name.len + 1 + overload.len));
}

static KP_COLD uint32_t schema_intern(struct kp_thread *t, const void *schema)
{
    struct text name = text_of(schema);
    struct text overload = text_of((const uint8_t *)schema + kp_torch.layout.schema_overload);
    uint32_t id = join_and_intern(t, name, overload);
    if (id) kp_name_cache(t, schema, id);
    return id;
}

/* Asks torch's accessors, which is slow: for a layout that could not be proved. */
static KP_COLD uint32_t ask_and_intern(struct kp_thread *t, const uint8_t *rf)
{
    struct text name = {kp_torch.api.name(rf), 0}, overload = {NULL, 0};
    if (!name.at) return 0;
    name.len = strnlen(name.at, NAME_MAX_BYTES);
    if (kp_torch.api.overload) overload.at = kp_torch.api.overload(rf);
    if (overload.at) overload.len = strnlen(overload.at, NAME_MAX_BYTES);
    return join_and_intern(t, name, overload);
}

uint32_t kp_torch_name_find(struct kp_thread *t, const uint8_t *rf)
{
    const struct kp_torch_layout *l = &kp_torch.layout;
    if (__builtin_expect(l->dropped & KP_TORCH_NO_SCHEMA, 0)) return ask_and_intern(t, rf);
    if (rf[l->rf_schema] == 1) return schema_intern(t, kp_torch_pointer(rf, l->rf_fn));
    struct text name = text_of(rf + l->rf_fn);
    return kp_name_intern(t, name.at, (uint32_t)name.len);
}

uint32_t kp_torch_step_mark(const uint8_t *rf, bool user_scope)
{
    const char *name = kp_torch.api.name(rf);
    if (!name) return 0;
    uint64_t hash = kp_hash64(name, strnlen(name, NAME_MAX_BYTES)) + user_scope;
    _Atomic uint64_t *cell = &marks[hash % MARKS];
    uint64_t tag = (hash | 1ull << 32) >> 32 << 32, seen = kp_load_relaxed(cell);
    if (seen >> 32 << 32 == tag) return (uint32_t)seen;
    int kept = errno; /* a regular expression may change it by its mallocs */
    uint32_t mark = kp_steps_classify(name, user_scope);
    errno = kept;
    kp_store_relaxed(cell, tag | mark);
    return mark;
}

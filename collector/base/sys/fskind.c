// SPDX-License-Identifier: Apache-2.0
/*
 * fskind.c - finds a file system in fskind.def, and says what is left free in one
 *
 * Called by: kprof doctor; the recorder, before it takes room
 * Memory:    none
 * Safe in:   everywhere: pure
 */
#include "collector/base/sys/kp_fskind.h"

#include <stddef.h>

#include "collector/base/kp_poison.h"

#define KP_FSKIND_KEPT (UINT64_C(1) << 30)        /* left free for the program: this, */
#define KP_FSKIND_KEPT_PART 20u                   /* or such a part of the volume where that is more, */
#define KP_FSKIND_KEPT_SHARE 2u                   /* but no more than such a part of what is free at first */
#define KP_FSKIND_MEMORY_FREE (UINT64_C(1) << 30) /* records lie in a tmpfs where so much of it is free */
#define KP_FSKIND_TMPFS 0x01021994u

static const struct kp_fskind rows[] = {
#define KP_FSKIND(row_magic, row_name, row_place, row_copies) \
    {.magic = (row_magic), .name = (row_name), .place = KP_FSKIND_##row_place, .copies = (row_copies)},
#include "collector/base/sys/fskind.def"
#undef KP_FSKIND
};
static const struct kp_fskind other = {.name = "other", .place = KP_FSKIND_OTHER, .copies = true};

const struct kp_fskind *kp_fskind_of(uint64_t type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].magic == (uint32_t)type) return &rows[i];
    return &other;
}

bool kp_fskind_may_stand(const struct kp_fskind *kind)
{
    return kind->place == KP_FSKIND_SHARED || kind->place == KP_FSKIND_BEHIND;
}

const char *kp_fskind_what(const struct kp_fskind *kind)
{
    switch (kind->place) {
    case KP_FSKIND_DISK: return "a disk of this machine";
    case KP_FSKIND_MEMORY: return "memory of this machine";
    case KP_FSKIND_LAYER: return "a layer above another file system";
    case KP_FSKIND_SHARED: return "shared by machines";
    case KP_FSKIND_BEHIND: return "behind another process or host";
    default: return "a file system that kprof does not know";
    }
}

uint64_t kp_fskind_left_free(uint64_t bytes, uint64_t spare)
{
    const uint64_t part = bytes / KP_FSKIND_KEPT_PART, most = spare / KP_FSKIND_KEPT_SHARE;
    const uint64_t kept = part > KP_FSKIND_KEPT ? part : KP_FSKIND_KEPT;
    return kept < most ? kept : most;
}

bool kp_fskind_holds_records(uint64_t type, uint64_t spare)
{
    return (uint32_t)type == KP_FSKIND_TMPFS && spare >= KP_FSKIND_MEMORY_FREE;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * got.h - the words through which a module calls into others
 */
#ifndef KP_GOT_H
#define KP_GOT_H

#include "preload/hook/image.h"

struct kp_tap {
    const char *symbol;
    void *real; /* where the calls go without us; a slot is only taken when it leads there */
    void *tap;
};

enum { KP_GOT_SLOTS_MAX = 12 };
struct kp_slot {
    uintptr_t at;
    uint32_t tap;  /* index in the list of taps */
    bool is_relro;
};

/* Finds the JUMP_SLOT and GLOB_DAT words of `image` that belong to a tapped symbol it imports. Returns how many
 * there are; at most KP_GOT_SLOTS_MAX are put into `slots`. */
uint32_t kp_got_find(const struct kp_image *image, const struct kp_tap *taps, uint32_t tap_count,
                     struct kp_slot slots[KP_GOT_SLOTS_MAX]);
/* Whether the word holds `real`, or still leads to the module's own lazy binding stub. */
bool kp_got_is_takable(const struct kp_image *image, const struct kp_slot *slot, const struct kp_tap *tap);
/* Stores `value` when the word still holds `expected`, lifting RELRO for as long as that takes.
 * 0, -EAGAIN (it holds something else by now) or -errno of mprotect. */
int kp_got_write(const struct kp_slot *slot, uintptr_t expected, uintptr_t value);
uintptr_t kp_got_read(uintptr_t at);

#endif

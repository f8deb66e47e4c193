// SPDX-License-Identifier: Apache-2.0
/*
 * got.h - finds and writes the PLT/GOT slots through which a module calls others
 */
#pragma once

#include "preload/hook/image.h"
#include "preload/hook/wanted.h"

struct kp_slot {
    uintptr_t at;
    uint32_t name; /* number of the name in wanted.h */
    bool is_relro;
    bool is_pointer; /* a pointer to the function in the module's data, not a PLT/GOT slot */
};

typedef void (*kp_got_fn)(void *arg, const struct kp_slot *slot);

/*
 * Calls `each` for the slots in `image` of wanted names with a number from `first` on: JUMP_SLOT, GLOB_DAT, and
 * pointers to the function in its data. Returns how many. One thread at a time (it has a scratch list).
 */
uint32_t kp_got_find(const struct kp_image *image, uint32_t first, kp_got_fn each, void *arg);
/* Stores `value` if the slot still holds `expected`; makes a RELRO page writable during the store.
 * 0, -EAGAIN (the slot holds another value) or -errno of mprotect. */
int kp_got_write(const struct kp_slot *slot, uintptr_t expected, uintptr_t value);
uintptr_t kp_got_read(uintptr_t at);
/* Is a relocation of this type JUMP_SLOT or GLOB_DAT? */
bool kp_got_is_word(uint32_t type);

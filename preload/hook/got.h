// SPDX-License-Identifier: Apache-2.0
/*
 * got.h - the words through which a module calls into others
 */
#ifndef KP_GOT_H
#define KP_GOT_H

#include "preload/hook/image.h"
#include "preload/hook/wanted.h"

struct kp_slot {
    uintptr_t at;
    uint32_t name; /* number of the name in wanted.h */
    bool is_relro;
    bool is_pointer; /* a function's address in the module's data, not a word that calls go through */
};

typedef void (*kp_got_fn)(void *arg, const struct kp_slot *slot);

/*
 * Hands `each` the words of `image` that belong to a wanted name with a number from `first` on: JUMP_SLOT and GLOB_DAT
 * words, and pointers to the function in its data. Returns how many. One thread at a time (it has a scratch list).
 */
uint32_t kp_got_find(const struct kp_image *image, uint32_t first, kp_got_fn each, void *arg);
/* Stores `value` when the word still holds `expected`, lifting RELRO for as long as that takes.
 * 0, -EAGAIN (it holds something else by now) or -errno of mprotect. */
int kp_got_write(const struct kp_slot *slot, uintptr_t expected, uintptr_t value);
uintptr_t kp_got_read(uintptr_t at);
/* Whether a relocation of this type makes a word that calls go through: JUMP_SLOT or GLOB_DAT. */
bool kp_got_is_word(uint32_t type);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * slot_rules.h - redirects slots by a rule instead of by name (hook.h: struct kp_word_taker)
 */
#pragma once

#include "preload/hook/hook.h"
#include "preload/hook/image.h"

/* One redirected slot of a module. While it holds the stored value, the module was not unloaded and loaded again. */
struct kp_words_mark {
    uintptr_t at, holds; /* at 0: no slot was redirected */
};

int kp_words_set_taker(const struct kp_word_taker *taker); /* 0 or -EEXIST */
bool kp_words_have_taker(void);
/* Shows the taker the slots of a module that is relocated and held mapped. One thread at a time. */
void kp_words_take(const struct kp_image *image, struct kp_words_mark *mark);
bool kp_words_are_marked(const struct kp_words_mark *mark);
/* The function that a slot with this value would call without the taker. */
uintptr_t kp_words_real(uintptr_t holds);

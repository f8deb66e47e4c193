// SPDX-License-Identifier: Apache-2.0
/*
 * words.h - words through which modules call, taken by a rule (hook.h: struct kp_word_taker)
 */
#ifndef KP_WORDS_H
#define KP_WORDS_H

#include "preload/hook/hook.h"
#include "preload/hook/image.h"

/* One taken word of a module: as long as it holds what was put there, the module is the one that was looked at. */
struct kp_words_mark {
    uintptr_t at, holds; /* at 0: none was taken */
};

int kp_words_set_taker(const struct kp_word_taker *taker); /* 0 or -EEXIST */
bool kp_words_have_taker(void);
/* Shows the taker the words of a module that is relocated and cannot go away. One thread at a time. */
void kp_words_take(const struct kp_image *image, struct kp_words_mark *mark);
bool kp_words_are_marked(const struct kp_words_mark *mark);
/* Where a word's calls go but for the taker. */
uintptr_t kp_words_real(uintptr_t holds);

#endif

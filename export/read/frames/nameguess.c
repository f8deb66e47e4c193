// SPDX-License-Identifier: Apache-2.0
/* nameguess.c - of the names in a trace, the one that a name which is not there may mean */
#include "export/read/frames/nameguess.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "collector/base/kp_config.h"
#include "export/read/frames/framename.h"

/* Ranks. Between these two lie names that differ by some letters: RANK_SAME and how many. */
enum { RANK_SAME = 1, LETTERS_MOST = 3, RANK_PART = 5, RANK_NONE = 6, PART_LEAST = 3 };

/* "conv2d" of "aten::conv2d", and "up" of "blocks.1.up". */
static const char *last_word(const char *name)
{
    const char *const colon = strrchr(name, ':'), *const dot = strrchr(name, '.');
    const char *const at = !colon || (dot && dot > colon) ? dot : colon;
    return at && at[1] ? at + 1 : name;
}

static bool has_part(const char *name, const char *part)
{
    const size_t bytes = strlen(part);
    for (; bytes >= PART_LEAST && *name; name++)
        if (strncasecmp(name, part, bytes) == 0) return true;
    return false;
}

static unsigned rank_of(const char *word, const char *name)
{
    const char *const last = last_word(name);
    unsigned letters = LETTERS_MOST + 1;
    if (strcasecmp(word, name) == 0 || strcasecmp(last_word(word), last) == 0) return RANK_SAME;
    (void)kp_config_is_nearer(word, name, &letters);
    (void)kp_config_is_nearer(word, last, &letters);
    if (letters <= LETTERS_MOST) return RANK_SAME + letters;
    return has_part(name, word) ? RANK_PART : RANK_NONE;
}

/* The shorter of two that are as near is meant. `part`: of the name, what the word is compared with. */
static void name_consider(struct kp_nameguess *guess, const char *name, const char *part)
{
    const unsigned rank = rank_of(guess->word, part);
    const size_t bytes = strlen(name);
    if (bytes >= sizeof guess->best || rank > guess->rank || rank == RANK_NONE) return;
    if (rank == guess->rank && bytes >= strlen(guess->best)) return;
    snprintf(guess->best, sizeof guess->best, "%s", name);
    guess->rank = rank;
}

void kp_nameguess_begin(struct kp_nameguess *guess, const char *word)
{
    *guess = (struct kp_nameguess){.word = strpbrk(word, "*?[") ? "" : word, .rank = RANK_NONE};
}

/* Whether the name is seen for the first time. */
static bool is_new(struct kp_nameguess *guess, uint32_t name)
{
    guess->seen = kp_kineto_grow_zeros(guess->seen, &guess->capacity, (size_t)name + 1, 1);
    if (guess->seen[name]) return false;
    guess->seen[name] = 1;
    return true;
}

void kp_nameguess_see(struct kp_nameguess *guess, const struct kp_kineto *trace, uint32_t name)
{
    if (!*guess->word || !is_new(guess, name)) return;
    const char *const text = kp_kineto_text(trace, name);
    const uint32_t module = kp_strings_module(trace->strings, name);
    const char *const part = kp_framename_part(text);
    name_consider(guess, part && !guess->is_whole ? part : text, part ? part : text);
    if (module && !guess->is_whole) name_consider(guess, kp_kineto_text(trace, module), kp_kineto_text(trace, module));
}

const char *kp_nameguess_text(const struct kp_nameguess *guess, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s%s%s", *guess->best ? " (did you mean " : "", guess->best, *guess->best ? "?)" : "");
    return out;
}

void kp_nameguess_fini(struct kp_nameguess *guess)
{
    free(guess->seen);
    guess->seen = NULL;
    guess->capacity = 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * swap.c - redirects one module's calls of one name for a moment
 *
 * Called by: sources, in attach(): one call at a time (begin.c)
 * Owns:      nothing; the caller owns the swap
 * Locks:     the loader's list lock, while dl_iterate_phdr calls back
 * Memory:    none; each call searches the slots again
 * On fail:   nothing swapped
 * Safe in:   signal handlers no; after fork no
 *
 * Unlike a tap, a swap ends before the next scan. A slot that was not bound gets the function's address when the swap
 * ends, as the loader would have stored at the next call.
 */
#include <link.h>
#include <string.h>

#include "preload/hook/got.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

struct swap_pass {
    struct kp_hook_swap *swap;
    void (*each)(struct swap_pass *pass, const struct kp_slot *slot);
    const struct kp_image *image;
    uint32_t words;
};

static bool is_inside(const struct kp_image *image, uintptr_t at) { return at >= image->lo && at < image->hi; }

/* A bound slot holds the function's address; a slot not bound yet holds an address in the module itself. */
static void see_real(struct swap_pass *pass, const struct kp_slot *slot)
{
    const uintptr_t holds = kp_got_read(slot->at);
    if (!is_inside(pass->image, holds)) pass->swap->real = (void *)holds;
}

static void put_ours(struct swap_pass *pass, const struct kp_slot *slot)
{
    const uintptr_t holds = kp_got_read(slot->at), ours = (uintptr_t)pass->swap->ours;
    if (holds != (uintptr_t)pass->swap->real && !is_inside(pass->image, holds)) return;
    if (kp_got_write(slot, holds, ours) == 0) pass->words++;
}

static void put_back(struct swap_pass *pass, const struct kp_slot *slot)
{
    const uintptr_t ours = (uintptr_t)pass->swap->ours;
    if (kp_got_read(slot->at) == ours && kp_got_write(slot, ours, (uintptr_t)pass->swap->real) == 0) pass->words++;
}

static void search_table(struct swap_pass *pass, const ElfW(Rela) * table, size_t count)
{
    const struct kp_image *image = pass->image;
    for (size_t i = 0; i < count; i++) {
        const uint32_t symbol = (uint32_t)ELF64_R_SYM(table[i].r_info);
        const uintptr_t at = image->base + table[i].r_offset;
        if (!symbol || !kp_got_is_word((uint32_t)ELF64_R_TYPE(table[i].r_info))) continue;
        if (!is_inside(image, at) || at % sizeof at || image->symbols[symbol].st_shndx != SHN_UNDEF) continue;
        if (strcmp(kp_image_name(image, symbol), pass->swap->symbol) != 0) continue;
        pass->each(pass, &(struct kp_slot){.at = at, .is_relro = kp_image_in_relro(image, at)});
    }
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct swap_pass *pass = arg;
    struct kp_image image;
    (void)size;
    if (!kp_image_read(&image, info) || !is_inside(&image, (uintptr_t)pass->swap->inside)) return 0;
    pass->image = &image;
    search_table(pass, image.plt, image.plt_count);
    search_table(pass, image.rela, image.rela_count);
    return 1;
}

static uint32_t words_each(struct kp_hook_swap *swap, void (*each)(struct swap_pass *pass, const struct kp_slot *slot))
{
    struct swap_pass pass = {.swap = swap, .each = each};
    dl_iterate_phdr(look_at_module, &pass);
    return pass.words;
}

bool kp_hook_swap_begin(struct kp_hook_swap *swap)
{
    uintptr_t module;
    swap->real = NULL;
    words_each(swap, see_real);
    if (!swap->real) swap->real = kp_hook_first(swap->symbol, &module);
    if (!swap->real) return false;
    return words_each(swap, put_ours) != 0;
}

void kp_hook_swap_end(struct kp_hook_swap *swap) { words_each(swap, put_back); }

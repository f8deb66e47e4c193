// SPDX-License-Identifier: Apache-2.0
/*
 * symbol_value.c - has the loader bind the slots of later modules to taps, by the symbol table of the functions' module
 *
 * Called by: malloc_source.c, in attach()
 * Owns:      nothing; the table is the module's, private to this process
 * Locks:     the loader's list lock, while dl_iterate_phdr calls back
 * Memory:    none
 * On fail:   the symbol is unchanged: a scan taps later modules, after their constructors
 * Safe in:   signal handlers no; after fork no
 *
 * A symbol's value is its address less the module's load address. The loader adds the two when it binds a slot, so a
 * value that leads to the tap binds every later slot to the tap, before any constructor runs. dlsym returns the tap,
 * too. See decisions/055.
 */
#include <link.h>

#include "collector/base/kp_log.h"
#include "preload/hook/got.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

struct answers {
    const struct kp_tap *taps;
    uint32_t tap_count, answered;
};

static bool is_inside(const struct kp_image *image, uintptr_t at) { return at >= image->lo && at < image->hi; }

/* The module's own calls stay as they are, so its slots that are not bound yet get the real function now. */
static void bind_own(const struct kp_image *image, uint32_t symbol, uintptr_t real)
{
    for (size_t i = 0; i < image->plt_count; i++) {
        const uintptr_t at = image->base + image->plt[i].r_offset;
        const uintptr_t holds = kp_got_read(at);
        if (ELF64_R_SYM(image->plt[i].r_info) != symbol || !is_inside(image, holds)) continue;
        (void)kp_got_write(&(struct kp_slot){.at = at, .is_relro = kp_image_in_relro(image, at)}, holds, real);
    }
}

static bool answer(const struct kp_image *image, const struct dl_phdr_info *info, const struct kp_tap *tap)
{
    const uint32_t index = kp_image_hashed(image, tap->symbol);
    const ElfW(Sym) *s = &image->symbols[index];
    const uintptr_t at = (uintptr_t)&s->st_value, real = (uintptr_t)tap->real;
    if (!index || s->st_shndx == SHN_UNDEF || image->base + s->st_value != real || !kp_image_is_data(info, at))
        return false;
    if (!kp_image_is_libc(image)) bind_own(image, index, real);
    const struct kp_slot slot = {.at = at, .is_relro = true}; /* as read-only as RELRO */
    const int err = kp_got_write(&slot, s->st_value, (uintptr_t)tap->tap - image->base);
    if (err) KP_LOG_ONCE(1, "calls of constructors in later libraries are not recorded (%s)", kp_log_error_text(err));
    return !err;
}

static int look_for_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct answers *a = arg;
    struct kp_image image;
    (void)size;
    if (!kp_image_read(&image, info) || !is_inside(&image, (uintptr_t)a->taps[0].real)) return 0;
    for (uint32_t i = 0; i < a->tap_count; i++) a->answered += answer(&image, info, &a->taps[i]);
    return 1;
}

uint32_t kp_hook_answer(const struct kp_tap *taps, uint32_t tap_count)
{
    struct answers a = {.taps = taps, .tap_count = tap_count};
    if (tap_count) dl_iterate_phdr(look_for_module, &a);
    return a.answered;
}

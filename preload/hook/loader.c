// SPDX-License-Identifier: Apache-2.0
/*
 * loader.c - finds functions by name without dlsym, and ld.so's private pointers to the allocator
 *
 * Called by: sources, in attach()
 * Owns:      nothing
 * Locks:     the loader's list lock, while dl_iterate_phdr calls back
 * Memory:    none
 * On fail:   NULL, or nothing tapped
 * Safe in:   signal handlers no; after fork no
 *
 * glibc's ld.so keeps pointers to malloc, calloc, realloc and free in its RELRO pages. No relocation and no symbol
 * tells where. But in those pages, an 8-byte value that equals the address of malloc is such a pointer.
 */
#include <link.h>
#include <sys/auxv.h>

#include "collector/base/kp_log.h"
#include "preload/hook/got.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

struct first {
    const char *symbol;
    uintptr_t address, module;
};

static bool is_inside(const struct kp_image *image, uintptr_t at) { return at >= image->lo && at < image->hi; }

static int look_for_first(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct first *first = arg;
    struct kp_image image;
    (void)size;
    if (!kp_image_read(&image, info) || is_inside(&image, (uintptr_t)&kp_hook_first) ||
        is_inside(&image, getauxval(AT_BASE)))
        return 0;
    const uint32_t index = kp_image_hashed(&image, first->symbol);
    const ElfW(Sym) *s = &image.symbols[index];
    if (!index || s->st_shndx == SHN_UNDEF) return 0;
    if (ELF64_ST_TYPE(s->st_info) == STT_FUNC) first->address = image.base + s->st_value;
    first->module = image.lo;
    return 1;
}

void *kp_hook_first(const char *symbol, uintptr_t *module)
{
    struct first first = {.symbol = symbol};
    dl_iterate_phdr(look_for_first, &first);
    *module = first.module;
    return (void *)first.address;
}

uint32_t kp_hook_rows_find(void *library, const struct kp_tap_row *rows, size_t count, struct kp_tap *taps)
{
    uint32_t n = 0;
    uintptr_t module;
    for (size_t i = 0; i < count; i++) {
        void *const real = library ? dlsym(library, rows[i].symbol) : kp_hook_first(rows[i].symbol, &module);
        if (!real) continue;
        *rows[i].real = real;
        taps[n++] = (struct kp_tap){rows[i].symbol, real, rows[i].tap};
    }
    if (library) dlerror(); /* clears our failed look-up, so that the host does not read it */
    return n;
}

struct loader_words {
    const struct kp_tap *taps;
    uint32_t tap_count, tapped;
};

static void tap_word(struct loader_words *w, const struct kp_slot *slot)
{
    const uintptr_t holds = kp_got_read(slot->at);
    for (uint32_t i = 0; i < w->tap_count; i++) {
        if (holds != (uintptr_t)w->taps[i].real) continue;
        const int err = kp_got_write(slot, holds, (uintptr_t)w->taps[i].tap);
        if (err)
            KP_LOG_ONCE(0, "the loader's own calls of %s are not recorded (%s)", w->taps[i].symbol,
                        kp_log_error_text(err));
        else w->tapped++;
    }
}

static int look_at_loader(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct kp_image image;
    (void)size;
    if (!info->dlpi_addr || info->dlpi_addr != getauxval(AT_BASE) || !kp_image_read(&image, info)) return 0;
    for (uintptr_t at = image.relro_lo; at < image.relro_hi; at += sizeof at) {
        if (!is_inside(&image, at)) continue;
        tap_word(arg, &(struct kp_slot){.at = at, .is_relro = true, .is_pointer = true});
    }
    return 1;
}

uint32_t kp_hook_tap_loader(const struct kp_tap *taps, uint32_t tap_count)
{
    struct loader_words w = {.taps = taps, .tap_count = tap_count};
    dl_iterate_phdr(look_at_loader, &w);
    return w.tapped;
}

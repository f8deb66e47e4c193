// SPDX-License-Identifier: Apache-2.0
/*
 * early.c - has the loader call us before the constructors of each module that it loads later
 *
 * Called by: sources, in attach() (kp_hook_early); the loader's thread, in a module's _init (started)
 * Owns:      our own symbol __gmon_start__
 * Locks:     the loader's list lock, while dl_iterate_phdr calls back; _init runs with its load lock held
 * Memory:    none
 * On fail:   the symbol is unchanged: a scan taps later modules, after their constructors
 * Safe in:   signal handlers no; after fork yes (the gate is shut in a child)
 *
 * The code that linkers put into every _init (crti.o) calls __gmon_start__ if the loader finds one. _init runs before
 * the module's constructors, and after all modules of that dlopen were relocated. Our library exports the symbol as the
 * absolute address 0, which every loader takes for none: nothing is called. kp_hook_early gives it our function.
 * Modules that were relocated before keep their 0. A program with a __gmon_start__ of its own (cc -pg) keeps that. See
 * decisions/100.
 */
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/hook/got.h"
#include "preload/hook/hook.h"
#include "preload/hook/taps.h"
#include "collector/base/kp_poison.h"

enum { SECTION = 1 }; /* any that is neither undefined nor absolute: values count from the load address */

/*
 * Not by the linker's --defsym, which zig's linker lacks (scripts/wheel). On x86-64 it is protected, so that our own
 * _init needs no relocation: musl's loader takes a value of 0 for no symbol, and would refuse the library. On AArch64
 * linkers would make an address relative to the library of it.
 */
#if defined(__x86_64__)
#define PROTECTED "\t.protected __gmon_start__\n"
#else
#define PROTECTED ""
#endif
__asm__(".globl __gmon_start__\n" PROTECTED "\t.set __gmon_start__, 0");

static void started(void) { kp_hook_before_init(__builtin_return_address(0)); }

static bool is_ours(const struct kp_image *image)
{
    const uintptr_t at = (uintptr_t)started;
    return at >= image->lo && at < image->hi;
}

/* The section first: with a value of 0 the symbol still counts as none. */
static int give(ElfW(Sym) * s, uintptr_t value)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)s & ~(page_bytes - 1);
    const size_t bytes = (uintptr_t)(s + 1) - at;
    const int err = kp_io_mprotect((void *)at, bytes, PROT_READ | PROT_WRITE);
    if (err) return err;
    kp_store_release((_Atomic ElfW(Section) *)&s->st_shndx, SECTION);
    kp_store_release((_Atomic uintptr_t *)&s->st_value, value);
    (void)kp_io_mprotect((void *)at, bytes, PROT_READ);
    return 0;
}

static int look_for_symbol(struct dl_phdr_info *info, size_t size, void *unused)
{
    struct kp_image image;
    (void)size;
    (void)unused;
    if (!kp_image_read(&image, info) || !is_ours(&image)) return 0;
    const uint32_t index = kp_image_hashed(&image, "__gmon_start__");
    ElfW(Sym) *s = (ElfW(Sym) *)(uintptr_t)&image.symbols[index];
    if (!index || s->st_value || !kp_image_is_data(info, (uintptr_t)s)) return 1;
    const int err = give(s, (uintptr_t)started - image.base);
    if (err) KP_LOG_ONCE(1, "calls of constructors in later libraries are not recorded (%s)", kp_log_error_text(err));
    return 1;
}

void kp_hook_early(void) { dl_iterate_phdr(look_for_symbol, NULL); }

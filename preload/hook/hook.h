// SPDX-License-Identifier: Apache-2.0
/*
 * hook.h - notices libraries that the host loads later, and redirects its calls to taps
 *
 * How to tap a function of some library:
 *
 *     static int (*real_launch)(void *, int);
 *     static int tap_launch(void *f, int n)              a plain C function, same type as the real one
 *     {
 *         ... guard.h ...
 *         return real_launch(f, n);
 *     }
 *     static struct kp_tap taps[] = {{"cudaLaunch", NULL, (void *)(uintptr_t)tap_launch}};
 *
 *     in attach():  find the mapped library (dlopen with RTLD_NOLOAD), then look up each name by dlsym:
 *         real_launch = taps[0].real = dlsym(library, "cudaLaunch");      leave out names that it lacks
 *         kp_hook_add_taps(taps, 1);
 *
 * From then on calls of that name go to the tap if the name resolves to `real` in the calling module. That holds for
 * modules mapped now and later. A call may use a PLT slot (bound or not), a GOT slot, or a data pointer. Not seen are
 * calls through a pointer from dlsym, and calls inside the library itself (but see kp_hook_add_taps_own). Calls of this
 * library are not tapped either, so it may call the real function by name. Two libraries with the same names (two
 * libcudart) take an entry and a tap each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_tap {
    const char *symbol; /* the strings and the array must not move or change while the set is installed */
    void *real;         /* the real function; a slot is redirected only if it leads there */
    void *tap;
};

/* A tap of a function that is looked up by its name. */
struct kp_tap_row {
    const char *symbol;
    void **real; /* gets the real function, for the tap to call */
    void *tap;
};

#define KP_TAP_ROW(symbol, name)                                             \
    {                                                                        \
        symbol, (void **)(void *)&real_##name, (void *)(uintptr_t)tap_##name \
    }
/* Looks the rows' functions up in a library, NULL: as kp_hook_first, and writes a tap for each that is there, in order.
 * Returns how many. */
uint32_t kp_hook_rows_find(void *library, const struct kp_tap_row *rows, size_t count, struct kp_tap *taps);

/*
 * Adds a set of taps, for modules mapped now and later. Takes some milliseconds: call it from attach() or a helper
 * thread, not in a hook and not in set_mode. Returns 0 or:
 *   -EEXIST  one of these functions is already tapped: nothing was added
 *   -ENOSPC  too many names or taps: nothing was added
 *   -EBUSY   another thread is in a long scan, or this process is a forked child: nothing was added
 *   -ENOMEM  added, but the list of modules is not complete
 */
int kp_hook_add_taps(const struct kp_tap *taps, uint32_t tap_count);
/* As kp_hook_add_taps; also redirects the calls of the library that defines the functions, where they use slots. */
int kp_hook_add_taps_own(const struct kp_tap *taps, uint32_t tap_count);
/*
 * As kp_hook_add_taps, for functions that several modules may define and of which all use the first (malloc, operator
 * new). Also redirects calls of a module that defines the name but calls another module's function. The calls of the
 * library that defines `real` stay as they are, unless it is libc.
 */
int kp_hook_add_taps_common(const struct kp_tap *taps, uint32_t tap_count);
/*
 * Redirects ld.so's private pointers to these functions (glibc's ld.so has some to malloc, calloc, realloc and free).
 * Leaves out taps for which it finds no pointer, and returns how many it redirected. Rules as for kp_hook_add_taps,
 * before or after it.
 */
uint32_t kp_hook_tap_loader(const struct kp_tap *taps, uint32_t tap_count);
/*
 * Has the loader bind slots of modules that it loads later to these taps, so that calls of their constructors are seen.
 * All the functions are of one module, and dlsym returns their taps from then on. Call it after
 * kp_hook_add_taps_common. Returns how many taps it did this for.
 */
uint32_t kp_hook_answer(const struct kp_tap *taps, uint32_t tap_count);
/*
 * From now on the slots of a module that is loaded later are redirected before its constructors run (early.c). Needs
 * this library in the global scope, as by LD_PRELOAD. Call it after kp_hook_start; more calls do nothing.
 */
void kp_hook_early(void);
/*
 * Returns the first function of that name in the loader's order: the one that modules in the global scope call. dlsym
 * may instead return a PLT entry of a program that takes the function's address. *module: a number for the module that
 * defines it. NULL: no module does, or it is an IFUNC. Takes the loader's list lock.
 */
void *kp_hook_first(const char *symbol, uintptr_t *module);

/*
 * Between begin and end, one module's calls of a name go to `ours`, which calls `real`, on all threads. `inside` is any
 * address in the module, which must stay mapped. Call it from attach(): no tap of this name may be added in between.
 * false: the module has no slot for the name; nothing was done.
 */
struct kp_hook_swap {
    const void *inside;
    const char *symbol;
    void *ours;
    void *real; /* set by kp_hook_swap_begin, before the first call comes */
};
bool kp_hook_swap_begin(struct kp_hook_swap *swap);
void kp_hook_swap_end(struct kp_hook_swap *swap);

/* Is this the path of STEM.so[.MAJOR[.MINOR]], or STEM-HASH.so... as in wheels? Numbers that are missing become -1. */
bool kp_library_parse(const char *path, const char *stem, size_t *folder_bytes, int *major, int *minor);
/* Is the address in a module whose path is that of the stem? */
bool kp_library_has(const char *stem, const void *inside);
/* Finds the first module of that stem. `path` gets the loader's path of it. */
bool kp_library_find(const char *stem, char *path, size_t bytes);

/*
 * A taker redirects slots by a rule instead of by a list of names. There is one, which is never removed; it sees
 * modules mapped now and later. It sees PLT slots, and GOT slots that their module uses for calls alone. Pointers to
 * functions are not touched.
 */
struct kp_word {
    uintptr_t at, holds; /* the slot's address and value */
    const char *symbol;  /* valid until take() returns */
    const char *object;  /* base name of the module that defines the function, never freed; "": not known */
    bool is_lazy;        /* it holds the module's binding stub: at the first call the loader stores the function here */
};
struct kp_word_taker {
    bool (*wants)(const char *symbol);
    /* Returns the slot's new value; 0: leave it. Called by one thread at a time; the module stays mapped. */
    uintptr_t (*take)(const struct kp_word *word);
    void (*left)(const char *symbol);   /* the slot is also read as a pointer, or cannot be written */
    uintptr_t (*real)(uintptr_t holds); /* the function behind a value that take() returned, else 0. Any thread */
};
/* As kp_hook_add_taps. 0, -EEXIST (there is a taker), -EBUSY, -ENOMEM. */
int kp_hook_take_words(const struct kp_word_taker *taker);
/* Calls `each` for every function that a mapped module exports and the taker wants. Takes the loader's list lock. */
void kp_hook_each_function(void (*each)(void *arg, const char *symbol, uintptr_t address), void *arg);

/* First scan: taps dlopen, dlmopen, dlsym, dlvsym in every mapped module. Call once, from the constructor, when the
 * gate has KP_GATE_ON. 0, or -errno (then nothing is tapped and kp_hook_scan alone notices modules). */
int kp_hook_start(void);
/* If modules came or went since the last scan: taps the new ones, then calls kp_run_modules_changed(). Costs one short
 * call of dl_iterate_phdr if nothing changed. On a helper thread, not inside a hook. */
void kp_hook_scan(void);
/* On the forking thread. After true, no helper thread enters the loader until kp_hook_after_fork (in the parent). */
bool kp_hook_before_fork(void);
void kp_hook_after_fork(void);
void kp_hook_forget(void); /* in a child that shall record: frees the turn of a thread that is gone */

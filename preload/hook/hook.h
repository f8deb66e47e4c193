// SPDX-License-Identifier: Apache-2.0
/*
 * hook.h - notices libraries that the host loads later, and puts functions of ours in the way of its calls
 *
 * How to take the calls of a function of some library:
 *
 *     static int (*real_launch)(void *, int);
 *     static int tap_launch(void *f, int n)              a plain C function, same type as the real one
 *     {
 *         ... guard.h ...
 *         return real_launch(f, n);
 *     }
 *     static struct kp_tap taps[] = {{"cudaLaunch", NULL, (void *)(uintptr_t)tap_launch}};
 *
 *     in attach():  find the library that is mapped (dlopen with RTLD_NOLOAD), then for every name dlsym:
 *         real_launch = taps[0].real = dlsym(library, "cudaLaunch");      names it lacks stay out of the array
 *         kp_hook_add_taps(taps, 1);
 *
 * From then on every module's call of that name goes to the tap, in modules mapped now and in those that come, if the
 * name leads to exactly `real` there: through a PLT (bound already or not yet), a GOT word, or a pointer in its data.
 * Calls through a pointer that the host had from dlsym are not seen, nor calls inside the library itself (but see
 * kp_hook_add_taps_own), nor ours: we may call both the real function and by name. Two libraries with the same names
 * (two libcudart): one entry each, with a tap each.
 * A tap must stay callable after it was removed, since a thread may be in it or about to enter.
 */
#ifndef KP_HOOK_H
#define KP_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_tap {
    const char *symbol; /* these strings and the array stay where they are as long as the set is in */
    void *real;         /* where the calls go without us; a word is only taken when it leads there */
    void *tap;
};

/* A tap of a function that is looked up by its name. */
struct kp_tap_row {
    const char *symbol;
    void **real; /* where the tap calls on */
    void *tap;
};

/*
 * Adds a set of taps, now and for modules to come. Takes some milliseconds: from attach() or a thread of ours, not in a
 * hook and not in set_mode. 0; -EEXIST: one of these functions is tapped; -ENOSPC; -EBUSY: another thread is in a long
 * scan, or this process is a forked child: nothing was added; -ENOMEM: added, but the list of modules is not complete.
 */
int kp_hook_add_taps(const struct kp_tap *taps, uint32_t tap_count);
/* The same, and takes also what the library that has these functions calls itself, where it does so through words. */
int kp_hook_add_taps_own(const struct kp_tap *taps, uint32_t tap_count);
/*
 * The same, for functions that any module may have and that the first one has for all (malloc, operator new): also
 * where a module that has such a function calls another's by it. What the library of `real` calls itself stays, unless
 * it is libc.
 */
int kp_hook_add_taps_common(const struct kp_tap *taps, uint32_t tap_count);
/*
 * And what the loader calls by words of its own, which no name leads to: glibc's has the allocator's functions there.
 * Taps that are not found stay out. Like kp_hook_add_taps in all else; before or after it, and kept by
 * kp_hook_remove_taps. How many.
 */
uint32_t kp_hook_tap_loader(const struct kp_tap *taps, uint32_t tap_count);
/*
 * The function of that name which the program's modules get, unless they were loaded with a scope of their own: the
 * first one in the loader's order, where dlsym would give a stub of the program that takes its address. *module: which
 * module has it, as a number to compare.
 * NULL: there is none, or it is chosen at run time (IFUNC). Takes the loader's list lock.
 */
void *kp_hook_first(const char *symbol, uintptr_t *module);
/* Puts every word that holds one of these taps back. The same array as in kp_hook_add_taps. 0, or -EBUSY: they stay. */
int kp_hook_remove_taps(const struct kp_tap *taps, uint32_t tap_count);

/*
 * For a moment, the calls that one module makes by a name come to `ours`, which calls `real`; on all threads. `inside`
 * is any address of the module, which must stay mapped. From attach(): between begin and end nothing else taps this
 * name. false: the module makes no such calls; nothing was done.
 */
struct kp_hook_swap {
    const void *inside;
    const char *symbol;
    void *ours;
    void *real; /* set by kp_hook_swap_begin, before the first call comes */
};
bool kp_hook_swap_begin(struct kp_hook_swap *swap);
void kp_hook_swap_end(struct kp_hook_swap *swap);

/* Whether a path is that of STEM.so[.MAJOR[.MINOR]], or STEM-HASH.so... as wheels name what they bring; numbers that
 * are not there: -1. */
bool kp_library_parse(const char *path, const char *stem, size_t *folder_bytes, int *major, int *minor);
/* The first module of that stem, by the path the loader has it under. */
bool kp_library_find(const char *stem, char *path, size_t bytes);

/*
 * The other way: words are taken by a rule instead of by a list of names. One taker, for good; modules mapped now and
 *                those that come.
 * Words of the PLT are shown, and GOT words that their module uses for nothing but calls; pointers to functions are not
 * touched.
 */
struct kp_word {
    uintptr_t at, holds; /* where it lies, where calls go */
    const char *symbol;  /* as long as take() */
    const char *object;  /* base name of the module the function is in, for good; "": not known */
    bool is_lazy;        /* it holds the module's own stub: with the first call the loader stores the function here */
};
struct kp_word_taker {
    bool (*wants)(const char *symbol);
    /* What shall stand in the word; 0: it stays. One thread at a time, the module cannot go away meanwhile. */
    uintptr_t (*take)(const struct kp_word *word);
    void (*left)(const char *symbol);   /* a word that serves as a pointer, too, or cannot be written */
    uintptr_t (*real)(uintptr_t holds); /* where calls go from what take() gave; 0: it is nothing of that. Any thread */
};
/* As kp_hook_add_taps. 0, -EEXIST (there is a taker), -EBUSY, -ENOMEM. */
int kp_hook_take_words(const struct kp_word_taker *taker);
/* Every function that a mapped module shows to others and the taker wants. Takes the loader's list lock. */
void kp_hook_each_function(void (*each)(void *arg, const char *symbol, uintptr_t address), void *arg);

/* First scan: taps dlopen, dlmopen, dlsym, dlvsym in every module mapped so far. Call once, from the constructor,
 * when the gate says KP_GATE_ON. 0, or -errno (then nothing is tapped and kp_hook_scan alone notices modules). */
int kp_hook_start(void);
/* When modules came or went since the last scan: taps the new ones, then calls kp_run_modules_changed(). One short
 * call of dl_iterate_phdr when nothing changed. A thread of ours, not inside a hook. */
void kp_hook_scan(void);
/* The forking thread: no thread of ours is inside the loader until kp_hook_after_fork (in the parent, only after
 * true). */
bool kp_hook_before_fork(void);
void kp_hook_after_fork(void);
void kp_hook_begin_in_child(void); /* a child that shall record: whoever was scanning is not there */

#endif

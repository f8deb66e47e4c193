/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kprof.h - functions by which a program can control libkprof.so; their use is optional
 *
 * Nothing has to be linked: a program built with this header runs the same with and without the library. If it is
 * absent (LD_PRELOAD, or `kprof run`) every call does nothing and returns -ENOSYS. C99, C++11, and from Python:
 *     ctypes.CDLL(None).kprof_step()        (AttributeError when the library is not there)
 * Every function may be called from any thread. It costs less than a microsecond unless its comment says otherwise. It
 * never waits longer than microseconds, never changes errno, and returns 0 or a negative errno value.
 */
#ifndef KPROF_H
#define KPROF_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * KPROF_FUNCTION declares the library's function as a weak symbol under a private name. Around it, it defines an inline
 * function of the documented name. The label keeps the inline's own symbol from being taken for the library's.
 * The library itself defines KPROF_IMPLEMENTATION and gets plain declarations.
 */
#ifdef KPROF_IMPLEMENTATION
#define KPROF_FUNCTION(result, name, parameters, arguments) \
    __attribute__((visibility("default"))) result name parameters;
#else
#define KPROF_FUNCTION(result, name, parameters, arguments)             \
    result name##_weak parameters __asm__(#name) __attribute__((weak)); \
    static __inline__ result name parameters __asm__(#name "_inline");  \
    static __inline__ result name parameters                            \
    {                                                                   \
        result(*call) parameters;                                       \
        KPROF_ADDRESS(call, name);                                      \
        return call ? call arguments : (result)-ENOSYS;                 \
    }
/*
 * The address comes out of the global offset table, which the dynamic linker fills in: a program built with -no-pie
 * would otherwise have the weak symbol fixed to zero when it is linked.
 */
#if defined(__x86_64__) && defined(__LP64__)
#define KPROF_ADDRESS(call, name) __asm__(".weak " #name "\n\tmovq " #name "@GOTPCREL(%%rip), %0" : "=r"(call))
#elif defined(__aarch64__) && defined(__LP64__)
#define KPROF_ADDRESS(call, name) \
    __asm__(".weak " #name "\n\tadrp %0, :got:" #name "\n\tldr %0, [%0, :got_lo12:" #name "]" : "=r"(call))
#else
#define KPROF_ADDRESS(call, name) ((call) = name##_weak)
#endif
#endif

/*
 * A step (an iteration) of the program ended: the same as torch.profiler's step(). From its first call on nothing else
 * counts steps. If an optimizer or a DataLoader had been counting until then, the first call only takes over.
 * It counts nothing then, so that no step counts twice. -EPERM when KPROF_STEP names another source.
 */
KPROF_FUNCTION(int, kprof_step, (void), ())
/*
 * The program is in the phase `name` of KPROF_PHASES from now on: its own steps, schedule and files. It comes before
 * phases that are found. NULL or "" ends it. In a phase that KPROF_PHASES does not name nothing is recorded. A window
 * of the last phase ends, and its steps go on where they were when it comes back. Nothing happens without KPROF_PHASES.
 */
KPROF_FUNCTION(int, kprof_phase, (const char *name), (name))
/* Number of steps that ended so far, from any source; in a phase, those of the phase. */
KPROF_FUNCTION(long long, kprof_step_num, (void), ())
/* A long pause in which no step ends is meant: the time of KPROF_HANG starts again. Cheap, from any thread. */
KPROF_FUNCTION(int, kprof_alive, (void), ())
/*
 * Starts recording now, whatever the schedule says; the schedule goes on counting, and its next trace, kprof_stop or
 * exit ends this one. -EALREADY when already recording, -EIO when there is no spool, -EACCES when KPROF_RANKS leaves
 * this rank out.
 */
KPROF_FUNCTION(int, kprof_start, (void), ())
/*
 * Ends the recording and writes the trace, on another thread. A schedule goes on counting: what is left of its active
 * steps is not recorded, its next cycle is. -EALREADY when not recording.
 */
KPROF_FUNCTION(int, kprof_stop, (void), ())
/*
 * With KPROF_RING: writes a trace of the last seconds, on another thread, while the recording goes on. One that is
 * asked for before the last was begun is the same. -ENODATA without a ring, -EPERM with KPROF_EXPORT=none, -EALREADY
 * when nothing is recorded, -EACCES in a forked child, and when KPROF_RANKS leaves this rank out.
 */
KPROF_FUNCTION(int, kprof_keep, (void), ())
/*
 * Records an activity, "cpu" (ops and ranges) or "cuda", no more, or again: torch.profiler's toggle_collection_dynamic.
 * An op that is under way when cpu goes off gets its end; one that begins while it is off is not recorded. It holds for
 * later windows, too. With cuda it waits until CUPTI has stopped or records, 2 s at most, but not for the device:
 * synchronize first, or queued work may be missing. -EINVAL when KPROF_ACTIVITIES lacks it.
 */
KPROF_FUNCTION(int, kprof_toggle, (const char *activity, int on), (activity, on))
/* Opens a labelled range on this thread; it shows as a user_annotation. The text is copied. -EINVAL without a name. */
KPROF_FUNCTION(int, kprof_range_push, (const char *name), (name))
/* Closes the range that this thread opened last. -ENOENT when none is open. */
KPROF_FUNCTION(int, kprof_range_pop, (void), ())
/* Puts a text into the trace under key, as torch.profiler's add_metadata. The texts are copied. -EINVAL, -E2BIG,
 * -ENOSPC. */
KPROF_FUNCTION(int, kprof_metadata, (const char *key, const char *value), (key, value))
/* Puts a JSON value into the trace under key, as add_metadata_json. -EINVAL when it is not JSON. */
KPROF_FUNCTION(int, kprof_metadata_json, (const char *key, const char *json), (key, json))

#ifdef __cplusplus
}
#endif

#endif

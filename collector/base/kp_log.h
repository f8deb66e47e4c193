// SPDX-License-Identifier: Apache-2.0
/*
 * kp_log.h - the only road to stderr, or to where KPROF_LOG says: one line, one write(2), a cap on all lines
 *
 * Async-signal-safe: own formatter, 512 bytes of stack, errno kept. Every line begins "kprof: ", in a file "kprof[PID]: ".
 * Formats understood: %s %d %u %ld %lu %lld %llu %zu %x %lx %p %c %%  and widths are not.
 */
#ifndef KP_LOG_H
#define KP_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* level: 0 always (problems and the closing line), 1 KPROF_VERBOSE=1, 2 KPROF_VERBOSE=2 */
void kp_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void kp_log_set_level(int verbose);
/* "stderr", "none", or the path of a file, absolute: it must stay. Before there are threads. */
void kp_log_set_target(const char *target);
struct stat;
/* Why lines do not go to a file of this kind, or NULL: it must be ours, regular, with this name alone. */
const char *kp_log_refuse_file(const struct stat *file);
bool kp_log_is_on_terminal(void); /* somebody may be looking at the lines as they come */
/* From here on lines go to what descriptor 2 is now, and nowhere once the host has made it something else ... */
void kp_log_hold_stderr(void);
/* ... unless it is kept: on a descriptor of our own, so that a host that redirects 2 still gets its closing line. The file is opened. */
void kp_log_keep(void);
/* Once in a while: a host that closed a pipe as 2, or put /dev/null there, may want its reader to see the end. */
void kp_log_follow_stderr(void);
void kp_log_release(void); /* in a forked child: whoever reads must not wait for it */
/* Formats into buf (always NUL-terminated when size > 0), same formats; returns the length that was needed. */
size_t kp_fmt(char *buf, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t kp_vfmt(char *buf, size_t size, const char *format, va_list args);

/* Says it once per site, however often it happens. */
#define KP_LOG_ONCE(level, ...)                                                                    \
    do {                                                                                           \
        static atomic_flag kp_said = ATOMIC_FLAG_INIT;                                             \
        if (!atomic_flag_test_and_set_explicit(&kp_said, memory_order_relaxed))                    \
            kp_log((level), __VA_ARGS__);                                                          \
    } while (0)

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * kp_log.h - the only way to stderr, or to the file of KPROF_LOG: a write(2) for each line, limited lines
 *
 * Async-signal-safe: its own formatter, 512 bytes of stack, keeps errno. A line begins "kprof: ", in a file
 * "kprof[PID]: ". The formatter knows %s %d %u %ld %lu %lld %llu %zu %x %lx %p %c %% and no widths.
 */
#pragma once

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* level: 0 always (problems and the closing line), 1 KPROF_VERBOSE=1, 2 KPROF_VERBOSE=2 */
void kp_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void kp_log_set_level(int verbose);
/* "stderr", "none", or the absolute path of a file. The text must stay. Call it before there are threads. */
void kp_log_set_target(const char *target);
struct stat;
/* Why the log does not use this file, or NULL. It must be a regular file of this user with a single name. */
const char *kp_log_refuse_file(const struct stat *file);
bool kp_log_is_on_terminal(void); /* a user may read the lines as they come */
/* Binds the log to the present file of descriptor 2. Lines are lost once the host replaces it, unless kept. */
void kp_log_hold_stderr(void);
/*
 * Duplicates descriptor 2, so that a host that redirects it still gets the closing line there. Also opens the log
 * file.
 */
void kp_log_keep(void);
/* Releases the duplicate once the host closed its pipe or put /dev/null there: the pipe's reader waits for the end. */
void kp_log_follow_stderr(void);
void kp_log_release(void); /* in a forked child: the pipe's reader must not wait for the child */
/* Formats into buf, which always ends with a NUL when size > 0. Returns the length that was needed. */
size_t kp_fmt(char *buf, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t kp_vfmt(char *buf, size_t size, const char *format, va_list args);

const char *kp_log_error_text(int err); /* "Not a directory" for ENOTDIR or -ENOTDIR; from anywhere, in English */

/* Logs once for each place in the source. */
#define KP_LOG_ONCE(level, ...)                                                                               \
    do {                                                                                                      \
        static atomic_flag kp_said = ATOMIC_FLAG_INIT;                                                        \
        if (!atomic_flag_test_and_set_explicit(&kp_said, memory_order_relaxed)) kp_log((level), __VA_ARGS__); \
    } while (0)

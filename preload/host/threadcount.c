// SPDX-License-Identifier: Apache-2.0
/*
 * threadcount.c - leaves our helper threads out of the thread count that the host reads in /proc/self/stat
 *
 * Called by: host threads in fopen (a tap); begin.c (installs it when a run begins)
 * Owns:      nothing
 * Locks:     none
 * Memory:    none; the text is changed in the buffer of the host's stream
 * On fail:   the host reads a number that includes our threads
 * Safe in:   after fork and vfork: passes the call on if this process is not the owner
 *
 * From Python 3.12 on os.fork() reads the 20th field of /proc/self/stat, and warns if it is above 1: a child of a
 * process with threads may find locks taken for ever. Helper threads hold no lock that a child needs (fork.c). If this
 * library were not there, there would be no warning.
 */
#include "preload/host/host.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/run.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

enum { FIELD_STATE = 3, FIELD_THREADS = 20 };

/* Lowers the number in text[from, to) and moves the text behind it. Returns the new length. */
static size_t number_lower(char *text, size_t from, size_t to, size_t bytes, uint32_t by)
{
    char lower[16];
    uint32_t n = 0;
    for (size_t i = from; i < to; i++) n = n * 10 + (uint32_t)(text[i] - '0');
    if (n <= by) return bytes;
    const size_t used = kp_fmt(lower, sizeof lower, "%u", n - by);
    memcpy(text + from, lower, used);
    memmove(text + from + used, text + to, bytes - to);
    return bytes - (to - from) + used;
}

size_t kp_threadcount_lower(char *text, size_t bytes, uint32_t by)
{
    size_t at = bytes, field = FIELD_STATE - 1;
    while (at > 0 && text[at - 1] != ')') at--; /* the last ')' ends the name, which may contain any character */
    if (at == 0) return bytes;
    for (; at < bytes && field < FIELD_THREADS; at++) field += text[at] == ' ';
    size_t end = at;
    while (end < bytes && text[end] >= '0' && text[end] <= '9') end++;
    const bool is_number = field == FIELD_THREADS && end > at && end - at < 10 && end < bytes;
    return is_number ? number_lower(text, at, end, bytes, by) : bytes;
}

/* Reads a byte and puts it back, so that the stream's buffer has the whole text. */
static void ours_leave_out(FILE *f)
{
    kp_io_helpers_settle();
    const int first = kp_io_helpers() ? getc(f) : EOF;
    if (first == EOF || ungetc(first, f) == EOF) return;
    const size_t bytes = (size_t)(f->_IO_read_end - f->_IO_read_ptr);
    f->_IO_read_end = f->_IO_read_ptr + kp_threadcount_lower(f->_IO_read_ptr, bytes, kp_io_helpers());
}

static FILE *(*real_opens)(const char *path, const char *mode), *(*real_opens64)(const char *path, const char *mode);

static FILE *opened(FILE *f, const char *path)
{
    if (!f || strcmp(path, "/proc/self/stat") != 0 || !kp_run_is_active() || !kp_run_is_owner()) return f;
    int saved = errno;
    ours_leave_out(f);
    errno = saved;
    return f;
}

static FILE *tap_opens(const char *path, const char *mode) { return opened(real_opens(path, mode), path); }

static FILE *tap_opens64(const char *path, const char *mode) { return opened(real_opens64(path, mode), path); }

void kp_threadcount_install(void)
{
    static const struct kp_tap_row rows[] = {KP_TAP_ROW("fopen", opens), KP_TAP_ROW("fopen64", opens64)};
    static struct kp_tap taps[2];
    if (taps[0].real) return; /* in a child the tap is installed already */
    if (kp_hook_rows_find(NULL, rows, 2, taps) < 2 || kp_hook_add_taps(taps, 2) != 0)
        kp_log(1, "fopen could not be hooked: a Python that forks counts the profiler's threads as its own");
}

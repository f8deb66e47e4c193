// SPDX-License-Identifier: Apache-2.0
/*
 * workerframe.c - frames with which a worker process begins, and in which it waits for work
 *
 * Python's multiprocessing forks deep inside of the program. So the stacks of a forked worker have the frames around
 * the fork, which do not run in it.
 */
#include "export/read/frames/workerframe.h"

#include <string.h>

#include "export/read/frames/framename.h"

static const struct {
    const char *file, *function; /* the file's name ends so */
    enum kp_workerframe is;
} known[] = {
    {"multiprocessing/process.py", "_bootstrap", KP_WORKERFRAME_START},
    {"torch/utils/data/_utils/worker.py", "_worker_loop", KP_WORKERFRAME_TAKES},
    {"multiprocessing/pool.py", "worker", KP_WORKERFRAME_TAKES},
    {"concurrent/futures/process.py", "_process_worker", KP_WORKERFRAME_TAKES},
    {"multiprocessing/queues.py", "get", KP_WORKERFRAME_GET},
};

static bool ends_with(const char *text, size_t bytes, const char *end)
{
    const size_t n = strlen(end);
    return bytes >= n && memcmp(text + bytes - n, end, n) == 0;
}

/* "file.py(12): name", or "file.py(12): def name": is it this function of this file? */
static bool is_function(const char *frame, size_t bytes, const char *file, const char *function)
{
    const char *const bracket = memchr(frame, '(', bytes);
    const char *const colon = bracket ? memmem(bracket, bytes - (size_t)(bracket - frame), "): ", 3) : NULL;
    if (!colon || kp_framename_bare(colon + 3) != frame + bytes - strlen(function)) return false;
    const size_t length = (size_t)(bracket - frame), n = strlen(file);
    return ends_with(frame, length, file) && (length == n || frame[length - n - 1] == '/');
}

enum kp_workerframe kp_workerframe_of(const char *frame, size_t bytes)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ends_with(frame, bytes, known[i].function) && is_function(frame, bytes, known[i].file, known[i].function))
            return known[i].is;
    return KP_WORKERFRAME_NONE;
}

size_t kp_workerframe_since_fork(const char *stack, size_t bytes)
{
    for (size_t at = 0, n; at < bytes; at += n + 1) {
        const char *const end = memchr(stack + at, ';', bytes - at);
        n = end ? (size_t)(end - stack) - at : bytes - at;
        if (kp_workerframe_of(stack + at, n) == KP_WORKERFRAME_START) return at + n;
    }
    return bytes;
}

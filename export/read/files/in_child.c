// SPDX-License-Identifier: Apache-2.0
/* in_child.c - runs work on a file that may be damaged or hostile in a child process */
#include "export/read/files/in_child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HAS_SHADOW = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { HAS_SHADOW = 1 };
#else
enum { HAS_SHADOW = 0 };
#endif
#else
enum { HAS_SHADOW = 0 };
#endif

enum { KILL_AFTER_S = 5 }; /* if SIGXCPU did not end it */

static void limit_set(int which, uint64_t soft, uint64_t hard)
{
    struct rlimit limit;
    if (getrlimit(which, &limit) != 0) return;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > soft)
        limit.rlim_cur = soft; /* a tighter limit of the caller stays */
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > hard) limit.rlim_max = hard;
    (void)setrlimit(which, &limit);
}

/* Removes the caller's handlers, so that a signal ends the child. A sanitizer's handlers stay, since they tell more. */
static void signals_reset(void)
{
    static const int of[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU};
    for (size_t i = 0; i < sizeof of / sizeof *of && !HAS_SHADOW; i++) signal(of[i], SIG_DFL);
}

static void child_run(void (*fn)(void *context), void *context, const struct kp_apart_limits *limits)
{
    /* RLIMIT_DATA counts the process's private memory, not mapped files. */
    if (!HAS_SHADOW && limits->memory_bytes) limit_set(RLIMIT_DATA, limits->memory_bytes, limits->memory_bytes);
    if (limits->cpu_s) limit_set(RLIMIT_CPU, limits->cpu_s, limits->cpu_s + KILL_AFTER_S);
    signals_reset();
    fn(context);
    fflush(stdout);
    fflush(stderr);
    _exit(0);
}

static int end_tell(int status, const struct kp_apart_limits *limits, char *why, size_t why_bytes)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    if (WIFEXITED(status)) snprintf(why, why_bytes, "reading it ended with status %d", WEXITSTATUS(status));
    else if (WTERMSIG(status) == SIGXCPU)
        snprintf(why, why_bytes, "reading it took more than %llu s of processor time",
                 (unsigned long long)limits->cpu_s);
    else snprintf(why, why_bytes, "reading it ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return -1;
}

int kp_apart_run(void (*fn)(void *context), void *context, const struct kp_apart_limits *limits, char *why,
                 size_t why_bytes)
{
    int status = 0;
    fflush(stdout);
    fflush(stderr);
    const pid_t child = fork();
    if (child == 0) child_run(fn, context, limits);
    pid_t ended = child;
    while (child > 0 && (ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) continue;
    if (ended < 0) {
        snprintf(why, why_bytes, "no process to read it in: %s", strerror(errno));
        return -1;
    }
    return end_tell(status, limits, why, why_bytes);
}

void *kp_apart_memory(size_t bytes)
{
    void *const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void kp_apart_free(void *memory, size_t bytes)
{
    if (memory) munmap(memory, bytes);
}

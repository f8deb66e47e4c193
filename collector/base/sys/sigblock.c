// SPDX-License-Identifier: Apache-2.0
/*
 * sigblock.c - blocks signals around our writes, and around critical sections
 *
 * Called by: io_file.c around writes, on any thread, also in signal handlers; thread.c and window.c
 * On fail:   where the mask cannot be set, no signal is blocked
 */
#include "collector/base/sys/kp_sigblock.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_poison.h"

static const int raised_by_writes[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
enum { RAISED = sizeof raised_by_writes / sizeof *raised_by_writes };

void kp_sigblock_write_begin(struct kp_sigblock_write *q)
{
    sigset_t block;
    int saved = errno;
    sigemptyset(&block);
    for (int i = 0; i < RAISED; i++) sigaddset(&block, raised_by_writes[i]);
    sigemptyset(&q->old_pending);
    sigpending(&q->old_pending);
    q->is_blocked = kp_fail_point("mask") == 0 && pthread_sigmask(SIG_BLOCK, &block, &q->old_mask) == 0;
    errno = saved;
}

void kp_sigblock_write_end(struct kp_sigblock_write *q)
{
    sigset_t now, ours;
    int saved = errno;
    if (!q->is_blocked) return;
    sigemptyset(&now);
    sigemptyset(&ours);
    sigpending(&now);
    for (int i = 0; i < RAISED; i++)
        if (sigismember(&now, raised_by_writes[i]) && !sigismember(&q->old_pending, raised_by_writes[i])) {
            sigaddset(&ours, raised_by_writes[i]);
            while (sigtimedwait(&ours, NULL, &(struct timespec){0, 0}) < 0 && errno == EINTR) continue;
            sigemptyset(&ours);
        }
    pthread_sigmask(SIG_SETMASK, &q->old_mask, NULL);
    errno = saved;
}

void kp_sigblock_all_begin(struct kp_sigblock_all *s)
{
    static const int caused[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t block;
    sigfillset(&block);
    for (unsigned i = 0; i < sizeof caused / sizeof *caused; i++) sigdelset(&block, caused[i]);
    s->is_blocked = kp_fail_point("mask") == 0 && pthread_sigmask(SIG_BLOCK, &block, &s->old_mask) == 0;
}

void kp_sigblock_all_end(const struct kp_sigblock_all *s)
{
    if (s->is_blocked) pthread_sigmask(SIG_SETMASK, &s->old_mask, NULL);
}

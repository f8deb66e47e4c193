// SPDX-License-Identifier: Apache-2.0
/*
 * quiet.c - lets a write of ours fail without a signal to the host
 *
 * Called by: io.c and log.c, around the calls that may raise one; any thread, also in signal handlers
 * On fail:   a mask that cannot be set leaves things as they are
 */
#include "collector/base/kp_quiet.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "collector/base/kp_poison.h"

static const int raised_by_writes[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
enum { RAISED = sizeof raised_by_writes / sizeof *raised_by_writes };

void kp_quiet_begin(struct kp_quiet *q)
{
    sigset_t block;
    int saved = errno;
    sigemptyset(&block);
    for (int i = 0; i < RAISED; i++) sigaddset(&block, raised_by_writes[i]);
    sigemptyset(&q->old_pending);
    sigpending(&q->old_pending);
    pthread_sigmask(SIG_BLOCK, &block, &q->old_mask);
    errno = saved;
}

void kp_quiet_end(struct kp_quiet *q)
{
    sigset_t now, ours;
    int saved = errno;
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

// SPDX-License-Identifier: Apache-2.0
/*
 * lock.c - the mutex of torch's list of callbacks: found by watching torch take it, held by us while the host forks
 *
 * Called by: source.c: once when it attaches; the thread that forks, before and after
 * Owns:      which mutex it is
 * Locks:     torch's, across a fork, as the last of all
 * Memory:    none
 * On fail:   what cannot be watched is not held (kp_torch_lock_take says true: there is none to wait for); two
 *            mutexes instead of one, or one that another thread keeps: false, and the child leaves torch's list alone
 * Safe in:   signal handlers: no
 *
 * Each thread has a copy of torch's list and its version. When the version has changed, the thread's next op takes
 * the mutex and copies anew. We change it: a child whose parent forked while another thread had the mutex would then
 * wait for ever, though it would not without us. No symbol names the mutex. But torch calls pthread_mutex_lock
 * through a word of libtorch_cpu, so a callback that is added and removed again shows it.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/hook/hook.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

enum {
    TAKE_TRIES = 20000,
    TAKE_NAP_NS = 250000
}; /* 5 s: its holder copies a short list; or a signal handler forks right there */

static struct kp_hook_swap swap = {.symbol = "pthread_mutex_lock"};
static pthread_mutex_t *list_lock; /* constant once attached */
static bool is_unclear;            /* torch takes locks for its list, and which is not known */

struct watch {
    pthread_mutex_t *first;
    uint32_t seen;
};
static _Thread_local struct watch *watch __attribute__((tls_model("initial-exec")));

/* Any thread of the host's comes by while we watch; only our own is listened to. */
static int watched_lock(pthread_mutex_t *mutex)
{
    if (watch && !watch->seen++) watch->first = mutex;
    return ((int (*)(pthread_mutex_t *))(uintptr_t)swap.real)(mutex);
}

/* A callback of no scope: torch never calls it. */
static void list_touch(const struct kp_torch_api *api, struct watch *adding, struct watch *removing)
{
    const struct kp_torch_callback nothing = {.start = kp_torch_op_start, .end = kp_torch_op_end, .sampling = 1.0};
    watch = adding;
    const uint64_t handle = api->add(nothing);
    watch = removing;
    api->remove(handle);
    watch = NULL;
}

void kp_torch_lock_find(const struct kp_torch_api *api)
{
    struct watch adding = {0}, removing = {0};
    list_lock = NULL;
    swap.inside = (const void *)(uintptr_t)api->add;
    swap.ours = (void *)(uintptr_t)watched_lock;
    if (!kp_hook_swap_begin(&swap)) return;
    list_touch(api, &adding, &removing);
    kp_hook_swap_end(&swap);
    if (!adding.seen && !removing.seen) return;
    if (adding.seen == 1 && removing.seen == 1 && adding.first == removing.first) list_lock = adding.first;
    is_unclear = !list_lock;
    if (is_unclear) kp_log(1, "which lock torch takes for its callbacks is not clear: forked children record no ops");
}

bool kp_torch_lock_take(void)
{
    if (!list_lock) return !is_unclear;
    for (int i = 0; i < TAKE_TRIES; i++) {
        if (pthread_mutex_trylock(list_lock) == 0) return true;
        kp_io_nap(TAKE_NAP_NS);
    }
    return false;
}

void kp_torch_lock_give(void)
{
    if (list_lock) pthread_mutex_unlock(list_lock);
}

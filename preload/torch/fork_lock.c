// SPDX-License-Identifier: Apache-2.0
/*
 * fork_lock.c - finds the mutex of torch's callback list, and holds it while the host forks
 *
 * Called by: torch_source.c, once when it attaches; the thread that forks, before and after
 * Owns:      the mutex's address
 * Locks:     torch's mutex, across a fork, after all other locks
 * Memory:    none
 * On fail:   torch was not seen to take a mutex: none is held, and kp_torch_lock_take returns true. It saw two
 *            mutexes, or another thread keeps the mutex: false, and the child leaves torch's list alone.
 * Safe in:   signal handlers: no
 *
 * Each thread has a copy of torch's list and of the list's version. When the version has changed, the thread's next op
 * takes the mutex and copies the list. This library changes the list. A child forked while another thread holds the
 * mutex would then wait for ever, which it would not without us. No symbol names the mutex. But torch calls
 * pthread_mutex_lock through a GOT slot of libtorch_cpu: adding and removing a callback shows the mutex.
 */
#include <pthread.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/hook/hook.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

enum {
    TAKE_TRIES = 20000,
    TAKE_NAP_NS = 250000
}; /* 5 s. The mutex is held briefly, unless a signal handler forks on the thread that holds it. */

static struct kp_hook_swap swap = {.symbol = "pthread_mutex_lock"};
static pthread_mutex_t *list_lock; /* constant once attached */
static bool is_unclear;            /* torch takes mutexes for its list, but more than one */

struct watch {
    pthread_mutex_t *first;
    uint32_t seen;
};
static _Thread_local struct watch *watch __attribute__((tls_model("initial-exec")));

/* Any host thread may come here while the swap lasts; only the thread that attaches has `watch` set. */
static int watched_lock(pthread_mutex_t *mutex)
{
    if (watch && !watch->seen++) watch->first = mutex;
    return ((int (*)(pthread_mutex_t *))(uintptr_t)swap.real)(mutex);
}

/* Adds and removes a callback without scopes, which torch never calls. */
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
    if (is_unclear) kp_log(1, "torch's callback mutex was not found: forked children record no ops");
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

// SPDX-License-Identifier: Apache-2.0
/*
 * profile.c - sets and removes our profile function on Python threads
 *
 * Called by: python_source.c when a window begins; pycalls.c, inside CPython's call of our function
 * Owns:      the profile function of Python threads without one of the program
 * Locks:     the GIL, which the caller holds
 * On fail:   a thread that Python gives no profile function records no calls
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "preload/python/pycalls.h"
#include "collector/base/kp_poison.h"

enum { THREADS_MAX = 65536 };

static kp_python_profile_fn on_event; /* constant once attached */

void kp_pyprofile_attach(kp_python_profile_fn ours) { on_event = ours; }

kp_python_profile_fn kp_pyprofile_of(const void *thread)
{
    kp_python_profile_fn fn;
    memcpy(&fn, (const uint8_t *)thread + kp_python_get()->layout.thread_profile, sizeof fn);
    return fn;
}

bool kp_pyprofile_is_ours(const void *thread) { return kp_pyprofile_of(thread) == on_event; }

void kp_pyprofile_replaced(void)
{
    KP_LOG_ONCE(0, "the program sets a profile function of its own: Python calls are not recorded on its thread while "
                   "that is set");
}

void kp_pyprofile_remove(void)
{
    int saved = errno;
    const void *thread = kp_python_get()->thread_state();
    if (thread && kp_pyprofile_of(thread) == on_event) kp_python_api.set_profile(NULL, NULL);
    errno = saved;
}

static void profile_set(void *thread)
{
    if (kp_python_api.set_profile_of) {
        if (kp_python_api.set_profile_of(thread, on_event, NULL) != 0) kp_python_api.forget_error();
        return;
    }
    void *self = kp_python_api.swap_thread(thread); /* 3.8 */
    kp_python_api.set_profile(on_event, NULL);
    kp_python_api.swap_thread(self);
}

void kp_pyprofile_set_all(void)
{
    void *thread = kp_python_api.first_thread(kp_python_api.main_interpreter());
    for (unsigned i = 0; thread && i < THREADS_MAX; i++, thread = kp_python_api.next_thread(thread)) {
        kp_python_profile_fn fn = kp_pyprofile_of(thread);
        if (!fn) profile_set(thread);
        else if (fn != on_event) kp_pyprofile_replaced();
    }
}

/* On the thread with the GIL: sets our function, checks that the layout finds it, and removes it. */
bool kp_pyprofile_is_right(void *thread)
{
    kp_python_api.set_profile(on_event, NULL);
    const bool seen = kp_pyprofile_of(thread) == on_event;
    kp_python_api.set_profile(NULL, NULL);
    return seen && !kp_pyprofile_of(thread);
}

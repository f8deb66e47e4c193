// SPDX-License-Identifier: Apache-2.0
/*
 * pyapi.c - finds the functions of CPython that we call, in loaded modules; calls with the GIL
 *
 * Called by: python_source.c at attach (outside hooks, one call at a time). Cold.
 * Owns:      the table of functions, constant once found
 * On fail:   one line; Python calls are not recorded
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

#include "collector/base/kp_log.h"
#include "preload/python/pycalls.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

struct kp_python_api kp_python_api;

static const struct {
    const char *name;
    size_t offset;
    bool is_needed;
} symbols[] = {
#define KP_PYTHON_SYMBOL(member, field, name, needed) {name, offsetof(struct kp_python_api, field), needed},
#include "preload/python/api/python_symbols.def"
#undef KP_PYTHON_SYMBOL
};

/*
 * In 3.8 alone, Py_AddPendingCall prints an exception from the end of the main program on, before atexit's functions
 * and long before Py_IsFinalizing; it crashes a thread that has no GIL. The flag by which it decides is a word of
 * _PyRuntime, at the same place in every 3.8 of 64 bits.
 */
enum { FINISHING_38 = 600 };
static const _Atomic int *is_finishing; /* NULL: another release */

static bool symbols_find(uint32_t version)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(RTLD_DEFAULT, symbols[i].name);
        *(void **)((char *)&kp_python_api + symbols[i].offset) = found;
        if (found || !symbols[i].is_needed) continue;
        kp_log(0, "Python %u.%u has no %s: Python calls are not recorded", version / 100, version % 100,
               symbols[i].name);
        return false;
    }
    const char *runtime = version == 308 ? dlsym(RTLD_DEFAULT, "_PyRuntime") : NULL;
    is_finishing = runtime ? (const _Atomic int *)(runtime + FINISHING_38) : NULL;
    return true;
}

bool kp_python_api_find(void)
{
    enum { FOUND = 1, REFUSED = 2 };
    static _Atomic int known;
    const struct kp_python *const python = kp_python_get();
    if (python && !kp_load_acquire(&known)) { /* pairs with: the store below */
        const int now = symbols_find(python->layout.version) ? FOUND : REFUSED;
        dlerror(); /* clears our failed look-up, so that the host does not read it */
        kp_store_release(&known, now);
    }
    return python && kp_load_relaxed(&known) == FOUND;
}

bool kp_python_is_over(void) { return !kp_python_api.is_initialized() || kp_python_is_ending(); }

static int answer(void *what)
{
    const int kept = errno;
    ((void (*)(void))(uintptr_t)what)();
    errno = kept;
    return 0;
}

bool kp_python_later(void (*what)(void))
{
    const int kept = errno;
    const bool is_taken = !kp_python_is_over() && !(is_finishing && kp_load_relaxed(is_finishing));
    const bool is_asked = is_taken && kp_python_api.call_later(answer, (void *)(uintptr_t)what) == 0;
    errno = kept;
    return is_asked;
}

bool kp_python_with_gil(void (*what)(void), bool may_wait)
{
    const int kept = errno;
    bool is_done = !kp_python_is_over();
    if (is_done && kp_python_api.has_gil()) {
        what();
    } else if (is_done && may_wait && kp_python_get()->thread_state()) {
        const int state = kp_python_api.take_gil();
        what();
        kp_python_api.give_gil(state);
    } else if (is_done) {
        is_done = kp_python_later(what);
    }
    errno = kept;
    return is_done;
}

static _Atomic bool is_attach_asked;
static void attach_again(void)
{
    kp_store_relaxed(&is_attach_asked, false);
    kp_run_modules_changed();
}

void kp_python_attach_later(void)
{
    if (kp_load_relaxed(&is_attach_asked)) return;
    kp_store_relaxed(&is_attach_asked, true); /* before the call: the main thread may answer at once */
    if (!kp_python_later(attach_again)) kp_store_relaxed(&is_attach_asked, false);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * stepcalls.c - the source of steps and phases that are calls of Python functions (KPROF_STEP=call:GLOB, known calls)
 *
 * Called by: boot.c through source.h; CPython, when it starts, and in place of importlib's two functions that load
 * Owns:      the vectorcall pointer of these two
 * Locks:     the GIL, which CPython holds
 * On fail:   one line; no call counts a step
 * Safe in:   after fork yes: calls are passed on
 *
 * A function is looked for when a module was loaded. See decisions/053.
 */
#include "preload/python/steps/stepcalls.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "preload/source.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

static _Atomic bool attached;
static bool is_refused;

static bool load_hook(const char *module_name, const char *name);

static void look(const char *loaded)
{
    kp_stepfind_look(loaded);
    if (kp_stepfind_has_plain()) kp_stepeval_begin();
}

/* The package importlib may be loaded at any time, or never. */
static void reload_hook(void)
{
    static bool is_hooked;
    if (!is_hooked) is_hooked = load_hook("importlib", "reload");
}

/* importlib's _find_and_load(name, import) and reload(module). Both return the module. */
static void *call_load(void *callable, void *const *args, size_t count, void *keywords)
{
    kp_stepeval_pause(true);
    void *result = kp_stephook_call(callable, args, count, keywords);
    kp_stepeval_pause(false);
    if (!result || !kp_run_is_active() || kp_python_is_over()) return result;
    if (!kp_pyobject_is(result, kp_python_api.module_type)) return result;
    const int kept = errno;
    void *name = kp_pyobject_member(result, "__name__");
    const char *text = kp_pyobject_text(name);
    if (text) look(text);
    KP_PYTHON_DROP(name);
    reload_hook();
    errno = kept;
    return result;
}

static bool load_hook(const char *module_name, const char *name)
{
    void *function = kp_pymodule_member(module_name, name);
    const bool is_hooked = function && kp_stephook_is_function(function) && kp_stephook_set(function, call_load);
    KP_PYTHON_DROP(function);
    return is_hooked;
}

static bool install(void)
{
    struct kp_pyaside aside;
    if (kp_python_get()->layout.version >= 312 && !kp_python_api.vector_set) return false;
    kp_pyaside_begin(&aside, NULL);
    const bool is_done = kp_stepgens_attach() && load_hook("_frozen_importlib", "_find_and_load");
    if (is_done) reload_hook();
    if (is_done && (kp_steps_is_call_rule() || kp_phases_are_set())) kp_stepeval_begin();
    kp_pyaside_end(&aside);
    return is_done;
}

static void (*on_exec)(void); /* a module's code, or the program's, is about to run */
static void (*on_exception)(void *args);

/* CPython has started and is about to run the program. */
static int on_audit(const char *event, void *args, void *unused)
{
    static bool is_done;
    (void)unused;
    if (on_exception && strcmp(event, "sys.excepthook") == 0) on_exception(args);
    if (on_exec && strcmp(event, "exec") == 0) on_exec();
    if (is_done || strncmp(event, "cpython.run_", 12) != 0) return 0;
    is_done = true;
    kp_run_modules_changed();
    return 0;
}

/* An audit hook stays for ever. It may be added before CPython starts. */
void kp_pyaudit_add(void (*exec)(void))
{
    static bool is_asked;
    int (*add)(int (*)(const char *, void *, void *), void *) = NULL;
    if (exec) on_exec = exec;
    if (is_asked) return;
    *(void **)&add = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook");
    dlerror();
    is_asked = add != NULL;
    if (add) add(on_audit, NULL);
}

void kp_pyaudit_add_exception(void (*exception)(void *args))
{
    on_exception = exception;
    kp_pyaudit_add(NULL);
}

static bool find_python(void)
{
    if (kp_steps_is_call_rule()) {
        kp_caller_find();
        kp_pyaudit_add(NULL);
    }
    if (kp_steps_is_call_rule() && kp_python_unknown())
        KP_LOG_ONCE(0, "%s: its functions are not known here, so KPROF_STEP=call counts no step", kp_python_unknown());
    return kp_python_api_find();
}

static bool attach(void)
{
    if (kp_load_relaxed(&attached)) return true;
    if (is_refused || (!kp_steps_call_glob(0) && !kp_phases_are_set()) || !find_python()) return false;
    if (!kp_python_api.is_initialized() || kp_python_is_over() || !kp_python_api.has_gil()) return false;
    is_refused = !install();
    if (is_refused) {
        kp_log(kp_steps_is_call_rule() ? 0 : 1, "calls of Python functions cannot be counted as steps in this Python");
        return false;
    }
    kp_store_release(&attached, true); /* pairs with: attach */
    look("");
    return true;
}

static void forget(void) {}

const struct kp_source kp_stepcalls_source = {
    .name = "stepcalls",
    .attach = attach,
    .forget = forget,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * pyobject.c - reads objects and loaded modules of CPython, and leaves none of its exceptions behind
 *
 * Called by: the files of this folder, with the GIL
 * Owns:      nothing
 * Memory:    none. PyUnicode_AsUTF8 may make Python allocate, for a text that is not ASCII.
 * On fail:   NULL
 *
 * Modules are looked up in sys.modules, so no look-up waits for an import.
 */
#include <errno.h>
#include <string.h>

#include "preload/python/pycalls.h"
#include "collector/base/kp_poison.h"

enum { TYPE_NAME = 24 };

const char *kp_pyobject_text(void *object)
{
    const char *const text = kp_pyobject_is(object, kp_python_api.text_type) ? kp_python_api.text_of(object) : NULL;
    if (!text) kp_python_api.forget_error();
    return text;
}

const char *kp_pyobject_type(const void *object)
{
    return object ? kp_python_at(kp_python_at(object, KP_PYTHON_TYPE_OF), TYPE_NAME) : "";
}

void *kp_pyobject_member(void *object, const char *name)
{
    void *const member = object ? kp_python_api.member_get(object, name) : NULL;
    if (!member) kp_python_api.forget_error();
    return member;
}

void kp_pyobjects_drop(void *const *objects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (objects[i]) kp_python_api.drop(objects[i]);
}

void *kp_pymodule_get(const char *name)
{
    void *const modules = kp_python_api.sys_get("modules");
    void *const found = modules ? kp_python_api.dict_get(modules, name) : NULL;
    return kp_pyobject_is(found, kp_python_api.module_type) ? found : NULL;
}

void *kp_pymodule_dict(const char *name)
{
    void *const module = kp_pymodule_get(name);
    return module ? kp_python_api.module_dict(module) : NULL;
}

void *kp_pymodule_member(const char *module, const char *name)
{
    return kp_pyobject_member(kp_pymodule_get(module), name);
}

void kp_pyaside_begin(struct kp_pyaside *a, struct kp_thread *hidden)
{
    *a = (struct kp_pyaside){.hidden = hidden, .kept = errno};
    if (hidden) a->inside = kp_load_relaxed(&hidden->inside);
    if (hidden) kp_store_relaxed(&hidden->inside, 1);
    kp_signal_fence();
    kp_python_api.error_take(&a->error[0], &a->error[1], &a->error[2]);
}

void kp_pyaside_end(const struct kp_pyaside *a)
{
    kp_python_api.error_give(a->error[0], a->error[1], a->error[2]);
    kp_signal_fence();
    if (a->hidden) kp_store_release(&a->hidden->inside, a->inside); /* pairs with: kp_record_quiesce */
    errno = a->kept;
}

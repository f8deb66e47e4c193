// SPDX-License-Identifier: Apache-2.0
/*
 * modulekeys.c - finds the name that the program gives an nn.Module: its key in the `_modules` of the module around it
 *
 * Called by: call_text.c, inside a hook with the GIL held, once a module and call site (cold)
 * Owns:      which class and which code are torch's. Every other reference that it takes it drops.
 * Memory:    none. Python may allocate the `__dict__` of an object that has none yet.
 * On fail:   no name
 *
 * No code of the program runs: an object's own `__dict__` and `_modules` are read as dicts, and only where they are
 * dicts or OrderedDicts themselves. Modules that hold others and are not called (a ModuleList) are gone through, so a
 * name may have parts: "layers.3". The shorter of two names of one module counts, and the first of equally long ones.
 */
#include <string.h>

#include "preload/python/api/modulekeys.h"
#include "preload/python/pycalls.h"
#include "collector/base/kp_poison.h"

enum { DEPTH_MOST = 4, FRAMES_MOST = 128, LOOKED_MOST = 4096, TYPE_OF = 8, TEXT_LENGTH = 16 };

const void *kp_modulekey_type, *kp_modulekey_code;

const void *kp_modulekey_self(const struct kp_python_layout *l, const void *frame)
{
    return kp_python_unheld(l, kp_python_at(frame, l->frame_locals));
}

/* The `self` of the innermost call of a module around the frame's own. */
static const void *module_around(const struct kp_python_layout *l, const void *frame)
{
    const void *at = kp_pyframe_back(l, frame);
    for (unsigned n = 0; at && n < FRAMES_MOST; n++, at = kp_pyframe_back(l, at))
        if (kp_pyframe_code(l, at) == kp_modulekey_code) return kp_modulekey_self(l, at);
    return NULL;
}

struct looking {
    const void *wanted;
    unsigned left;     /* so many more members are looked at */
    char *text, *name; /* the name is written from the end of the text on */
};

/* Puts "key" or "key." before what is there. False: no room, or it is no text. */
static bool key_put(struct looking *l, void *key)
{
    const char *const text = kp_pyobject_text(key);
    const size_t bytes = text ? strlen(text) : 0, point = *l->name != 0;
    if (!bytes || bytes + point > (size_t)(l->name - l->text)) return false;
    if (point) *--l->name = '.';
    l->name -= bytes;
    for (size_t i = 0; i < bytes; i++) l->name[i] = (unsigned char)text[i] < ' ' ? '?' : text[i];
    return true;
}

static bool is_dict(const void *object)
{
    const void *type = kp_python_at(object, TYPE_OF);
    return type == kp_python_api.dict_type || type == kp_python_api.ordered_dict_type;
}

/* The value of "_modules" in an object's own dict, borrowed from it. A str's length is not its bytes, but of ASCII. */
static void *modules_in(void *own)
{
    void *key, *value;
    for (intptr_t at = 0; kp_python_api.dict_next(own, &at, &key, &value);) {
        if (kp_python_at(key, TYPE_OF) != kp_python_api.text_type) continue;
        if ((intptr_t)kp_python_at(key, TEXT_LENGTH) != sizeof "_modules" - 1) continue;
        const char *text = kp_pyobject_text(key);
        if (text && strcmp(text, "_modules") == 0) return is_dict(value) ? value : NULL;
    }
    return NULL;
}

static bool found_in(struct looking *l, void *module, unsigned depth);

/* One depth alone, so that the shortest name is found first. */
static bool found_among(struct looking *l, void *members, unsigned depth)
{
    void *key, *value;
    for (intptr_t at = 0; kp_python_api.dict_next(members, &at, &key, &value);) {
        if (l->left == 0) return false;
        l->left--;
        if (depth == 1 ? value != l->wanted : !found_in(l, value, depth - 1)) continue;
        if (key_put(l, key)) return true;
        l->left = 0;
    }
    return false;
}

static bool found_in(struct looking *l, void *module, unsigned depth)
{
    if (!kp_python_api.is_subtype(kp_python_at(module, TYPE_OF), kp_modulekey_type)) return false;
    void *own = kp_python_api.dict_of(module, NULL);
    if (!own) kp_python_api.forget_error();
    void *members = own && is_dict(own) ? modules_in(own) : NULL;
    const bool is_found = members && found_among(l, members, depth);
    KP_PYTHON_DROP(own);
    return is_found;
}

const char *kp_modulekey_find(const void *frame, const void *self, char *text, size_t bytes)
{
    void *around = kp_modulekey_type ? (void *)module_around(&kp_python_get()->layout, frame) : NULL;
    struct looking l = {.wanted = self, .left = LOOKED_MOST, .text = text, .name = text + bytes - 1};
    *l.name = 0;
    for (unsigned depth = 1; around && around != self && depth <= DEPTH_MOST && l.left; depth++)
        if (found_in(&l, around, depth)) return l.name;
    return "";
}

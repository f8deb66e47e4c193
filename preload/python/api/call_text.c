// SPDX-License-Identifier: Apache-2.0
/*
 * call_text.c - names of calls ("file.py(LINE): function", "<built-in ...>", a module's class) and of their call sites
 *
 * Called by: pycalls.c, inside a hook with the GIL held, once a call site (cold)
 * Owns:      the folders that are cut off file names
 * Locks:     none; every caller has the GIL
 * Memory:    512 KB, mapped at the first function made in C. PyUnicode_AsUTF8 may make Python allocate, for a file name
 *            that is not ASCII.
 * On fail:   id 0 ("name lost"), counted by the record room
 *
 * As in Kineto, file names lose the first matching folder of sys.path, site-packages, the user's site and torch's
 * folder, in descending order. C functions are printed as repr() would, without calling it: a repr may be the
 * program's code.
 */
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/python/api/modulekeys.h"
#include "preload/python/pycalls.h"
#include "preload/python_bridge.h"
#include "collector/base/kp_poison.h"

enum {
    FOLDERS = 64,
    TEXT = 3072,
    FOLDER_BYTES = 512,
    KEY_BYTES = 512,
    C_SELF = 24,
    C_METHODS = 16,
    TYPE_OF = 8,
    TYPE_NAME = 24,
    TYPE_BYTES = 104
};

static char folders[FOLDERS][FOLDER_BYTES]; /* each ends in '/'; in descending order */
static bool are_installed[FOLDERS];         /* Python's own folders, those of packages, and its scripts' */
static unsigned folder_count;

/* ---- folders ---- */

static void folder_add(const char *path)
{
    char full[FOLDER_BYTES], cwd[FOLDER_BYTES];
    if (!path || folder_count == FOLDERS) return;
    if (path[0] == '/') kp_fmt(full, sizeof full, "%s", path);
    else if (kp_io_getcwd(cwd, sizeof cwd) != 0 ||
             kp_fmt(full, sizeof full, path[0] ? "%s/%s" : "%s%s", cwd, path) >= sizeof full)
        return;
    size_t n = strlen(full);
    while (n > 1 && full[n - 1] == '/') full[--n] = 0;
    if (n + 2 > sizeof full || strlen(path) >= sizeof full) return;
    if (full[n - 1] != '/') memcpy(full + n, "/", 2);
    unsigned at = 0;
    while (at < folder_count && strcmp(folders[at], full) > 0) at++;
    if (at < folder_count && strcmp(folders[at], full) == 0) return;
    memmove(folders[at + 1], folders[at], (folder_count - at) * sizeof *folders);
    memmove(are_installed + at + 1, are_installed + at, (folder_count - at) * sizeof *are_installed);
    memcpy(folders[at], full, sizeof full);
    are_installed[at] = kp_pyfile_is_installed(full);
    folder_count++;
}

static void folder_of_member(const char *module, const char *member, unsigned levels)
{
    char path[FOLDER_BYTES];
    void *object = kp_pymodule_member(module, member);
    const char *text = kp_pyobject_text(object);
    if (text && strlen(text) < sizeof path) {
        memcpy(path, text, strlen(text) + 1);
        for (char *slash; levels > 0 && (slash = strrchr(path, '/')); levels--) *slash = 0;
        if (path[0]) folder_add(path);
    }
    KP_PYTHON_DROP(object);
}

static void folder_of_prefix(const char *which)
{
    char path[FOLDER_BYTES];
    const char *prefix = kp_pyobject_text(kp_python_api.sys_get(which));
    const uint32_t version = kp_python_get()->layout.version;
    if (!prefix) return;
    if (kp_fmt(path, sizeof path, "%s/lib/python3.%u/site-packages", prefix, version % 100) < sizeof path)
        folder_add(path);
    for (unsigned i = 0; i < folder_count; i++) { /* a script that pip wrote is run by that folder */
        const size_t n = strlen(prefix);
        if (strncmp(folders[i], prefix, n) == 0 && strcmp(folders[i] + n, "/bin/") == 0) are_installed[i] = true;
    }
}

void kp_pysite_prepare(void)
{
    void *path = kp_python_api.sys_get("path"); /* a borrowed reference */
    folder_count = 0;
    if (path && kp_python_at(path, TYPE_OF) == kp_python_api.list_type)
        for (intptr_t i = 0; i < kp_python_api.list_count(path); i++)
            folder_add(kp_pyobject_text(kp_python_api.list_item(path, i)));
    folder_of_prefix("prefix");
    folder_of_prefix("exec_prefix");
    folder_of_member("site", "USER_BASE", 0);
    folder_of_member("site", "USER_SITE", 0);
    folder_of_member("torch", "__file__", 2);
    kp_pypackage_saw("torch/"); /* its folder may be one of sources */
}

void kp_pysite_prepare_once(void)
{
    if (!folder_count) kp_pysite_prepare();
}

/* ---- file names ---- */

const char *kp_pysite_file(const char *file)
{
    for (unsigned i = 0; i < folder_count; i++) {
        const size_t n = strlen(folders[i]);
        if (strncmp(file, folders[i], n) != 0) continue;
        if (are_installed[i]) kp_pypackage_saw(file + n);
        return file + n;
    }
    return file;
}

static const char *code_text(const void *code, size_t offset)
{
    const char *text = kp_pyobject_text(kp_python_at(code, offset));
    return text ? text : "?";
}

static const void *code_of(const void *object)
{
    const struct kp_python_layout *l = &kp_python_get()->layout;
    return kp_pyframe_code(l, kp_pyframe_of(l, object));
}

/* Appends "file:line" of a frame to text, behind `before`. Returns the total length. */
static uint32_t place_add(char *text, size_t used, char before, void *frame)
{
    const char *file = kp_pysite_file(code_text(code_of(frame), kp_python_get()->layout.code_file));
    if (used >= TEXT - 1) used = TEXT - 2;
    text[used++] = before;
    const size_t n = kp_fmt(text + used, TEXT - used, "%s:%d", file, kp_python_api.frame_line(frame));
    used += n;
    return (uint32_t)(used < TEXT ? used : TEXT - 1);
}

static uint32_t place_of_caller(char *text, size_t used, char before, void *frame)
{
    const struct kp_python_layout *l = &kp_python_get()->layout;
    void *back = kp_python_api.frame_back ? kp_python_api.frame_back(frame) : kp_python_at(frame, l->frame_back);
    const uint32_t n = place_add(text, used, before, back ? back : frame);
    if (back && kp_python_api.frame_back) kp_python_api.drop(back);
    return n;
}

/* ---- functions ---- */

static bool ends_in(const char *text, const char *tail)
{
    const size_t n = strlen(text), m = strlen(tail);
    return n >= m && strcmp(text + n - m, tail) == 0;
}

/* Called at the first call of a function of that name, since torch.nn may be imported long after the window began. */
static void module_code_find(void)
{
    void *type = kp_pymodule_member("torch.nn.modules.module", "Module");
    void *call = kp_pyobject_member(type, "__call__"), *code = kp_pyobject_member(call, "__code__");
    KP_PYTHON_DROP(call, code ? NULL : type);
    if (!code) return;
    kp_modulekey_code = code; /* both references are kept, so that no address is used again */
    kp_modulekey_type = type;
}

uint32_t kp_pysite_call(struct kp_thread *t, void *frame)
{
    const struct kp_python_layout *l = &kp_python_get()->layout;
    char text[TEXT];
    const void *code = code_of(frame);
    const char *file = code_text(code, l->code_file), *name = code_text(code, l->code_name);
    if (!kp_modulekey_code && ends_in(name, "_call_impl") && ends_in(file, "torch/nn/modules/module.py"))
        module_code_find();
    const size_t used =
        kp_fmt(text, TEXT / 2, "%s(%d): %s", kp_pysite_file(file), kp_python_api.frame_line(frame), name);
    return kp_name_intern(t, text, place_of_caller(text, used < TEXT / 2 ? used : TEXT / 2 - 1, 0, frame));
}

/* ---- functions made in C ---- */

struct c_name {
    const void *methods;
    const char *text; /* name in the method table, to tell it from a later function at the same address */
    const void *self;
    char type[TYPE_BYTES]; /* a copy: the class may be gone when the function is met at its next call site */
};
enum { C_NAMES = 4096 };
static struct c_name *c_names;

/* The name has the object that the function was first seen with, as in Kineto's files; it may be freed by now.
 * NULL: no memory. */
static const struct c_name *c_name_get(const void *function)
{
    const void *methods = kp_python_at(function, C_METHODS);
    const char *name = kp_python_at(methods, 0);
    if (!c_names && !(c_names = kp_map_alloc(C_NAMES * sizeof *c_names))) return NULL;
    struct c_name *n = &c_names[((uintptr_t)methods * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
    if (n->methods == methods && n->text == name) return n;
    const void *self = kp_python_at(function, C_SELF);
    const void *type = self ? kp_python_at(self, TYPE_OF) : NULL;
    if (type && kp_python_api.is_subtype(type, kp_python_api.module_type)) self = type = NULL;
    *n = (struct c_name){.methods = methods, .text = name, .self = self};
    if (type) kp_fmt(n->type, sizeof n->type, "%s", (const char *)kp_python_at(type, TYPE_NAME));
    return n;
}

static uint8_t marks_of(const char *name)
{
    if (strcmp(name, "start_new_thread") == 0 || strcmp(name, "start_joinable_thread") == 0 ||
        strcmp(name, "start_new") == 0)
        return KP_PY_STARTS_THREAD;
    const bool is_setter = strcmp(name, "setprofile") == 0 || strcmp(name, "_setprofileallthreads") == 0;
    return is_setter || strcmp(name, "enable") == 0 /* of cProfile, maybe */ ? KP_PY_SETS_PROFILE : 0;
}

uint32_t kp_pysite_c_call(struct kp_thread *t, void *frame, const void *function, uint8_t *marks)
{
    char text[TEXT];
    const struct c_name *n = c_name_get(function);
    size_t used;
    *marks = 0;
    if (!n) return 0;
    *marks = marks_of(n->text);
    if (!n->self) used = kp_fmt(text, TEXT / 2, "<built-in function %s>", n->text);
    else
        used = kp_fmt(text, TEXT / 2, "<built-in method %s of %s object at 0x%lx>", n->text, n->type,
                      (unsigned long)(uintptr_t)n->self);
    return kp_name_intern(t, text, place_add(text, used < TEXT / 2 ? used : TEXT / 2 - 1, 0, frame));
}

/* ---- modules ---- */

/* "nn.Module: CLASS", and its name before the caller's place: "fc1\tfile:line". */
uint32_t kp_pysite_module(struct kp_thread *t, void *frame, const void *self)
{
    char text[TEXT], key[KEY_BYTES];
    const char *name = kp_python_at(kp_python_at(self, TYPE_OF), TYPE_NAME), *dot = strrchr(name, '.');
    const void *const own = kp_pyframe_of(&kp_python_get()->layout, frame);
    size_t used = kp_fmt(text, TEXT / 2, "nn.Module: %s", dot ? dot + 1 : name);
    if (used >= TEXT / 2) used = TEXT / 2 - 1;
    const size_t bytes = kp_fmt(text + used + 1, KEY_BYTES, "%s", kp_modulekey_find(own, self, key, sizeof key));
    text[used] = 0;
    return kp_name_intern(t, text, place_of_caller(text, used + 1 + bytes, KP_PY_KEY_END, frame));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * cupti_find.c - finds libcuda in the link map, and the libcupti that belongs to this program
 *
 * Called by: cupti_source.c when modules changed, control.c before arming. Cold, outside hooks.
 * Owns:      references to libcuda and libcupti, never dropped; kp_driver and kp_cupti
 * Locks:     the loader's
 * On fail:   finds nothing, and is called again after more modules were loaded
 *
 * Never loads libcuda, so a program that uses no GPU stays without it. Loads libcupti only after the program's CUDA is
 * up, and never a second one. It takes the mapped copy, else the one that came with the program's libcudart. Makes no
 * CUPTI call: in 13.2 the first call crashes if there is no driver.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

enum { PATH_BYTES = 1024 };

struct kp_cupti kp_cupti;
struct kp_driver kp_driver;

/* ---- paths, pure ---- */

/* Tries pip's wheels (cu13: one folder; cu12: one per component), then toolkits, then the loader's search path. */
size_t kp_cupti_place(unsigned n, const char *folder, int major, char *out, size_t bytes)
{
    static const char *const places[] = {"%s/%s", "%s/../../cuda_cupti/lib/%s", "%s/../extras/CUPTI/lib64/%s",
                                         "%s/../../../extras/CUPTI/lib64/%s"};
    static const char *const elevens[] = {"libcupti.so.11.8", "libcupti.so.11.7"};
    enum { PLACES = sizeof places / sizeof *places };
    unsigned sonames = major == 11 ? 2 : 1, place = n / sonames;
    char soname[32];
    if (major == 11) kp_fmt(soname, sizeof soname, "%s", elevens[n % 2]);
    else kp_fmt(soname, sizeof soname, "libcupti.so.%d", major);
    if (major < 11 || place > PLACES) return 0;
    if (place == PLACES) return kp_fmt(out, bytes, "%s", soname);
    if (!folder[0]) return kp_fmt(out, bytes, "/usr/local/cuda/extras/CUPTI/lib64/%s", soname);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    return kp_fmt(out, bytes, places[place], folder, soname);
#pragma GCC diagnostic pop
}

/* ---- the link map ---- */

static void *open_loaded(const char *path)
{
    void *handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) dlerror(); /* clears our error, so that the host does not read it */
    return handle;
}

enum kp_found kp_driver_find(void)
{
    static void *library;
    char path[PATH_BYTES];
    if (library) return KP_FOUND_DRIVER;
    if (!kp_library_find("libcuda", path, sizeof path)) return KP_FOUND_NOTHING;
    if (strstr(path, "/stubs/")) return KP_FOUND_STUB;
    library = open_loaded(path);
    if (!library) return KP_FOUND_NOTHING;
    *(void **)&kp_driver.device_count = dlsym(library, "cuDeviceGetCount");
    *(void **)&kp_driver.device_attribute = dlsym(library, "cuDeviceGetAttribute");
    *(void **)&kp_driver.device_name = dlsym(library, "cuDeviceGetName");
    *(void **)&kp_driver.device_memory = dlsym(library, "cuDeviceTotalMem_v2");
    *(void **)&kp_driver.device_uuid = dlsym(library, "cuDeviceGetUuid");
    *(void **)&kp_driver.version = dlsym(library, "cuDriverGetVersion");
    dlerror();
    return KP_FOUND_DRIVER;
}

int kp_runtime_version(void)
{
    char path[PATH_BYTES];
    int version = 0;
    void *library = kp_library_find("libcudart", path, sizeof path) ? open_loaded(path) : NULL;
    int (*get)(int *) = NULL;
    if (library) *(void **)&get = dlsym(library, "cudaRuntimeGetVersion");
    dlerror();
    return get && get(&version) == 0 ? version : 0;
}

bool kp_cupti_has_torch(void)
{
    char path[PATH_BYTES];
    return kp_library_find("libtorch_cpu", path, sizeof path);
}

/* ---- libcupti ---- */

static int major_of_driver(void)
{
    int version = 0;
    return kp_driver.version && kp_driver.version(&version) == 0 ? version / 1000 : -1;
}

/* Loads the libcupti of the program's libcudart. With a static libcudart it tries the driver's major and lower ones. */
static void *open_matching(char *path, size_t bytes)
{
    char runtime[PATH_BYTES];
    size_t folder = 0;
    int major, minor;
    bool has_runtime = kp_library_find("libcudart", runtime, sizeof runtime);
    if (has_runtime) kp_library_parse(runtime, "libcudart", &folder, &major, &minor);
    else major = major_of_driver();
    runtime[folder] = '\0';
    for (int m = major; m >= 11 && (m == major || !has_runtime); m--)
        for (unsigned n = 0; kp_cupti_place(n, runtime, m, path, bytes); n++) {
            void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
            if (handle) return handle;
        }
    dlerror();
    return NULL;
}

static int fill(void *handle)
{
    const char *missing = NULL;
#define KP_CUPTI(member, name, needed, result, arguments) \
    *(void **)&kp_cupti.member = dlsym(handle, name);     \
    if ((needed) && !kp_cupti.member) missing = name;
#include "preload/cupti/library/cupti.def"
#undef KP_CUPTI
    dlerror();
    if (missing) {
        KP_LOG_ONCE(1, "%s lacks %s: CUPTI is not used", kp_cupti.path, missing);
        return -ENOSYS;
    }
    kp_cupti.handle = handle;
    kp_store_release(&kp_cupti.is_filled, true); /* pairs with: itself in kp_cupti_find, and tee.c */
    return 0;
}

int kp_cupti_find(bool may_open)
{
    static atomic_flag busy = ATOMIC_FLAG_INIT;
    char loaded[PATH_BYTES];
    int err = -ENOENT;
    if (kp_load_acquire(&kp_cupti.is_filled)) return 0; /* pairs with: fill */
    if (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) return -EAGAIN;
    void *handle = kp_library_find("libcupti", loaded, sizeof loaded) ? open_loaded(loaded) : NULL;
    if (handle) kp_fmt(kp_cupti.path, sizeof kp_cupti.path, "%s", loaded);
    else if (may_open) handle = open_matching(kp_cupti.path, sizeof kp_cupti.path);
    if (handle) {
        struct link_map *map = NULL;
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0])
            kp_fmt(kp_cupti.path, sizeof kp_cupti.path, "%s", map->l_name);
        err = kp_load_acquire(&kp_cupti.is_filled) ? 0 : fill(handle);
    }
    atomic_flag_clear_explicit(&busy, memory_order_release);
    return err;
}

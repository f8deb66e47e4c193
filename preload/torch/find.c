// SPDX-License-Identifier: Apache-2.0
/*
 * find.c - is libtorch_cpu in this process, and where are its functions
 *
 * Called by: source.c when modules changed (boot's thread or the host's, outside hooks). Cold.
 * Owns:      one reference to libtorch_cpu, kept for ever: torch holds pointers to us as we to it.
 * On fail:   false; asked again when more modules came. Brings no library in. A torch linked into the
 *            executable statically is not found.
 *
 * Debian's files carry the version in their name (libtorch_cpu.so.1.13), so the module list is searched by
 * stem and the path found there is opened, never a name of our own.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "preload/hook/hook.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

static unsigned long long adds_seen; /* only one attach runs at a time: boot.c */
static void *library;

static int adds_now(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    *(unsigned long long *)context = info->dlpi_adds;
    return 1;
}

bool kp_torch_has(const char *symbol) { return library && dlsym(library, symbol); }

/* The host's, where it has its own: what torch allocates by it must be given back to it. */
static void *cpp_find(const char *symbol)
{
    void *found = dlsym(RTLD_DEFAULT, symbol);
    return found ? found : dlsym(library, symbol);
}

static void cpp_look_up(struct kp_torch_api *api)
{
    const bool is_new = kp_torch_has("_ZN5torch3jit22currentModuleHierarchyB5cxx11Ev");
    *(void **)&api->modules = dlsym(library, is_new ? "_ZN5torch3jit22currentModuleHierarchyB5cxx11Ev"
                                                    : "_ZN5torch3jit22currentModuleHierarchyEv");
    *(void **)&api->text_drop =
        dlsym(library, is_new ? "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED1Ev" : "_ZNSsD1Ev");
    *(void **)&api->block_drop = cpp_find("_ZdlPv");
    *(void **)&api->set_register = dlsym(library, "_Unwind_SetGR");
    *(void **)&api->set_place = dlsym(library, "_Unwind_SetIP");
    *(void **)&api->catch_begin = dlsym(library, "__cxa_begin_catch");
    *(void **)&api->catch_end = dlsym(library, "__cxa_end_catch");
}

static void look_up(struct kp_torch_api *api)
{
#define KP_TORCH_SYMBOL(member, text) *(void **)&api->member = dlsym(library, text);
#include "preload/torch/symbols.def"
#undef KP_TORCH_SYMBOL
    const char *options = kp_torch_has("_ZN2at11show_configB5cxx11Ev") ? "_ZN6caffe215GetBuildOptionsB5cxx11Ev"
                                                                       : "_ZN6caffe215GetBuildOptionsEv";
    *(void **)&api->build_options = dlsym(library, options);
    cpp_look_up(api);
    dlerror(); /* a failed look-up of ours is not the host's news */
}

bool kp_torch_find(struct kp_torch_api *api)
{
    char path[4096];
    unsigned long long adds = 0;
    dl_iterate_phdr(adds_now, &adds);
    if (adds == adds_seen) return false; /* nothing came since the last look */
    if (!kp_library_find("libtorch_cpu", path, sizeof path)) {
        adds_seen = adds;
        return false;
    }
    /* Waits until an import that is loading it on another thread has run its initialisers. */
    library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return false;
    look_up(api);
    return true;
}

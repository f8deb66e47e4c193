// SPDX-License-Identifier: Apache-2.0
/*
 * torch_find.c - finds libtorch_cpu in this process, and its functions
 *
 * Called by: torch_source.c when modules changed (boot's thread or the host's, outside hooks). Cold.
 * Owns:      one reference to libtorch_cpu, never dropped: torch and this library hold pointers to each other.
 * On fail:   false; torch_source.c asks again when modules were added. Never loads a library. A torch that is linked
 *            into the executable statically is not found.
 *
 * Debian's file names carry the version (libtorch_cpu.so.1.13). So the module list is searched by stem, and the
 * path found there is opened.
 */
#include <dlfcn.h>
#include <link.h>

#include "preload/hook/hook.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

static unsigned long long adds_seen; /* no lock: begin.c runs one attach at a time */
static void *library;

static int adds_now(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    *(unsigned long long *)context = info->dlpi_adds;
    return 1;
}

void *kp_torch_symbol(const char *symbol)
{
    void *found = library ? dlsym(library, symbol) : NULL;
    dlerror(); /* clears our failed look-up, so that the host does not read it */
    return found;
}

bool kp_torch_has(const char *symbol) { return kp_torch_symbol(symbol) != NULL; }

/* Prefers the host's own definition (operator delete): torch allocates by the host's operator new. */
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
#define KP_TORCH_SYMBOL(declaration, member, text) *(void **)&api->member = dlsym(library, text);
#include "preload/torch/find/torch_symbols.def"
#undef KP_TORCH_SYMBOL
    const char *options = kp_torch_has("_ZN2at11show_configB5cxx11Ev") ? "_ZN6caffe215GetBuildOptionsB5cxx11Ev"
                                                                       : "_ZN6caffe215GetBuildOptionsEv";
    *(void **)&api->build_options = dlsym(library, options);
    cpp_look_up(api);
    /* A program that is linked with torch may have a copy of this object, which then is everybody's (R_X86_64_COPY). */
    const void *const copy = dlsym(RTLD_DEFAULT, "_ZN3c1019UndefinedTensorImpl10_singletonE");
    if (copy) api->undefined_tensor = copy;
    dlerror(); /* clears our failed look-up, so that the host does not read it */
}

bool kp_torch_find(struct kp_torch_api *api)
{
    char path[4096];
    unsigned long long adds = 0;
    dl_iterate_phdr(adds_now, &adds);
    if (adds == adds_seen) return false; /* no module was added since the last call */
    if (!kp_library_find("libtorch_cpu", path, sizeof path)) {
        adds_seen = adds;
        return false;
    }
    /* Waits for a thread that is loading libtorch_cpu, until its initialisers have run. */
    library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return false;
    look_up(api);
    return true;
}

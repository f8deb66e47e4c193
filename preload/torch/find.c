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
 * prefix and the path found there is opened, never a name of our own.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

#define LIBRARY "libtorch_cpu.so"

struct search {
    char path[4096];
    bool found;
};
static unsigned long long adds_seen; /* only one attach runs at a time: boot.c */
static void *library;

static int search_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *s = context;
    (void)size;
    if (info->dlpi_adds == adds_seen) return 1; /* nothing came since the last look */
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    const char *base = slash ? slash + 1 : info->dlpi_name;
    if (!base || strncmp(base, LIBRARY, sizeof LIBRARY - 1) != 0) return 0;
    size_t len = strlen(info->dlpi_name);
    if (len >= sizeof s->path) return 0;
    memcpy(s->path, info->dlpi_name, len + 1);
    s->found = true;
    return 1;
}

static int adds_now(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    *(unsigned long long *)context = info->dlpi_adds;
    return 1;
}

bool kp_torch_has(const char *symbol)
{
    return library && dlsym(library, symbol);
}

static void look_up(struct kp_torch_api *api)
{
#define KP_TORCH_SYMBOL(member, text) *(void **)&api->member = dlsym(library, text);
#include "preload/torch/symbols.def"
#undef KP_TORCH_SYMBOL
    const char *options = kp_torch_has("_ZN2at11show_configB5cxx11Ev") ? "_ZN6caffe215GetBuildOptionsB5cxx11Ev"
                                                                      : "_ZN6caffe215GetBuildOptionsEv";
    *(void **)&api->build_options = dlsym(library, options);
    dlerror(); /* a failed look-up of ours is not the host's news */
}

bool kp_torch_find(struct kp_torch_api *api)
{
    struct search s;
    unsigned long long adds = 0;
    s.found = false;
    dl_iterate_phdr(adds_now, &adds);
    dl_iterate_phdr(search_module, &s);
    if (!s.found) {
        adds_seen = adds;
        return false;
    }
    /* Waits until an import that is loading it on another thread has run its initialisers. */
    library = dlopen(s.path, RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return false;
    look_up(api);
    return true;
}

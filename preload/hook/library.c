// SPDX-License-Identifier: Apache-2.0
/*
 * library.c - finds a library in the link map by the stem of its file name
 *
 * Called by: sources that look for their library, when modules changed. Cold, outside hooks.
 * Locks:     the loader's list, for moments. Memory: none.
 * On fail:   false
 */
#include <link.h>
#include <string.h>

#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

static int number_at(const char **p)
{
    int n = -1;
    for (; **p >= '0' && **p <= '9' && n < 1000000; ++*p) n = (n < 0 ? 0 : n) * 10 + (**p - '0');
    return n;
}

bool kp_library_parse(const char *path, const char *stem, size_t *folder_bytes, int *major, int *minor)
{
    const char *slash = strrchr(path, '/');
    const char *p = slash ? slash + 1 : path;
    size_t len = strlen(stem);
    if (strncmp(p, stem, len) != 0) return false;
    p += len;
    if (*p == '-') p += 1 + strspn(p + 1, "0123456789abcdef"); /* as in old torch wheels: libcudart-d0da41ae.so.11.0 */
    if (strncmp(p, ".so", 3) != 0) return false;
    p += 3;
    if (*p && *p != '.') return false;
    *folder_bytes = slash ? (size_t)(slash - path) : 0;
    *major = *minor = -1;
    if (*p == '.') p++;
    *major = number_at(&p);
    if (*p == '.') p++;
    *minor = number_at(&p);
    return true;
}

struct library_search {
    const char *stem;
    char *path;
    size_t bytes;
    uintptr_t inside;
};

static int search_address(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct library_search *s = context;
    size_t folder;
    int major, minor;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && s->inside - info->dlpi_addr - p->p_vaddr < p->p_memsz)
            return info->dlpi_name && kp_library_parse(info->dlpi_name, s->stem, &folder, &major, &minor) ? 2 : 1;
    }
    return 0;
}

bool kp_library_has(const char *stem, const void *inside)
{
    struct library_search s = {.stem = stem, .inside = (uintptr_t)inside};
    return dl_iterate_phdr(search_address, &s) == 2;
}

static int search_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct library_search *s = context;
    size_t folder;
    int major, minor;
    (void)size;
    if (!info->dlpi_name || !kp_library_parse(info->dlpi_name, s->stem, &folder, &major, &minor)) return 0;
    const size_t n = strlen(info->dlpi_name);
    if (n >= s->bytes) return 0;
    memcpy(s->path, info->dlpi_name, n + 1);
    return 1;
}

bool kp_library_find(const char *stem, char *path, size_t bytes)
{
    struct library_search s = {.stem = stem, .path = path, .bytes = bytes};
    return dl_iterate_phdr(search_module, &s);
}

// SPDX-License-Identifier: Apache-2.0
/* oomfiles.c - finds and reads the files that KPROF_ON_OOM wrote */
#include "export/answers/memory/oomfiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_path.h"
#include "export/read/kineto/kineto.h"

enum { FILE_MOST = 1 << 20, PATH_MOST = 4400 }; /* the library writes 256 KB at most */

bool kp_oomfile_is(const char *path)
{
    const char *const name = kp_path_base(path);
    const size_t bytes = strlen(name);
    return strncmp(name, "oom-", 4) == 0 && bytes > 9 && strcmp(name + bytes - 5, ".json") == 0;
}

bool kp_oomfile_read(struct kp_oom *out, const char *path, const char **why)
{
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char *const text = kp_kineto_zeros(FILE_MOST, 1);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, FILE_MOST - 1);
    *out = (struct kp_oom){0};
    *why = n < 0 ? strerror(errno) : "it is empty";
    if (fd >= 0) close(fd);
    const bool is_read = n > 0 && kp_oom_read(out, text, (size_t)n, why);
    free(text);
    return is_read;
}

static int is_oom_name(const struct dirent *entry) { return kp_oomfile_is(entry->d_name); }

/* The text behind the time: the host, the rank and the process. */
static const char *process_of(const char *name)
{
    const char *const dash = strchr(name + 4, '-');
    return dash ? dash : name;
}

static bool is_older(struct dirent **entries, int at, int count)
{
    for (int i = at + 1; i < count; i++)
        if (strcmp(process_of(entries[i]->d_name), process_of(entries[at]->d_name)) == 0) return true;
    return false;
}

size_t kp_oomfile_each(const char *folder, kp_oomfile_fn fn, void *context)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, is_oom_name, alphasort);
    size_t told = 0;
    for (int i = count - 1; i >= 0; i--) {
        char path[PATH_MOST];
        struct kp_oom oom = {0};
        const char *why;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (!is_older(entries, i, count) && kp_oomfile_read(&oom, path, &why)) fn(context, &oom), told++;
        kp_oom_fini(&oom);
    }
    for (int i = 0; i < count; i++) free(entries[i]);
    if (count >= 0) free(entries);
    return told;
}

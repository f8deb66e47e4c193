// SPDX-License-Identifier: Apache-2.0
/* jobends.c - how processes of a job ended, as their launcher was told (preload/finish/childends.c) */
#include "export/read/folder/jobends.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/read/folder/endnote.h"
#include "export/read/folder/trace_source.h"

static void line_take(struct kp_jobends *ends, const char *line)
{
    struct kp_jobend e = {0};
    long long at_ns;
    int status;
    if (sscanf(line, "%ld %d %lld", &e.pid, &status, &at_ns) != 3 || e.pid <= 0) return;
    e.at_ns = at_ns;
    if (WIFSIGNALED(status)) (void)kp_endnote_signal(WTERMSIG(status), e.by, sizeof e.by);
    else snprintf(e.by, sizeof e.by, "exit status %d", WEXITSTATUS(status));
    *KP_KINETO_NEXT(ends->of, ends->count, ends->capacity) = e;
}

void kp_jobends_read(struct kp_jobends *ends, const char *folder)
{
    char line[128];
    DIR *const names = opendir(folder);
    for (const struct dirent *entry; names && (entry = readdir(names));) {
        if (!kp_input_has_end(entry->d_name, ".ends")) continue;
        const int fd = openat(dirfd(names), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        FILE *const file = fd < 0 ? NULL : fdopen(fd, "r");
        while (file && fgets(line, sizeof line, file)) line_take(ends, line);
        if (file) fclose(file);
        else if (fd >= 0) close(fd);
    }
    if (names) closedir(names);
}

const struct kp_jobend *kp_jobends_find(const struct kp_jobends *ends, long pid)
{
    const struct kp_jobend *found = NULL;
    for (size_t i = 0; i < ends->count; i++)
        if (ends->of[i].pid == pid && (!found || ends->of[i].at_ns > found->at_ns)) found = &ends->of[i];
    return found;
}

void kp_jobends_fini(struct kp_jobends *ends)
{
    free(ends->of);
    *ends = (struct kp_jobends){0};
}

// SPDX-License-Identifier: Apache-2.0
/* watch.c - preloaded behind libkprof: at the end of the process, after its destructor, what of its threads and
 * descriptors is left */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OURS_FROM = 100 }; /* libkprof moves its descriptors there */

/* How many of this folder's entries are ours. */
static int count(const char *folder, int are_threads)
{
    char path[300], line[64];
    struct dirent *e;
    int n = 0;
    DIR *d = opendir(folder);
    while (d && (e = readdir(d))) {
        if (!are_threads) {
            n += atoi(e->d_name) >= OURS_FROM;
            continue;
        }
        snprintf(path, sizeof path, "%s/%s/comm", folder, e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(line, sizeof line, f) && !strncmp(line, "kprof-", 6)) n++;
        if (f) fclose(f);
    }
    if (d) closedir(d);
    return n;
}

__attribute__((destructor)) static void look(void)
{
    const char *file = getenv("WATCH_FILE"), *most = getenv("WATCH_MOST");
    char line[64];
    if (!file) return;
    /* one of ours was told to end, and is at it; one that was just made has no name yet: twice in a row there must be
     * none */
    for (int i = 0, none = 0; i < 300 && none < 2; i++, usleep(10000))
        none = count("/proc/self/task", 1) ? 0 : none + 1;
    /* more than there are by rights may be at it for long, on a busy disk */
    for (int i = 0; i < 3000 && most && count("/proc/self/task", 1) > atoi(most); i++) usleep(10000);
    snprintf(line, sizeof line, "%d %d\n", count("/proc/self/fd", 0), count("/proc/self/task", 1));
    int fd = open(file, O_WRONLY | O_APPEND);
    if (fd >= 0 && write(fd, line, strlen(line)) > 0) close(fd);
}

// SPDX-License-Identifier: Apache-2.0
/* fewfiles.c - allows itself as few descriptors as its second argument says, and uses all of them: FOLDER NUMBER [late:
 * when it was recorded for a while] */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/hosts/torch_late.h"

static void ops(int n)
{
    struct mini_range r;
    for (int i = 0; i < n; i++) {
        begin(&r, "aten::add", 0);
        free(malloc((size_t)i + 1));
        end(&r);
    }
}

static void limit(rlim_t n)
{
    struct rlimit few = {n, n};
    printf("limited %d\n", setrlimit(RLIMIT_NOFILE, &few));
}

int main(int argc, char **argv)
{
    const rlim_t n = argc > 2 ? (rlim_t)atoi(argv[2]) : 4;
    const int is_late = argc > 3;
    int made = 0, fds[256];
    if (!is_late) limit(n);
    load(argv[1]);
    ops(500);
    if (is_late) usleep(100000), limit(n);
    int file = open("/dev/null", O_RDONLY);
    printf("file %d\n", file);
    close(file);
    printf("library %d\n", dlopen("libresolv.so.2", RTLD_NOW) != NULL);
    while (made < 256 && (fds[made] = dup(1)) >= 0) made++;
    printf("%d of %d\n", made, (int)n);
    ops(500);
    while (made) close(fds[--made]);
    file = open("/dev/null", O_RDONLY);
    printf("file %d\n", file);
    return 5;
}

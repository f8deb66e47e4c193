// SPDX-License-Identifier: Apache-2.0
/* about.c - kprof --version: the command's version and commit, the library it would preload and its build id */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "export/cli/cli.h"
#include "export/cli/elfhead.h"

#ifndef KP_COMMIT
#define KP_COMMIT "unknown" /* neither a git tree nor the tarball of `make dist` */
#endif

int kp_cli_version(void)
{
    char library[4096], build_id[KP_BUILD_ID_TEXT] = "-";
    const bool is_there = kp_cli_library(library, sizeof library);
    const int fd = is_there ? open(library, O_RDONLY | O_CLOEXEC) : -1;
    const int rc = fd >= 0 ? kp_elfhead_build_id(fd, build_id) : -1;
    if (fd >= 0) close(fd);
    printf("kprof %s (commit %s)\n", KP_VERSION, KP_COMMIT);
    if (rc == 0) printf("%s (build id %s)\n", library, build_id);
    else printf("libkprof.so not found: %s\n", library);
    return KP_EXIT_DONE;
}

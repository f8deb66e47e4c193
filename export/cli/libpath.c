// SPDX-License-Identifier: Apache-2.0
/* libpath.c - where libkprof.so lies, seen from this program */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/cli/cli.h"

#ifdef __aarch64__
#define MULTIARCH "aarch64-linux-gnu" /* Debian's folder of libraries */
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif

bool kp_cli_library(char *out, size_t size)
{
    static const char *const places[] = {"libkprof.so", "../lib/libkprof.so", "../lib64/libkprof.so",
                                         "../lib/" MULTIARCH "/libkprof.so"};
    const char *const named = getenv("KPROF_LIB");
    char self[2048], path[2200];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (named && *named) {
        char *const full = realpath(named, NULL);
        snprintf(out, size, "%s", full ? full : named);
        free(full);
        return access(out, R_OK) == 0;
    }
    if (n <= 0) return snprintf(out, size, "beside kprof"), false;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *full;
        snprintf(path, sizeof path, "%s/%s", self, places[i]);
        full = realpath(path, NULL);
        if (!full) continue;
        snprintf(out, size, "%s", full);
        free(full);
        return true;
    }
    snprintf(out, size, "%s/libkprof.so or %s/../lib/libkprof.so", self, self);
    return false;
}

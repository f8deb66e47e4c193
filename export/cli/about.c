// SPDX-License-Identifier: Apache-2.0
/* about.c - kprof --version and kprof path: version and commit, the library that is preloaded and its build id */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/cli/cli.h"
#include "export/read/symbols/elfhead.h"

/* ---- where libkprof.so lies, seen from this program ---- */

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

#ifndef KP_COMMIT
#define KP_COMMIT "unknown" /* neither a git tree nor the tarball of `make dist` */
#endif

/* NULL: it cannot be read, or has none. */
static const char *build_id_of(const char *library, char room[KP_BUILD_ID_TEXT])
{
    const int fd = open(library, O_RDONLY | O_CLOEXEC);
    const int rc = fd >= 0 ? kp_elfhead_build_id(fd, room) : -1;
    if (fd >= 0) close(fd);
    return rc == 0 ? room : NULL;
}

int kp_cli_version(void)
{
    char library[4096], room[KP_BUILD_ID_TEXT];
    const char *const build_id = kp_cli_library(library, sizeof library) ? build_id_of(library, room) : NULL;
    printf("kprof %s (commit %s)\n", KP_VERSION, KP_COMMIT);
    if (build_id) printf("%s (build id %s)\n", library, build_id);
    else printf("libkprof.so not found: %s\n", library);
    return KP_EXIT_DONE;
}

#define PATH(F, IF)                   \
    F(TEXT, library, (const char *)r) \
    F(TEXT, version, KP_VERSION)      \
    F(TEXT, commit, KP_COMMIT)        \
    F(SOME, build_id, build_id_of((const char *)r, room))
KP_FIELDS(path, void, PATH)

const struct kp_fields *const kp_path_schema = &path_fields;

int kp_cmd_path(int argc, char **argv)
{
    static const struct kp_opt flags[] = {
        {"json", 0, KP_OPT_FLAG, NULL, "with version and build id, as JSON", KP_OPT_ALONE}, {0}};
    struct kp_opt_scan scan = {.command = "path", .table = flags, .argc = argc, .argv = argv, .at = 1};
    char library[4096];
    bool is_json = false;
    const int i = kp_opt_flags(&scan, &is_json, NULL);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (scan.count) return kp_cli_misuse("path", "takes no argument");
    if (!kp_cli_library(library, sizeof library)) {
        fprintf(stderr, "kprof: libkprof.so not found: %s\n", library);
        return KP_EXIT_BAD_INPUT;
    }
    if (is_json) kp_fields_line(stdout, &path_fields, library);
    else puts(library);
    return KP_EXIT_DONE;
}

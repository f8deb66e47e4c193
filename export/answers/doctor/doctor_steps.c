// SPDX-License-Identifier: Apache-2.0
/* doctor_steps.c - runs a program to see what counts its steps; nothing is recorded */
#include "export/answers/doctor/doctor.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEVER "wait=1000000,warmup=1,active=1"
#define SAID "no trace: "

static void variables_set(const char *library, const char *folder)
{
    const char *const old = getenv("LD_PRELOAD");
    char list[8192], path[4200];
    snprintf(list, sizeof list, "%s%s%s", library, old && *old ? ":" : "", old ? old : "");
    setenv("LD_PRELOAD", list, 1);
    snprintf(path, sizeof path, "%s/lines", folder);
    setenv("KPROF_LOG", path, 1);
    setenv("KPROF_DIR", folder, 1);
    setenv("KPROF_SCHEDULE", NEVER, 1);
    unsetenv("KPROF_PHASES");
    unsetenv("KPROF_CONTROL");
}

/* Takes from each line what follows SAID, without the number of steps that this schedule needs. */
static void lines_take(FILE *file, char *out, size_t bytes)
{
    char *line = NULL;
    size_t room = 0, used = 0;
    while (getline(&line, &room, file) > 0) {
        const char *said = strstr(line, SAID), *needs = said ? strstr(said, ", the schedule needs ") : NULL;
        const char *rest = needs ? strchr(needs, ':') : NULL;
        if (!rest) continue;
        said += strlen(SAID);
        const int n = snprintf(out + used, bytes - used, "%.*s%s", (int)(needs - said), said, rest);
        if (n < 0 || (size_t)n >= bytes - used) break;
        used += (size_t)n;
    }
    out[used] = 0;
    free(line);
}

static int leave(const char *path, const struct stat *st, int type, struct FTW *place)
{
    (void)st;
    (void)type;
    (void)place;
    (void)remove(path);
    return 0;
}

static int run(const char *library, const char *folder, char *const argv[])
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        variables_set(library, folder);
        execvp(argv[0], argv);
        _exit(errno == ENOENT ? 127 : 126);
    }
    if (child < 0) return -errno;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return 0;
}

int kp_doctor_steps(const char *library, char *const argv[], char *out, size_t bytes)
{
    const char *const place = getenv("TMPDIR");
    char folder[4096], path[4200];
    out[0] = 0;
    snprintf(folder, sizeof folder, "%s/kprof-doctor-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(folder)) return -errno;
    snprintf(path, sizeof path, "%s/lines", folder);
    const int rc = run(library, folder, argv);
    FILE *const file = fopen(path, "re");
    if (file) {
        lines_take(file, out, bytes);
        fclose(file);
    }
    nftw(folder, leave, 8, FTW_DEPTH | FTW_PHYS);
    return rc;
}

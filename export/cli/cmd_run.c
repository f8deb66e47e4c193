// SPDX-License-Identifier: Apache-2.0
/* cmd_run.c - kprof run: sets the variables, preloads the library, becomes the program */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/cli/setting_flags.h"

/* Puts the library before other preloaded libraries. */
static int preload_set(const char *library)
{
    const char *const old = getenv("LD_PRELOAD");
    char *text;
    int rc;
    if (strpbrk(library, " :"))
        return kp_cli_fail(
            "run",
            "%s has a space or colon in its path, which LD_PRELOAD cannot hold; put a copy elsewhere and set KPROF_LIB",
            library);
    if (asprintf(&text, "%s%s%s", library, old && *old ? ":" : "", old ? old : "") < 0)
        return kp_cli_fail("run", "out of memory");
    rc = setenv("LD_PRELOAD", text, 1);
    free(text);
    return rc ? kp_cli_fail("run", "LD_PRELOAD cannot be set: %s", strerror(errno)) : KP_EXIT_DONE;
}

/* Makes the path absolute: all processes of the run write the same file, also those started in other folders. */
static const char *log_anchored(const char *value)
{
    static char path[8192], folder[4096];
    if (value[0] == '/' || strcmp(value, "stderr") == 0 || strcmp(value, "none") == 0 || !getcwd(folder, sizeof folder))
        return value;
    return (size_t)snprintf(path, sizeof path, "%s/%s", folder, value) < sizeof path ? path : value;
}

/* 0, an exit code, or KP_OPT_HELP. */
static int flags_take(struct kp_opt_scan *scan)
{
    struct kp_config *const config = kp_setting_flags_read();
    const char *value, *wrong;
    int i;
    while ((i = kp_opt_next(scan, &value)) >= 0) {
        wrong = kp_setting_flags_set(config, (enum kp_config_index)i, value);
        if (wrong) return kp_cli_misuse("run", "--%s: %s", scan->table[i].name, wrong);
        setenv(kp_config_rows[i].name, i == KP_SET_log ? log_anchored(value) : value, 1);
    }
    if (i == KP_OPT_HELP) return i;
    return i == KP_OPT_BAD ? KP_EXIT_USAGE : KP_EXIT_DONE;
}

int kp_cmd_run(int argc, char **argv)
{
    struct kp_opt_scan scan = {
        .command = "run", .table = kp_setting_flags(), .argc = argc, .argv = argv, .at = 1, .stop_at_argument = true};
    char library[4096], path[4096], why[4600];
    int rc;
    rc = flags_take(&scan);
    if (rc == KP_OPT_HELP) return kp_cli_help("run", scan.table);
    if (rc) return rc;
    if (scan.at >= argc) return kp_cli_misuse("run", "no command to run");
    rc = kp_target_check(argv[scan.at], path, sizeof path, why, sizeof why);
    if (rc) return kp_cli_fail("run", "%s", why), rc;
    if (!kp_cli_library(library, sizeof library))
        return kp_cli_fail("run", "libkprof.so is not there (%s); KPROF_LIB names another place", library);
    rc = preload_set(library);
    if (rc) return rc;
    /* The program keeps this pid: by it the library knows the process whose user waits for a line (finish.c). */
    snprintf(why, sizeof why, "%d", (int)getpid());
    setenv("KPROF_RUN_PID", why, 1);
    execvp(argv[scan.at], argv + scan.at);
    rc = errno == ENOENT ? 127 : 126;
    kp_cli_fail("run", "%s: %s", argv[scan.at], strerror(errno));
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
/* cmd_hang.c - kprof hang: of a job that stands still, which rank at which line, and what the others wait for */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "export/answers/hang/hangprint.h"
#include "export/cli/cli.h"
#include "export/cli/ctl/whereask.h"

enum { BETWEEN_MS = 500 }; /* two looks */

static const struct kp_opt flags[] = {
    {"now", 0, KP_OPT_FLAG, NULL, "ask running processes alone, and read no file of KPROF_HANG"},
    {"json", 0, KP_OPT_FLAG, NULL, "a line of JSON"},
    {0}};

/* What ends between two looks tells that the job goes on. */
static int look_twice(struct kp_hang *before, struct kp_hang *now, const char *folder)
{
    const struct timespec pause = {.tv_nsec = BETWEEN_MS * 1000000L};
    if (kp_where_ask_all(before, folder) < 0) return -1;
    (void)nanosleep(&pause, NULL);
    return kp_where_ask_all(now, folder);
}

static int tell(const char *folder, bool is_json, bool is_now)
{
    struct kp_hang before = {0}, now = {0};
    struct kp_hang_verdict verdict;
    int elsewhere = look_twice(&before, &now, folder);
    if (elsewhere >= 0 && !is_now && (!now.count || elsewhere) && kp_where_files(&now, folder)) elsewhere = 0;
    if (elsewhere < 0 && errno == ENOENT)
        return kp_cli_fail("hang",
                           "%s: no such folder; name the output folder of a job that was started by kprof run "
                           "--control",
                           folder);
    if (elsewhere < 0) return kp_cli_fail("hang", "%s: %s", folder, strerror(errno));
    if (elsewhere > 0) kp_cli_fail("hang", "%s: %d sockets of other machines: also run this there", folder, elsewhere);
    const bool is_any = now.count > 0;
    if (!is_any)
        kp_cli_fail("hang",
                    "%s: no process of this machine listens there. kprof why tells how one ended; kprof run --control "
                    "makes one listen",
                    folder);
    kp_hang_judge(&verdict, &now, &before);
    if (is_any && is_json) kp_hang_json(stdout, &now, &verdict);
    else if (is_any) kp_hang_print(stdout, &now, &verdict);
    kp_hang_verdict_fini(&verdict);
    kp_hang_fini(&before);
    kp_hang_fini(&now);
    return is_any ? KP_EXIT_DONE : KP_EXIT_BAD_INPUT;
}

int kp_cmd_hang(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "hang", .table = flags, .argc = argc, .argv = argv, .at = 1};
    const char *value, *folder = NULL;
    bool is_json = false, is_now = false;
    int i;
    while ((i = kp_opt_next(&scan, &value)) != KP_OPT_END) {
        switch (i) {
        case 0: is_now = true; break;
        case 1: is_json = true; break;
        case KP_OPT_ARGUMENT:
            if (folder) return kp_cli_misuse("hang", "takes one folder");
            folder = value;
            break;
        case KP_OPT_HELP: return kp_cli_help("hang", flags);
        default: return KP_EXIT_USAGE;
        }
    }
    return tell(folder ? folder : "kprof", is_json, is_now);
}

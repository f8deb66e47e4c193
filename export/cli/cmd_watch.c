// SPDX-License-Identifier: Apache-2.0
/* cmd_watch.c - kprof watch: the steps of a running program, from the lines of KPROF_SUMMARY */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "export/answers/watch/watch.h"
#include "export/cli/cli.h"
#include "export/answers/memory/oomfiles.h"

struct watching {
    const char *dir;
    bool is_once, is_json;
    long interval_s;
};
#define INTO(member) KP_OPT_INTO(struct watching, member)
static const struct kp_opt flags[] = {
    {"once", 0, KP_OPT_FLAG, NULL, "print once (also where the output is no terminal)", INTO(is_once)},
    {"interval", 0, KP_OPT_VALUE, "S", "seconds between two looks (default 2)", 0},
    {"json", 0, KP_OPT_FLAG, NULL, "a line of JSON a look", INTO(is_json)},
    {0}};

static void oom_take(void *context, const struct kp_oom *oom)
{
    kp_watch_oom(context, oom->pid, oom->time_ms, oom->text);
}

/* Returns the exit code, or -1: the run goes on. */
static int look(const struct watching *wish)
{
    struct kp_watch w;
    const int rc = kp_watch_read(&w, wish->dir, kp_clock_ns(CLOCK_REALTIME));
    if (rc < 0) return kp_cli_fail("watch", "%s: %s", wish->dir, kp_cli_read_why(-rc));
    if (!w.count) {
        kp_watch_free(&w);
        return kp_cli_fail("watch",
                           "%s: no program with KPROF_SUMMARY=1 has ended a step there; kprof run --summary starts one",
                           wish->dir);
    }
    (void)kp_oomfile_each(wish->dir, oom_take, &w);
    const bool goes_on = kp_watch_goes_on(&w);
    if (wish->is_json) kp_watch_json(stdout, &w);
    else kp_watch_print(stdout, &w);
    fflush(stdout);
    kp_watch_free(&w);
    return goes_on ? -1 : KP_EXIT_DONE;
}

static int watch(const struct watching *wish)
{
    const bool is_screen = !wish->is_once && !wish->is_json && isatty(STDOUT_FILENO);
    int code;
    while ((code = look(wish)) < 0 && !wish->is_once && (is_screen || wish->is_json)) {
        sleep((unsigned)wish->interval_s);
        if (is_screen) fputs("\033[H\033[J", stdout);
    }
    return code < 0 ? KP_EXIT_DONE : code;
}

static int interval_take(void *wish, const struct kp_opt_scan *scan, int id, const char *value)
{
    (void)scan;
    (void)id;
    if (kp_opt_number(value, 1, &((struct watching *)wish)->interval_s)) return 0;
    return kp_cli_misuse("watch", "--interval: '%s' is no number of seconds from 1 on", value);
}

int kp_cmd_watch(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "watch", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct watching wish = {.interval_s = 2};
    const int i = kp_opt_flags(&scan, &wish, interval_take);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (scan.count > 1) return kp_cli_misuse("watch", "takes one folder");
    wish.dir = scan.count ? argv[0] : kp_config_rows[KP_SET_dir].fallback;
    return watch(&wish);
}

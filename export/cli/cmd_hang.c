// SPDX-License-Identifier: Apache-2.0
/* cmd_hang.c - kprof hang: of a job that stands still, which rank at which line, and what the others wait for */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "collector/base/sys/kp_path.h"
#include "export/answers/hang/hangprint.h"
#include "export/answers/stacks/calltree.h"
#include "export/answers/stacks/flame.h"
#include "export/cli/cli.h"
#include "export/answers/jobs/whereask.h"
#include "export/answers/jobs/stood.h"
#include "export/read/files/outfile.h"
#include "export/show/plain.h"

enum { BETWEEN_MS = 500 }; /* two looks */

struct hang_command {
    const char *target, *out;
    long pid; /* 0: the target is a folder */
    bool is_json, is_svg, is_now;
};
#define INTO(member) KP_OPT_INTO(struct hang_command, member)
static const struct kp_opt flags[] = {
    {"now", 0, KP_OPT_FLAG, NULL, "ask running processes alone, and read no file of KPROF_HANG", INTO(is_now)},
    {"json", 0, KP_OPT_FLAG, NULL, "a line of JSON", INTO(is_json)},
    {"svg", 0, KP_OPT_FLAG, NULL, "a flame graph: each thread in Python is one wide, at the end of its stack",
     INTO(is_svg)},
    {"out", 'o', KP_OPT_VALUE, "OUT",
     "write the flame graph to a file (default: stdout; on a terminal hang.svg in the folder)", INTO(out)},
    {0}};

static int look(struct kp_hang *hang, const struct hang_command *c)
{
    return c->pid ? kp_where_ask_pid(hang, c->pid) : kp_where_ask_all(hang, c->target);
}

/* An op that ends between two looks shows that the job goes on. */
static int look_twice(struct kp_hang *before, struct kp_hang *now, const struct hang_command *c)
{
    const struct timespec pause = {.tv_nsec = BETWEEN_MS * 1000000L};
    if (look(before, c) < 0) return -1;
    (void)nanosleep(&pause, NULL);
    return look(now, c);
}

/* A stack from the outermost frame on; what is behind it names the thread. */
static void thread_add(struct kp_calltree *tree, const struct kp_hang_process *p, const struct kp_hang_thread *t)
{
    char name[KP_HANG_BYTES];
    uint32_t at = 0;
    for (size_t i = t->frame_count; i-- > 0;) {
        const struct kp_hang_frame *const f = &t->frames[i];
        snprintf(name, sizeof name, "%s:%ld %s", kp_path_base(f->file), f->line, f->function);
        at = kp_calltree_child(tree, at, name);
    }
    if (*t->call.words) at = kp_calltree_child(tree, at, t->call.words);
    snprintf(name, sizeof name, "%s %ld%s%s", p->rank >= 0 ? "rank" : "process", p->rank >= 0 ? p->rank : p->pid,
             t->is_main ? "" : ", thread ", t->is_main ? "" : t->name);
    kp_calltree_add(tree, kp_calltree_child(tree, at, name), KP_PART_OTHER, 1);
}

/* A kp_path_fn: without the part, which begins it. */
static void path_add(void *context, const char *path, int64_t value)
{
    const char *const frames = strchr(path, ';');
    kp_flame_add(context, frames ? frames + 1 : path, value);
}

static int flame_put(const struct hang_command *c, const struct kp_hang *h, const struct kp_hang_verdict *v)
{
    const char *const path = kp_outfile_drawing(c->out, c->pid ? "." : c->target, "hang.svg");
    const struct kp_flame_show show = {.title = v->text, .unit = KP_FLAME_THREADS};
    struct kp_outfile file;
    if (kp_outfile_open(&file, path)) return kp_outfile_fail("hang", &file);
    struct kp_calltree *const tree = kp_calltree_open();
    struct kp_flame *const flame = kp_flame_open();
    for (size_t i = 0; i < h->count; i++)
        for (size_t k = 0; k < h->of[i].thread_count; k++)
            if (h->of[i].threads[k].is_main || h->of[i].threads[k].frame_count)
                thread_add(tree, &h->of[i], &h->of[i].threads[k]);
    kp_calltree_each(tree, 1, path_add, flame);
    kp_flame_write(flame, file.to, &show);
    kp_flame_close(flame);
    kp_calltree_close(tree);
    if (kp_outfile_close(&file, true)) return kp_outfile_fail("hang", &file);
    kp_outfile_tell_drawing(path);
    return KP_EXIT_DONE;
}

/* The files of processes that are gone, or are on other machines, have it: "it was stuck at 2026-11-29 02:11:40: ". */
static const char *when_text(const struct kp_hang *now, char *out, size_t bytes)
{
    struct tm parts;
    time_t at = 0;
    char when[32] = "";
    for (size_t i = 0; i < now->count; i++) {
        const struct kp_hang_process *const p = &now->of[i];
        if (!p->is_of_file) return "";
        if ((time_t)(p->time_ms / 1000) > at) at = (time_t)(p->time_ms / 1000);
    }
    if (localtime_r(&at, &parts)) strftime(when, sizeof when, " at %F %T", &parts);
    snprintf(out, bytes, "it was stuck%s: ", when);
    return out;
}

static int verdict_put(const struct hang_command *c, const struct kp_hang *now, const struct kp_hang *before)
{
    struct kp_hang_verdict verdict;
    char when[64];
    int rc = KP_EXIT_DONE;
    kp_hang_judge(&verdict, now, before);
    if (c->is_svg) rc = flame_put(c, now, &verdict);
    else if (c->is_json) kp_hang_json(stdout, now, &verdict);
    else fputs(when_text(now, when, sizeof when), stdout), kp_hang_print(stdout, now, &verdict);
    kp_hang_verdict_fini(&verdict);
    return rc;
}

static int refuse(const struct hang_command *c)
{
    if (c->pid) return kp_cli_fail("hang", "no process %ld listens; kprof run --control makes one listen", c->pid);
    if (errno != ENOENT) return kp_cli_fail("hang", "%s: %s", c->target, kp_cli_read_why(errno));
    return kp_cli_fail("hang", "%s: no such folder; name that of a job that kprof run --control started", c->target);
}

/* A process that does not listen has a spool, which says since when it has done nothing. */
static int silent_tell(const struct hang_command *c)
{
    struct kp_stuck_told told = {.what = ""};
    const bool has = !c->pid && !c->is_json && !c->is_svg && kp_stood_running(&told, c->target);
    if (has) kp_plain_fmt(stdout, "%s\n", told.what);
    if (has && told.stands) kp_plain_fmt(stdout, "  %s\n", told.next);
    if (has) return KP_EXIT_DONE;
    kp_cli_fail("hang",
                "%s: no process of it runs here with --control, and no file of --hang is there. If it still runs: "
                "py-spy dump --pid PID. If not: kprof why",
                c->target);
    return KP_EXIT_BAD_INPUT;
}

static int tell(const struct hang_command *c)
{
    struct kp_hang before = {0}, now = {0};
    int rc, elsewhere = look_twice(&before, &now, c);
    const bool has_files = elsewhere >= 0 && !c->is_now && !c->pid;
    if (has_files && (!now.count || elsewhere) && kp_where_files(&now, c->target)) elsewhere = 0;
    if (elsewhere < 0) return refuse(c);
    if (elsewhere > 0)
        kp_cli_fail("hang", "%s: %d sockets of other machines: also run this there", c->target, elsewhere);
    rc = now.count ? verdict_put(c, &now, &before) : silent_tell(c);
    kp_hang_fini(&before);
    kp_hang_fini(&now);
    return rc;
}

int kp_cmd_hang(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "hang", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct hang_command c = {0};
    struct stat st;
    const int i = kp_opt_flags(&scan, &c, NULL);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (scan.count > 1) return kp_cli_misuse("hang", "takes one folder or process");
    c.target = scan.count ? argv[0] : "kprof";
    c.is_svg |= c.out != NULL;
    if (c.is_svg && c.is_json) return kp_cli_misuse("hang", "--json and --svg do not go together");
    if (stat(c.target, &st) == 0 || !kp_opt_number(c.target, 1, &c.pid)) c.pid = 0;
    return tell(&c);
}

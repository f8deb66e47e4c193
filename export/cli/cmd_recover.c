// SPDX-License-Identifier: Apache-2.0
/* cmd_recover.c - kprof recover: the traces of processes that were killed */
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/cli/cli.h"
#include "export/cli/lines.h"
#include "export/cli/spool.h"

static const struct kp_opt flags[] = {
    {"keep", 0, KP_OPT_FLAG, NULL, "leave the spools where they are"},
    {"dir", 'o', KP_OPT_VALUE, "DIR", "folder for the traces (default: the folder of each spool)"},
    {"force", 0, KP_OPT_FLAG, NULL, "also spools that another machine wrote: is its process gone? That cannot be seen from here"},
    KP_LINES_OPTIONS("off"),
    {0}};

struct recovery {
    struct kp_spool_wish wish;
    bool keep, force;
    unsigned traces, removed, running, bad;
};

/* True when the spool may be taken. */
static bool is_free(struct recovery *r, const struct kp_file_head *head, const char *path)
{
    const enum kp_spool_state state = kp_spool_state(head, path);
    if (state == KP_SPOOL_RUNNING) {
        r->running++;
        kp_cli_say(stdout, "kprof: %s: process %u is still running, left alone", path, head->pid);
    }
    if (state == KP_SPOOL_FOREIGN_HOST && !r->force) {
        r->running++;
        kp_cli_say(stdout, "kprof: %s: written on %.64s, left alone; --force when that process is gone", path, head->host);
    }
    return state == KP_SPOOL_GONE || (state == KP_SPOOL_FOREIGN_HOST && r->force);
}

static void spool_remove(struct recovery *r, const char *path)
{
    if (r->keep) return;
    if (unlink(path) == 0)
        r->removed++;
    else
        kp_cli_say(stderr, "kprof recover: %s: cannot be removed: %s", path, strerror(errno));
}

/* What the process was writing when it was killed: FOLDER/.HOST_PID.*.part, for the spool FOLDER/HOST_PID.NANOSECONDS.kprof. */
static void parts_remove(const struct recovery *r, const char *path)
{
    const char *const slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
    const char *end = strrchr(name, '.');
    char pattern[4400];
    glob_t found;
    while (end && end > name && *--end != '.') continue;
    if (r->keep || !end || end == name || strpbrk(path, "*?[\\")) return;
    snprintf(pattern, sizeof pattern, "%.*s.%.*s.*.part", (int)(name - path), path, (int)(end - name), name);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++) unlink(found.gl_pathv[i]);
    globfree(&found);
}

static void spool_recover(struct recovery *r, const char *path)
{
    struct kp_reader *reader;
    char why[512] = "";
    int rc = kp_reader_open(&reader, path, why, sizeof why);
    if (rc < 0) {
        r->bad++;
        kp_cli_fail("recover", "%s", why);
        return;
    }
    if (is_free(r, kp_reader_head(reader), path)) {
        rc = kp_spool_write(reader, path, &r->wish);
        if (rc >= 0) kp_spool_losses(reader);
        if (rc == 0) kp_cli_say(stdout, "kprof: %s: holds no event, nothing to recover", path);
        if (rc < 0) r->bad++;
        if (rc > 0) r->traces += (unsigned)rc;
        if (rc >= 0) parts_remove(r, path);
        if (rc >= 0) spool_remove(r, path);
    }
    kp_reader_close(reader);
}

static int is_spool_name(const struct dirent *entry)
{
    const char *const dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".kprof") == 0;
}

/* What a killed program told its workers by: FOLDER/.HOST_PID-START.family. Of one that may still run it is needed. */
static void families_remove(const struct recovery *r, const char *folder)
{
    char pattern[4400], host[65] = "";
    glob_t found;
    gethostname(host, sizeof host - 1);
    if (r->keep || strpbrk(folder, "*?[\\") || strpbrk(host, "*?[\\")) return;
    snprintf(pattern, sizeof pattern, "%s/.%s_[0-9]*-*.family", folder, host);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *const pid = strrchr(found.gl_pathv[i], '_') + 1;
        if (!kp_spool_process_runs((uint32_t)strtoul(pid, NULL, 10))) unlink(found.gl_pathv[i]);
    }
    globfree(&found);
}

static void folder_recover(struct recovery *r, const char *path);

/* Workers keep their spools in a folder below. */
static void children_recover(struct recovery *r, const char *path)
{
    char below[4300];
    struct stat st;
    snprintf(below, sizeof below, "%s/children", path);
    if (stat(below, &st) != 0 || !S_ISDIR(st.st_mode)) return;
    folder_recover(r, below);
    families_remove(r, below);
}

static void folder_recover(struct recovery *r, const char *path)
{
    struct dirent **entries;
    const int count = scandir(path, &entries, is_spool_name, alphasort);
    if (count < 0) {
        r->bad++;
        kp_cli_fail("recover", "%s: %s", path, strerror(errno));
        return;
    }
    if (count == 0) kp_cli_say(stdout, "kprof: %s: no spool (*.kprof) in it", path);
    for (int i = 0; i < count; i++) {
        char *file;
        if (asprintf(&file, "%s/%s", path, entries[i]->d_name) > 0) {
            spool_recover(r, file);
            free(file);
        }
        free(entries[i]);
    }
    free(entries);
    children_recover(r, path);
}

static void path_recover(struct recovery *r, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        r->bad++;
        kp_cli_fail("recover", "%s: %s", path, strerror(errno));
    } else if (S_ISDIR(st.st_mode)) {
        folder_recover(r, path);
    } else {
        spool_recover(r, path);
    }
}

int kp_cmd_recover(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "recover", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct recovery r = {.wish = {.command = "recover", .gzip = -1}};
    struct kp_lines_wish lines_wish = {0};
    const char *value;
    int count = 0, i;
    while ((i = kp_opt_next(&scan, &value)) != KP_OPT_END) {
        switch (i) {
        case 0: r.keep = true; break;
        case 1: r.wish.dir = value; break;
        case 2: r.force = true; break;
        case 3:
        case 4: kp_lines_option(&lines_wish, flags[i].name, value); break;
        case KP_OPT_ARGUMENT: argv[count++] = (char *)value; break; /* that word was read already */
        case KP_OPT_HELP: return kp_cli_help("recover", flags);
        default: return KP_EXIT_USAGE;
        }
    }
    if (!count) return kp_cli_misuse("recover", "no folder and no spool given");
    struct kp_lines *lines = kp_lines_open("recover", &lines_wish);
    r.wish.places = kp_lines_places(lines);
    for (i = 0; i < count; i++) path_recover(&r, argv[i]);
    kp_lines_close(lines);
    if (r.traces + r.removed + r.running)
        printf("kprof: recovered %u traces, removed %u spools, left %u alone\n", r.traces, r.removed, r.running);
    return r.bad ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * beside.c - writes the files of KPROF_EXPORT beside a trace, by the commands that show the same
 *
 * Called by: cmd_run.c, as traces appear; spool_export.c, for a spool that is exported later
 * Owns:      the names of the traces that kp_beside_folder has seen
 * On fail:   the file does not exist, and no part of it; the trace exists
 */
#include "export/read/folder/beside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/sys/kp_path.h"
#include "export/show/say.h"
#include "export/show/units.h"
#include "export/kp_export.h"
#include "export/read/kineto/kineto.h"

static const struct beside_row {
    unsigned bit;
    const char *word, *end;
    const char *command, *flag;
} rows[] = {{KP_EXPORTS_TABLE, "table", ".table.txt", "report", "--torch"},
            {KP_EXPORTS_STACKS, "stacks", ".stacks.txt", "stacks", "--torch"},
            {KP_EXPORTS_MEMORY, "memory", ".memory.html", "memory", "--html"}};
enum { ROWS = sizeof rows / sizeof *rows };

unsigned kp_beside_parse(const char *list)
{
    static struct kp_config read;
    return kp_config_set(&read, KP_SET_exports, list) ? read.exports & ~(unsigned)KP_EXPORTS_NONE : 0;
}

const char *kp_beside_ends(unsigned which, bool is_first, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = 0;
    for (unsigned i = 0; i < ROWS; i++)
        if (which & rows[i].bit)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", is_first && !used ? "" : ", ", rows[i].end);
    return out;
}

/* DIR/NAME.end of DIR/NAME.pt.trace.json[.gz], or DIR/.NAME.end.part until it is whole. False: too long. */
static bool path_make(char *out, size_t size, const char *trace, const char *end, bool is_whole)
{
    const char *const name = kp_path_base(trace), *const json = strstr(name, ".pt.trace.json");
    const int dir = (int)(name - trace), bytes = json ? (int)(json - name) : (int)strlen(name);
    return snprintf(out, size, "%.*s%s%.*s%s%s", dir, trace, is_whole ? "" : ".", bytes, name, end,
                    is_whole ? "" : ".part") < (int)size;
}

/* ---- one file ---- */

/* The command in a process of its own: it has the limits of one file, and may end by an error. */
static void command_become(const struct beside_row *row, const char *trace, int out)
{
    char dir[4096];
    const char *const name = kp_path_base(trace);
    snprintf(dir, sizeof dir, "%.*s", name == trace ? 1 : (int)(name - trace), name == trace ? "." : trace);
    if (chdir(dir) != 0 || dup2(out, STDOUT_FILENO) < 0) _exit(KP_EXIT_BAD_INPUT);
    unsetenv("LD_PRELOAD");
    execl("/proc/self/exe", "kprof", row->command, row->flag, name, (char *)NULL);
    _exit(KP_EXIT_BAD_INPUT);
}

/* 0, or 1 where the command found nothing to write and said so, or -errno. */
static int command_run(const struct beside_row *row, const char *trace, int out)
{
    struct stat st;
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return -errno;
    if (child == 0) command_become(row, trace, out);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (!WIFEXITED(status)) return -EINTR;
    return WEXITSTATUS(status) != 0 || (fstat(out, &st) == 0 && st.st_size == 0);
}

static int file_write(const struct beside_row *row, const char *trace, const struct kp_export_owner *owner)
{
    char path[4200], part[4200];
    if (!path_make(path, sizeof path, trace, row->end, true) || !path_make(part, sizeof part, trace, row->end, false))
        return -ENAMETOOLONG;
    const int fd = kp_io_open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, owner ? 0600 : KP_IO_FILE_MODE);
    if (fd < 0) return fd;
    int rc = command_run(row, trace, fd);
    if (!rc && owner) rc = kp_io_give(fd, owner->uid, owner->gid, owner->mode);
    if (kp_io_close(fd) && !rc) rc = -EIO;
    if (!rc) rc = kp_io_rename_new(part, path);
    if (rc) kp_io_unlink(part);
    return rc;
}

int kp_beside_write(const char *trace, unsigned which, const struct kp_export_owner *owner, unsigned *made)
{
    int first = 0;
    *made = 0;
    for (unsigned i = 0; i < ROWS; i++) {
        if (!(which & rows[i].bit)) continue;
        const int rc = file_write(&rows[i], trace, owner);
        if (!rc) *made |= rows[i].bit;
        if (rc < 0 && !first) first = rc;
    }
    return first;
}

/* ---- those of a run ---- */

static struct {
    char **of;
    size_t count, capacity, made;
    unsigned ends; /* bits of what was written */
} seen;

static bool is_seen(const char *path)
{
    for (size_t i = 0; i < seen.count; i++)
        if (strcmp(seen.of[i], path) == 0) return true;
    *KP_KINETO_NEXT(seen.of, seen.count, seen.capacity) = kp_kineto_copy(path);
    return false;
}

static void trace_take(const char *path, unsigned which)
{
    unsigned made;
    if (is_seen(path)) return;
    const int rc = kp_beside_write(path, which, NULL, &made);
    if (rc) kp_cli_fail("run", "%s: not all that KPROF_EXPORT asked for beside it: %s", path, strerror(-rc));
    seen.ends |= made;
    seen.made += made != 0;
}

static void folder_take(const char *folder, unsigned which, long since_s)
{
    DIR *const names = opendir(folder);
    char path[4400];
    struct stat st;
    for (const struct dirent *entry; names && (entry = readdir(names));) {
        if (entry->d_name[0] == '.' || !strstr(entry->d_name, ".pt.trace.json")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mtim.tv_sec >= since_s) trace_take(path, which);
    }
    if (names) closedir(names);
}

void kp_beside_folder(const char *folder, unsigned which, long since_s)
{
    char children[4200];
    snprintf(children, sizeof children, "%s/children", folder);
    folder_take(folder, which, since_s);
    folder_take(children, which, since_s);
}

void kp_beside_say(unsigned which)
{
    char ends[64];
    if (seen.made)
        kp_cli_say(stderr, "kprof: beside %zu trace%s: %s", seen.made, kp_units_s(seen.made),
                   kp_beside_ends(seen.ends & which, true, ends, sizeof ends));
}

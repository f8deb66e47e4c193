// SPDX-License-Identifier: Apache-2.0
/* cmd_recover.c - kprof recover: the traces of processes that were killed */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_path.h"
#include "export/cli/cli.h"
#include "export/answers/jobs/ctlsocket.h"
#include "export/answers/jobs/recover_spool.h"
#include "export/read/files/spoolfile.h"
#include "export/read/folder/trace_source.h"
#include "export/read/symbols/lines.h"
#include "export/show/units.h"

struct recover_command {
    struct kp_recover r;
    struct kp_lines_options lines;
};
#define INTO(member) KP_OPT_INTO(struct recover_command, member)
static const struct kp_opt flags[] = {
    {"keep", 0, KP_OPT_FLAG, NULL, "leave the spools where they are", INTO(r.keep)},
    {"dir", 'o', KP_OPT_VALUE, "DIR", "folder for the traces (default: the folder of each spool)", INTO(r.wish.dir)},
    {"force", 0, KP_OPT_FLAG, NULL,
     "also spools that another machine wrote; whether its process is gone cannot be seen from here", INTO(r.force)},
    KP_LINES_OPTIONS("off", INTO(lines.lines), INTO(lines.debug_path)),
    {"json", 0, KP_OPT_FLAG, NULL, "say what was written, and the counts, as lines of JSON", INTO(r.wish.json)},
    {0}};

#define RECOVERED(F, IF)           \
    F(WHOLE, recovered, r->traces) \
    F(WHOLE, removed, r->removed)  \
    F(WHOLE, left, r->left)        \
    F(WHOLE, failed, r->bad)
KP_FIELDS(recovered, struct kp_recover, RECOVERED)

const struct kp_fields *const kp_recovered_schema = &recovered_fields;

static int is_spool_name(const struct dirent *entry) { return kp_input_has_end(entry->d_name, ".kprof"); }

/* A killed program's file for its workers, FOLDER/HOST_PID-START.family. A program that may still run needs it. */
static bool is_orphan(const void *unused, const char *rest)
{
    (void)unused;
    char *end;
    const unsigned long pid = strtoul(rest, &end, 10);
    return end != rest && *end == '-' && !kp_spool_process_runs((uint32_t)pid);
}

static void families_remove(const struct kp_recover *r, int dir)
{
    char host[65] = "", begin[80];
    gethostname(host, sizeof host - 1);
    snprintf(begin, sizeof begin, "%s_", host);
    if (!r->keep) kp_recover_names_remove(dir, begin, ".family", is_orphan, NULL);
}

struct socket_place {
    int dir;
    const char *begin, *ending;
};

/* The socket by which a killed program was asked, FOLDER/HOST_PID.sock, or HOST_PID.where. */
static bool is_dead_socket(const void *context, const char *rest)
{
    const struct socket_place *const place = context;
    char name[400], *end;
    struct stat st;
    const unsigned long pid = strtoul(rest, &end, 10);
    snprintf(name, sizeof name, "%s%s", place->begin, rest);
    return end != rest && strcmp(end, place->ending) == 0 && !kp_spool_process_runs((uint32_t)pid) &&
           fstatat(place->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

static void sockets_remove(const struct kp_recover *r, int dir)
{
    char host[65] = "", begin[80];
    const struct socket_place places[] = {{dir, begin, ".sock"}, {dir, begin, KP_CTLSOCKET_EARLY}};
    gethostname(host, sizeof host - 1);
    snprintf(begin, sizeof begin, "%s_", host);
    for (size_t i = 0; !r->keep && i < sizeof places / sizeof *places; i++)
        kp_recover_names_remove(dir, begin, places[i].ending, is_dead_socket, &places[i]);
}

static void fail(struct kp_recover *r, const char *path)
{
    r->bad++;
    kp_cli_fail("recover", "%s: %s", path, kp_cli_read_why(errno));
}

static bool spools_recover(struct kp_recover *r, const struct kp_recover_folder *folder)
{
    struct dirent **entries;
    const int count = scandirat(folder->dir, ".", &entries, is_spool_name, alphasort);
    if (count < 0) return fail(r, folder->path), false;
    if (count == 0) kp_cli_say(r->wish.json ? stderr : stdout, "kprof: %s: no spool (*.kprof) in it", folder->path);
    for (int i = 0; i < count; i++) {
        kp_recover_spool(r, folder, entries[i]->d_name, true);
        free(entries[i]);
    }
    free(entries);
    return true;
}

/* Workers keep their spools in a folder below. A link is not followed, since any user may have put it there. */
static void children_recover(struct kp_recover *r, const struct kp_recover_folder *above)
{
    char path[4300];
    struct kp_recover_folder below = {
        .dir = openat(above->dir, "children", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), .path = path};
    const int error = below.dir < 0 ? errno : 0;
    snprintf(path, sizeof path, "%s/children", above->path);
    if (error == ENOTDIR)
        kp_cli_say(r->wish.json ? stderr : stdout, "kprof: %s: is a link or no folder, left alone", path);
    else if (error && error != ENOENT) fail(r, path);
    if (error) return;
    if (fstat(below.dir, &below.st) != 0) fail(r, path);
    else if (spools_recover(r, &below)) families_remove(r, below.dir);
    close(below.dir);
}

/* Recovers the spool `name` of a folder, or with NULL all of them. */
static void folder_recover(struct kp_recover *r, const char *path, const char *name)
{
    struct kp_recover_folder folder = {.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .path = path};
    if (folder.dir < 0 || fstat(folder.dir, &folder.st) != 0) fail(r, path);
    else if (name) kp_recover_spool(r, &folder, name, false);
    else if (spools_recover(r, &folder)) {
        sockets_remove(r, folder.dir);
        children_recover(r, &folder);
    }
    if (folder.dir >= 0) close(folder.dir);
}

static void path_recover(struct kp_recover *r, const char *path)
{
    char above[4300];
    struct stat st;
    kp_path_folder(above, sizeof above, path);
    if (stat(path, &st) != 0) {
        fail(r, path);
        return;
    }
    kp_cli_join_dead(S_ISDIR(st.st_mode) ? path : above);
    if (S_ISDIR(st.st_mode)) folder_recover(r, path, NULL);
    else folder_recover(r, above, kp_path_base(path));
}

int kp_cmd_recover(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "recover", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct recover_command command = {.r = {.wish = {.command = "recover", .gzip = -1}}};
    struct kp_recover *const r = &command.r;
    const int end = kp_opt_flags(&scan, &command, NULL);
    if (end != KP_OPT_END) return kp_opt_ended(&scan, end);
    if (!scan.count) return kp_cli_misuse("recover", "name a folder, or a spool (*.kprof)");
    struct kp_lines *lines = kp_lines_open("recover", &command.lines);
    r->wish.places = kp_lines_places(lines);
    for (int i = 0; i < scan.count; i++) path_recover(r, argv[i]);
    kp_lines_close(lines);
    if (r->wish.json) kp_fields_line(stdout, &recovered_fields, r);
    else if (r->traces + r->removed + r->left)
        printf("kprof: recovered %u trace%s, removed %u spool%s (*.kprof), left %u alone\n", r->traces,
               kp_units_s(r->traces), r->removed, kp_units_s(r->removed), r->left);
    return r->bad ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
}

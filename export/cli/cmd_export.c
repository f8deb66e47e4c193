// SPDX-License-Identifier: Apache-2.0
/* cmd_export.c - kprof export: the traces of spools that were kept (KPROF_EXPORT=none) */
#include <string.h>
#include <sys/stat.h>

#include "export/answers/convert/convert.h"
#include "export/cli/cli.h"
#include "export/answers/jobs/latest.h"
#include "export/read/files/spoolfile.h"
#include "export/read/folder/beside.h"
#include "export/read/folder/run_folder.h"
#include "export/read/folder/spool_export.h"
#include "export/read/folder/written.h"
#include "export/read/symbols/lines.h"

struct export_command {
    struct kp_spool_export_options wish;
    struct kp_lines_options lines;
    const char *format; /* NULL: traces of spools */
};
#define INTO(member) KP_OPT_INTO(struct export_command, member)
enum { DIR, WORKER_NAME, GZIP, EXPORT, LINES, DEBUGINFO_PATH, FORMAT, JSON };
static const struct kp_opt flags[] = {
    [DIR] = {"dir", 'o', KP_OPT_VALUE, "DIR", "folder for the traces (default: the folder of the spool)",
             INTO(wish.dir)},
    [WORKER_NAME] = {"worker-name", 0, KP_OPT_VALUE, "NAME",
                     "first part of the file names (default: that of the run, or HOST_PID)", INTO(wish.worker_name)},
    [GZIP] = {"gzip", 0, KP_OPT_SWITCH, NULL, "write .json.gz or .json (default: as in the run)", 0},
    [EXPORT] = {"export", 0, KP_OPT_VALUE, "LIST",
                "any of trace,table,stacks,memory (default: as in the run; trace if that was none)", 0},
    KP_LINES_OPTIONS("off", INTO(lines.lines), INTO(lines.debug_path)),
    [FORMAT] = {"format", 0, KP_OPT_VALUE, "FORMAT",
                "perfetto, ndjson, speedscope or sqlite, of spools and traces; -o: the file", 0},
    [JSON] = {"json", 0, KP_OPT_FLAG, NULL, "say what was written as JSON, a line a file", INTO(wish.json)},
    {0}};

/* One spool is exported at a time if there is no --format. */
static int folder_refuse(const char *path)
{
    struct kp_run_folder folder = {.path = path};
    const int rc = kp_run_folder_read(&folder);
    size_t spools = 0;
    for (size_t i = 0; i < folder.count; i++) spools += folder.of[i].is_spool;
    const size_t traces = folder.count - spools;
    kp_run_folder_free(&folder);
    if (rc) return kp_cli_fail("export", "%s: %s", path, kp_cli_read_why(-rc));
    if (spools)
        return kp_cli_fail("export", "%s: is a folder with spools; name them: kprof export %s/*.kprof", path, path);
    if (!traces) return kp_cli_fail("export", "%s: no spools and no traces in this folder; check the name", path);
    return kp_cli_fail("export",
                       "%s: is a folder with traces; as other files: kprof export --format "
                       "perfetto|ndjson|speedscope|sqlite %s",
                       path, path);
}

static int spool_export(const char *path, const struct kp_spool_export_options *wish_of_all)
{
    struct kp_spool_export_options wish = *wish_of_all;
    struct kp_export_owner owner;
    struct kp_reader *reader;
    struct stat st;
    char why[512] = "";
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return folder_refuse(path);
    if (strstr(path, ".json"))
        return kp_cli_fail("export", "%s: is a trace; as another file: kprof export --format perfetto %s", path, path);
    int rc = kp_spoolfile_open(&reader, path, &st, why, sizeof why);
    if (rc < 0) return kp_cli_fail("export", "%s", why);
    if (kp_spoolfile_owner(&st, &owner)) wish.owner = &owner; /* a secret spool's trace stays secret */
    rc = kp_spool_export_write(reader, path, &wish);
    if (rc > 0) kp_spool_export_losses(reader, wish.json ? stderr : stdout);
    kp_reader_close(reader);
    if (rc == 0) return kp_cli_fail("export", "%s: holds no event, so no trace was written", path);
    return rc < 0 ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
}

static int spools_export(char **paths, int count, struct kp_spool_export_options *wish,
                         const struct kp_lines_options *lines_wish)
{
    struct kp_lines *lines = kp_lines_open("export", lines_wish);
    int worst = KP_EXIT_DONE;
    wish->places = kp_lines_places(lines);
    for (int i = 0; i < count; i++)
        if (spool_export(paths[i], wish) != KP_EXIT_DONE) worst = KP_EXIT_BAD_INPUT;
    kp_lines_close(lines);
    return worst;
}

static int option_take(void *command, const struct kp_opt_scan *scan, int id, const char *value)
{
    struct export_command *const c = command;
    (void)scan;
    switch (id) {
    case GZIP: c->wish.gzip = strcmp(value, "0") != 0; return 0;
    case EXPORT:
        c->wish.exports = value;
        if (kp_beside_parse(value)) return 0;
        return kp_cli_misuse("export", "--export is any of trace,table,stacks,memory, not %s", value);
    default:
        c->format = value;
        if (kp_formats_knows(value)) return 0;
        return kp_cli_misuse("export", "--format is perfetto, ndjson, speedscope or sqlite, not %s", value);
    }
}

int kp_cmd_export(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "export", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct export_command c = {.wish = {.command = "export", .gzip = -1}};
    const int i = kp_opt_flags(&scan, &c, option_take);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    int count = scan.count;
    if (!c.format && !count) return kp_cli_misuse("export", "name a spool; --format takes the latest run's traces");
    if (!c.format) return spools_export(argv, count, &c.wish, &c.lines);
    if ((count = kp_latest_take("export", &argv, count, 0)) == 0) return KP_EXIT_USAGE;
    if (c.wish.json && c.wish.dir && kp_written_check("export", c.wish.dir)) return KP_EXIT_USAGE;
    return kp_formats_write(c.format, c.wish.dir, c.wish.json, argv, count);
}

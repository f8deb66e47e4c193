// SPDX-License-Identifier: Apache-2.0
/* outfile.c - writes the file of a command's -o under a temporary name until it is whole */
#include "export/read/files/outfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_path.h"
#include "export/read/files/budget.h"
#include "export/show/say.h"
#include "export/show/terminal.h"
#include "export/kp_export.h"

/* A pipe or a device takes the text as it comes. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

int kp_outfile_open(struct kp_outfile *file, const char *path)
{
    *file = (struct kp_outfile){.to = stdout};
    if (!path || strcmp(path, "-") == 0) return 0;
    file->path = path;
    if (!is_special(path) && asprintf(&file->part, "%s.part", path) < 0) return file->error = -ENOMEM;
    file->to = fopen(file->part ? file->part : path, "we");
    if (!file->to) {
        file->error = -errno;
        free(file->part);
        file->part = NULL;
        return file->error;
    }
    if (file->part) snprintf(kp_budget_part(), KP_PART_BYTES, "%s", file->part); /* a limit or a signal removes it */
    return 0;
}

int kp_outfile_close(struct kp_outfile *file, bool is_whole)
{
    const bool failed = ferror(file->to) || fflush(file->to);
    if (failed) file->error = errno ? -errno : -EIO;
    if (!file->path) return file->error;
    if (fclose(file->to) && !file->error) file->error = -errno;
    if (file->part && (!is_whole || file->error)) unlink(file->part);
    else if (file->part && rename(file->part, file->path)) file->error = -errno;
    if (file->part) *kp_budget_part() = 0;
    free(file->part);
    file->part = NULL;
    return file->error;
}

void kp_outfile_tell(const char *path)
{
    struct stat st;
    if (path && strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
        kp_cli_say(stderr, "kprof: wrote %s", path);
}

const char *kp_outfile_drawing(const char *path, const char *beside, const char *name)
{
    static char made[4096];
    struct stat st;
    if (path || !kp_terminal_columns(stdout)) return path;
    const bool is_folder = stat(beside, &st) == 0 && S_ISDIR(st.st_mode);
    const char *const slash = is_folder ? beside + strlen(beside) : strrchr(beside, '/');
    const int bytes = slash ? (int)(slash - beside) : 0;
    snprintf(made, sizeof made, "%.*s%s%s", bytes, beside, slash ? "/" : "", name);
    return made;
}

void kp_outfile_tell_drawing(const char *path)
{
    struct stat st;
    const bool is_file = path && strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    if (is_file && kp_terminal_columns(stdout)) kp_cli_say(stderr, "kprof: wrote %s; open it: xdg-open %s", path, path);
    else kp_outfile_tell(path);
}

unsigned kp_outfile_form(const char *path, const char *const *endings, unsigned count, unsigned usual)
{
    const char *const dot = path ? strrchr(kp_path_base(path), '.') : NULL;
    for (unsigned i = 0; dot && i < count; i++)
        if (endings[i] && strcmp(dot + 1, endings[i]) == 0) return i;
    return usual;
}

const char *kp_outfile_temporary(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

int kp_outfile_fail(const char *command, const struct kp_outfile *file)
{
    return kp_cli_fail(command, "%s: %s", file->path ? file->path : "stdout", kp_cli_write_why(-file->error));
}

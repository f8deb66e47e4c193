// SPDX-License-Identifier: Apache-2.0
/* doctor_folders.c - kprof doctor's lines about folders: their file system, their room, and what to set instead */
#include "export/answers/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "export/read/files/outfile.h"

#define MB UINT64_C(1048576)

static const struct {
    const char *name, *setting;
} uses[] = {[KP_DOCTOR_TRACES] = {"traces", "KPROF_DIR"},
            [KP_DOCTOR_SPOOL] = {"spool", "KPROF_SPOOL_DIR"},
            [KP_DOCTOR_RECORDS] = {"records", NULL},
            [KP_DOCTOR_TEMPORARY] = {"temporary files", "TMPDIR"}};

static unsigned long long mb_of(uint64_t bytes) { return bytes / MB; }

static const char *traces_line(const struct kp_fskind *kind, char *more, size_t bytes)
{
    if (kp_fskind_may_stand(kind)) snprintf(more, bytes, "; while it hangs, traces wait for it, the program does not");
    if (kind->place != KP_FSKIND_MEMORY) return "ok";
    snprintf(more, bytes, "; traces there end with the machine or its container: KPROF_DIR on a disk keeps them");
    return "warn";
}

/* A recording must fit beside what is left free for the program. */
static const char *spool_line(const struct kp_doctor_folder *folder, const struct kp_fskind *kind, char *more,
                              size_t bytes)
{
    const uint64_t kept = kp_fskind_left_free(folder->bytes, folder->spare), room = folder->spare - kept;
    if (kp_fskind_may_stand(kind)) {
        snprintf(
            more, bytes,
            "; while it hangs, records wait in memory, and what does not fit is dropped: KPROF_SPOOL_DIR on a disk "
            "of this machine loses none");
        return "warn";
    }
    if (kind->place == KP_FSKIND_MEMORY) {
        snprintf(more, bytes, "; a recording there takes memory: KPROF_SPOOL_DIR on a disk takes none");
        return "warn";
    }
    if (room >= folder->max_mb * MB) {
        snprintf(more, bytes, ", %llu MiB of them left free for the program", mb_of(kept));
        return "ok";
    }
    snprintf(more, bytes,
             ", %llu MiB of them left free for the program: %llu MiB for a recording is less than KPROF_MAX_MB=%llu, "
             "and what does not fit is dropped",
             mb_of(kept), mb_of(room), (unsigned long long)folder->max_mb);
    return "warn";
}

static const char *records_line(const struct kp_doctor_folder *folder, char *more, size_t bytes)
{
    if (!folder->wrong && kp_fskind_holds_records(folder->type, folder->spare))
        snprintf(more, bytes, ": records lie in a file there until they are in the spool, and SIGKILL loses none");
    else
        snprintf(more, bytes,
                 "%s%s: records lie in memory that ends with the process, and SIGKILL loses those of the last 100 ms",
                 folder->wrong ? ": " : ", no tmpfs with 1024 MiB free", folder->wrong ? folder->wrong : "");
    return "ok";
}

const char *kp_doctor_folder_line(const struct kp_doctor_folder *folder, char *line, size_t bytes)
{
    const struct kp_fskind *const kind = kp_fskind_of(folder->type);
    const char *level = "ok";
    char more[512] = "";
    if (folder->use == KP_DOCTOR_RECORDS) level = records_line(folder, more, sizeof more);
    else if (folder->wrong) {
        snprintf(more, sizeof more, ": %s; choose another folder (%s)", folder->wrong, uses[folder->use].setting);
        level = folder->use == KP_DOCTOR_TEMPORARY ? "warn" : "fail";
    } else if (folder->use == KP_DOCTOR_TRACES) level = traces_line(kind, more, sizeof more);
    else if (folder->use == KP_DOCTOR_SPOOL) level = spool_line(folder, kind, more, sizeof more);
    snprintf(line, bytes, "%s: %s (%s, %s), %llu MiB free%s", uses[folder->use].name, folder->path, kind->name,
             kp_fskind_what(kind), mb_of(folder->spare), more);
    return level;
}

void kp_doctor_existing(const char *path, char *out, size_t bytes)
{
    char *slash;
    snprintf(out, bytes, "%s", path);
    while (access(out, F_OK) != 0) {
        slash = strrchr(out, '/');
        if (!slash) {
            snprintf(out, bytes, ".");
            return;
        }
        slash[slash == out] = 0;
        if (slash == out) return;
    }
}

/* NULL, or why no file can be written in the folder. */
static const char *write_try(const char *folder)
{
    static char why[300], block[1u << 16];
    char path[4200];
    snprintf(path, sizeof path, "%s/.kprof-doctor-XXXXXX", folder);
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) return snprintf(why, sizeof why, "no file can be made there: %s", strerror(errno)), why;
    unlink(path);
    const ssize_t n = write(fd, block, sizeof block);
    const bool is_written = n == (ssize_t)sizeof block;
    if (!is_written) snprintf(why, sizeof why, "no file can be written there: %s", strerror(n < 0 ? errno : ENOSPC));
    close(fd);
    return is_written ? NULL : why;
}

static void folder_look(enum kp_doctor_use use, const char *path, uint64_t max_mb, kp_doctor_say_fn *say)
{
    struct kp_doctor_folder folder = {.use = use, .path = path, .max_mb = max_mb};
    char at[4096], line[5200];
    struct statfs fs;
    kp_doctor_existing(path, at, sizeof at);
    if (use >= KP_DOCTOR_RECORDS && strcmp(at, path) != 0) folder.wrong = "it is not there";
    if (statfs(at, &fs) != 0) {
        say("fail", "%s: %s: %s", uses[use].name, at, strerror(errno));
        return;
    }
    folder.type = (uint64_t)fs.f_type;
    folder.bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
    folder.spare = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    if (!folder.wrong) folder.wrong = write_try(at);
    const char *const level = kp_doctor_folder_line(&folder, line, sizeof line);
    say(level, "%s", line);
}

void kp_doctor_folders(const struct kp_config *config, kp_doctor_say_fn *say)
{
    folder_look(KP_DOCTOR_TRACES, config->dir, config->max_mb, say);
    folder_look(KP_DOCTOR_SPOOL, config->spool_dir ? config->spool_dir : config->dir, config->max_mb, say);
    folder_look(KP_DOCTOR_RECORDS, "/dev/shm", config->max_mb, say);
    folder_look(KP_DOCTOR_TEMPORARY, kp_outfile_temporary(), config->max_mb, say);
}

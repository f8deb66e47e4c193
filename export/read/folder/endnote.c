// SPDX-License-Identifier: Apache-2.0
/*
 * endnote.c - notes in the spool of a program by which signal it ended, which `kprof run` knows
 *
 * A program that a signal ends writes no more, so its spool does not tell whether it was SIGTERM, a crash or the
 * kernel. Its parent knows. The note is a line of the spool's head, like those that the program wrote.
 */
#include "export/read/folder/endnote.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/text/kp_signalname.h"
#include "collector/format/kp_format.h"
#include "export/read/files/spoolfile.h"
#include "export/read/folder/trace_source.h"
#include "export/read/kineto/ended.h"

/* "0::/PATH" of version 2, "N:memory:/PATH" of version 1. A container may see its own group as the root. */
static bool group_file(char *line, char *path, size_t bytes)
{
    char *const old = strstr(line, ":memory:");
    const char *const group = old ? old + 8 : strncmp(line, "0::", 3) == 0 ? line + 3 : NULL;
    const char *const root = old ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const char *const file = old ? "memory.oom_control" : "memory.events";
    line[strcspn(line, "\n")] = '\0';
    if (!group) return false;
    snprintf(path, bytes, "%s%s/%s", root, group, file);
    if (access(path, R_OK) != 0) snprintf(path, bytes, "%s/%s", root, file);
    return access(path, R_OK) == 0;
}

const char *kp_endnote_oom_file(void)
{
    static char path[4400];
    char line[4200];
    bool has = false;
    FILE *const groups = fopen("/proc/self/cgroup", "re");
    while (groups && !has && fgets(line, sizeof line, groups)) has = group_file(line, path, sizeof path);
    if (groups) fclose(groups);
    return has ? path : "/proc/vmstat";
}

uint64_t kp_endnote_oom_kills(const char *path)
{
    char line[128];
    unsigned long long count = 0;
    FILE *const file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "oom_kill %llu", &count) == 1) break;
    if (file) fclose(file);
    return count;
}

static bool is_left_by(const struct kp_file_head *head, pid_t pid)
{
    return memcmp(head->magic, KP_FORMAT_MAGIC, sizeof head->magic) == 0 && head->chunk_bytes == KP_CHUNK_BYTES &&
           head->head_bytes >= sizeof *head && head->head_bytes < KP_CHUNK_BYTES && head->pid == (uint32_t)pid &&
           !head->closed;
}

/* When it was last written tells when the program ended, so that time stays. */
static void line_append(int fd, const struct kp_file_head *head, const char *line)
{
    struct stat st;
    const uint32_t had = head->text_bytes, bytes = (uint32_t)strlen(line), has = had + bytes;
    if (had > KP_CHUNK_BYTES || head->head_bytes + has > KP_CHUNK_BYTES || fstat(fd, &st) != 0) return;
    if (pwrite(fd, line, bytes, (off_t)head->head_bytes + had) != (ssize_t)bytes) return;
    if (pwrite(fd, &has, sizeof has, offsetof(struct kp_file_head, text_bytes)) != (ssize_t)sizeof has) return;
    (void)futimens(fd, (const struct timespec[]){st.st_atim, st.st_mtim}); /* else it seems to have ended now */
}

static void spool_note(int folder, const char *name, pid_t pid, const char *line)
{
    struct kp_file_head head;
    struct stat st;
    const int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
        pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head && is_left_by(&head, pid))
        line_append(fd, &head, line);
    close(fd);
}

bool kp_endnote_leave(const char *folder, pid_t pid, const struct kp_endnote *note)
{
    char line[320], name[32], of[32], times[96] = "", lacked[96] = "";
    bool has_any = false;
    kp_cli_join_dead(folder);
    DIR *const names = opendir(folder);
    if (note->real_ns)
        snprintf(times, sizeof times, "ended_real_ns=%llu\nended_peak_kb=%llu\n", (unsigned long long)note->real_ns,
                 (unsigned long long)note->peak_kb);
    if (note->lacked_memory)
        snprintf(lacked, sizeof lacked, "ended_without_memory=1\nended_may_have=%llu\n",
                 (unsigned long long)note->may_have);
    snprintf(line, sizeof line, "ended_by=%s\n%s%s", kp_signalname_put(note->signal, name, sizeof name), lacked, times);
    snprintf(of, sizeof of, "_%ld.", (long)pid);
    for (const struct dirent *entry; names && (entry = readdir(names));) {
        has_any |= strstr(entry->d_name, of) != NULL;
        if (kp_input_is_spool(entry->d_name)) spool_note(dirfd(names), entry->d_name, pid, line);
    }
    if (names) closedir(names);
    return has_any;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * jobends.c - how processes of a job ended, as their launcher was told, and as they said themselves
 *             (preload/finish/childends.c)
 */
#include "export/read/folder/jobends.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_signalname.h"
#include "collector/format/kp_ends.h"
#include "export/read/folder/trace_source.h"
#include "export/read/kineto/kineto_facts.h"

#define CLOCKS_APART_NS INT64_C(1000000000) /* the time of a trace and that of a line; each from a file, so any */

/* The next part of a line, which a tab ends. */
static void part_take(char **at, char *out, size_t bytes)
{
    const size_t n = strcspn(*at, "\t\n");
    snprintf(out, bytes, "%.*s", (int)n, *at);
    *at += n + ((*at)[n] == '\t');
}

/* "ValueError: its text", or "ValueError". */
static void exception_take(char **at, struct kp_jobend *e)
{
    char both[sizeof e->exception + sizeof e->text];
    part_take(at, both, sizeof both);
    char *const text = strstr(both, ": ");
    snprintf(e->text, sizeof e->text, "%.*s", (int)sizeof e->text - 1, text ? text + 2 : "");
    if (text) *text = '\0';
    snprintf(e->exception, sizeof e->exception, "%.*s", (int)sizeof e->exception - 1, both);
}

static void line_take(struct kp_jobends *ends, char *line, const char *host, long told_by)
{
    struct kp_jobend e = {.told_by = told_by, .rank = -1, .step = -1};
    long long at_ns;
    int status;
    char gone[16], exec[KP_JOBEND_BYTES], *at = line + strcspn(line, "\t");
    const int parts = sscanf(line, "%ld %d %lld %ld %ld", &e.pid, &status, &at_ns, &e.rank, &e.step);
    if (parts < 3 || e.pid <= 0) return;
    e.at_ns = at_ns;
    e.is_pending = status == KP_ENDS_PENDING;
    e.is_own = parts == 5;
    snprintf(e.host, sizeof e.host, "%s", host);
    if (e.is_pending) e.by[0] = '\0';
    else if (WIFSIGNALED(status)) (void)kp_signalname_put(WTERMSIG(status), e.by, sizeof e.by);
    else if (status) snprintf(e.by, sizeof e.by, "exit status %d", WEXITSTATUS(status));
    at += *at == '\t';
    exception_take(&at, &e);
    part_take(&at, e.place, sizeof e.place);
    part_take(&at, gone, sizeof gone);
    part_take(&at, exec, sizeof exec);
    part_take(&at, e.root, sizeof e.root);
    if (*exec) snprintf(e.by, sizeof e.by, "%s", exec);
    e.is_exec = strncmp(exec, KP_ENDS_EXEC, sizeof KP_ENDS_EXEC - 1) == 0;
    e.has_lost_peer = strcmp(gone, "lost_peer") == 0;
    *KP_KINETO_NEXT(ends->of, ends->count, ends->capacity) = e;
}

void kp_jobends_read(struct kp_jobends *ends, const char *folder)
{
    char line[KP_ENDS_LINE_BYTES], host[65];
    DIR *const names = opendir(folder);
    for (const struct dirent *entry; names && (entry = readdir(names));) {
        if (!kp_input_has_end(entry->d_name, ".ends")) continue;
        const char *const last = strrchr(entry->d_name, '_');
        snprintf(host, sizeof host, "%.*s", last ? (int)(last - entry->d_name) : 0, entry->d_name);
        const int fd = openat(dirfd(names), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        FILE *const file = fd < 0 ? NULL : fdopen(fd, "r");
        const long pid = last ? strtol(last + 1, NULL, 10) : 0;
        while (file && fgets(line, sizeof line, file)) line_take(ends, line, host, pid);
        if (file) fclose(file);
        else if (fd >= 0) close(fd);
    }
    if (names) closedir(names);
}

static void word_put(struct kp_jobend *out, const struct kp_jobend *e)
{
    const bool is_first = !out->at_ns, is_later = out->is_pending || e->at_ns > out->at_ns;
    if (e->is_pending && !is_first) return; /* whatever its time, another line knows more */
    out->is_pending = e->is_pending;
    const bool is_more = kp_ended_says_more(e->by, out->by);
    const bool is_less = kp_ended_says_more(out->by, e->by);
    if (*e->by && (is_more || (is_later && !is_less))) snprintf(out->by, sizeof out->by, "%s", e->by);
    if (is_later) out->at_ns = e->at_ns;
    if (!e->is_own || e->is_pending) return;
    out->is_own = true;
    out->rank = e->rank;
    out->step = e->step;
    out->has_lost_peer = e->has_lost_peer;
    snprintf(out->exception, sizeof out->exception, "%s", e->exception);
    snprintf(out->text, sizeof out->text, "%s", e->text);
    snprintf(out->place, sizeof out->place, "%s", e->place);
    snprintf(out->root, sizeof out->root, "%s", e->root);
}

static bool is_of(const struct kp_jobend *e, const char *host, long pid)
{
    return e->pid == pid && (!host || !*host || !*e->host || strcmp(host, e->host) == 0);
}

bool kp_jobends_find(const struct kp_jobends *ends, const char *host, long pid, int64_t since_ns, struct kp_jobend *out)
{
    const int64_t early_ns = since_ns < INT64_MIN + CLOCKS_APART_NS ? INT64_MIN : since_ns - CLOCKS_APART_NS;
    int64_t until_ns = INT64_MAX; /* behind exec the process is another program, with lines of its own */
    *out = (struct kp_jobend){.pid = pid, .rank = -1, .step = -1};
    for (size_t i = 0; i < ends->count; i++) {
        const struct kp_jobend *const e = &ends->of[i];
        if (e->is_exec && is_of(e, host, pid) && e->at_ns >= since_ns && e->at_ns < until_ns) until_ns = e->at_ns;
    }
    for (size_t i = 0; i < ends->count; i++) {
        const struct kp_jobend *const e = &ends->of[i];
        const int64_t from_ns = e->is_exec ? since_ns : early_ns;
        if (is_of(e, host, pid) && e->at_ns >= from_ns && e->at_ns <= until_ns) word_put(out, e);
    }
    return out->at_ns;
}

void kp_jobends_child(struct kp_kineto *trace, const struct kp_jobends *ends)
{
    const char *const host = kp_kineto_fact(trace, "host_name");
    const long pid = (long)kp_kineto_pid(trace);
    const struct kp_jobend *last = NULL;
    char text[240];
    for (size_t i = 0; i < ends->count; i++) {
        const struct kp_jobend *const e = &ends->of[i];
        const bool is_child = e->told_by == pid && e->pid != pid && is_of(e, host, e->pid);
        if (is_child && e->at_ns >= trace->start_ns && (!last || e->at_ns > last->at_ns)) last = e;
    }
    if (!last) return;
    const bool is_killed = strcmp(last->by, "SIGKILL") == 0;
    snprintf(text, sizeof text, "%ld was %s by %.168s%s", last->pid, is_killed ? "killed" : "ended", last->by,
             is_killed ? ": out of memory?" : "");
    kp_fact_put(trace, KP_ENDED_CHILD, text);
}

void kp_jobends_settle(struct kp_kineto *trace, const char *path)
{
    struct kp_jobends ends = {0};
    struct kp_jobend end;
    char folder[4400];
    const bool is_told = !kp_ended_early(trace) || kp_ended_by(trace);
    if (is_told && !kp_ended_exception(trace) && !kp_kineto_fact(trace, "kprof.exit_status")) return;
    const char *const host = kp_kineto_fact(trace, "host_name");
    kp_path_folder(folder, sizeof folder, path);
    kp_jobends_read(&ends, folder);
    if (!is_told && kp_jobends_find(&ends, host, (long)kp_kineto_pid(trace), trace->start_ns, &end) && *end.by)
        kp_fact_put(trace, "kprof.ended_by", end.by);
    kp_jobends_child(trace, &ends);
    kp_jobends_fini(&ends);
}

void kp_jobends_add(const char *folder, long pid, int status, uint64_t at_ns)
{
    char path[4600], host[65] = "", line[96];
    struct stat st;
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/%s_%ld.ends", folder, host, pid);
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    const int bytes = snprintf(line, sizeof line, "%ld %d %llu\n", pid, status, (unsigned long long)at_ns);
    const bool is_own = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_nlink == 1;
    if (is_own && write(fd, line, (size_t)bytes) != bytes) (void)ftruncate(fd, st.st_size);
    if (fd >= 0) close(fd);
}

void kp_jobends_fini(struct kp_jobends *ends)
{
    free(ends->of);
    *ends = (struct kp_jobends){0};
}

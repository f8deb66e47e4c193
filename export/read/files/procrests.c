// SPDX-License-Identifier: Apache-2.0
/*
 * procrests.c - whether a process of this machine rests, by /proc
 *
 * The kernel shows a thread's system call to whoever may trace it, and its wait channel to any process of its user.
 * Nothing is known if both lack. The threads of kprof look around all the time, and so are left out.
 */
#include "export/read/files/procrests.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"

struct task {
    char state, name[32];
    uint64_t ticks;
    long call; /* -1: not known */
};

static bool stat_take(struct task *t, const char *stat)
{
    const char *const from = strchr(stat, '('), *const to = strrchr(stat, ')');
    const char *const state = kp_digits_stat(stat, KP_STAT_STATE);
    if (!from || to < from || !*state) return false;
    snprintf(t->name, sizeof t->name, "%.*s", (int)(to - from - 1), from + 1);
    t->state = *state;
    t->ticks = kp_digits_stat_ticks(stat, KP_STAT_TIMES);
    return *kp_digits_stat(stat, KP_STAT_TIMES);
}

/* The wait channel tells of a futex and of a wait for a child alone. */
static long call_of(const char *folder)
{
    char path[96], text[256] = "";
    snprintf(path, sizeof path, "%s/syscall", folder);
    if (kp_io_text(path, text, sizeof text) > 0 && *text >= '0' && *text <= '9') return strtol(text, NULL, 10);
    snprintf(path, sizeof path, "%s/wchan", folder);
    if (kp_io_text(path, text, sizeof text) <= 0) return -1;
    if (strncmp(text, "futex", 5) == 0) return SYS_futex;
    return strcmp(text, "do_wait") == 0 ? SYS_wait4 : -1;
}

static bool task_look(struct task *t, const char *folder)
{
    char path[96], text[512] = "";
    snprintf(path, sizeof path, "%s/stat", folder);
    if (kp_io_text(path, text, sizeof text) <= 0 || !stat_take(t, text)) return false;
    t->call = call_of(folder);
    return true;
}

static bool is_for_child(long call) { return call == SYS_wait4 || call == SYS_waitid; }

static bool is_sleep(long call)
{
    bool is = call == SYS_futex || call == SYS_clock_nanosleep || call == SYS_nanosleep;
#ifdef SYS_pause
    is |= call == SYS_pause;
#endif
    return is;
}

/* Threads of CUDA wait for the driver in poll. */
static bool is_beside(const struct task *t)
{
    return strncmp(t->name, "kprof-", 6) == 0 || strncmp(t->name, "cuda", 4) == 0;
}

/* A worker of a DataLoader waits for work in a call of any kind. */
static bool may_go_on(const struct task *t, bool is_main_of_child)
{
    if (t->state != 'S') return true;
    return !is_sleep(t->call) && !(is_main_of_child && strcmp(t->name, "pt_data_worker") == 0);
}

static void children_look(struct kp_procrests *out, const char *folder)
{
    char path[96], text[4096] = "";
    snprintf(path, sizeof path, "%s/children", folder);
    const ssize_t n = kp_io_text(path, text, sizeof text);
    out->is_known &= n >= 0 && n < (ssize_t)sizeof text - 1;
    for (char *at = text; *at;) {
        char *end;
        struct task child;
        const long pid = strtol(at, &end, 10);
        if (end == at) break;
        at = end;
        snprintf(path, sizeof path, "/proc/%ld", pid);
        if (task_look(&child, path) && child.state != 'Z') out->may_go_on |= may_go_on(&child, true);
    }
}

static void thread_look(struct kp_procrests *out, const char *folder, bool is_main)
{
    struct task t;
    if (!task_look(&t, folder)) return; /* it has just ended */
    children_look(out, folder);
    if (is_beside(&t)) return;
    out->ticks += t.ticks;
    if (is_main) out->is_for_child = is_for_child(t.call);
    out->may_go_on |= is_main ? t.state != 'S' || (t.call != SYS_futex && !is_for_child(t.call)) : may_go_on(&t, false);
}

void kp_procrests_look(struct kp_procrests *out, long pid)
{
    char path[64], folder[96];
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *const tasks = opendir(path);
    *out = (struct kp_procrests){.is_known = tasks != NULL};
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));) {
        const long tid = strtol(entry->d_name, NULL, 10);
        if (tid <= 0) continue;
        snprintf(folder, sizeof folder, "%s/%ld", path, tid);
        thread_look(out, folder, tid == pid);
    }
    if (tasks) closedir(tasks);
}

const char *kp_procrests_word(const struct kp_procrests *now, const struct kp_procrests *before)
{
    if (!now->is_known || !before->is_known || now->may_go_on || before->may_go_on) return NULL;
    if (now->ticks != before->ticks || now->is_for_child != before->is_for_child) return NULL;
    return now->is_for_child ? "waits for a child process (wait)" : "waits for a lock, a queue or a thread (futex)";
}

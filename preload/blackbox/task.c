// SPDX-License-Identifier: Apache-2.0
/*
 * task.c - reads what a thread, or a child process, does: its state, its system call, and what that waits for
 *
 * Called by: where.c and wherechildren.c, on the thread that answers
 * Owns:      nothing
 * Locks:     none
 * Memory:    a few hundred bytes of stack
 * On fail:   what cannot be read is not known. The kernel shows a child's system call to its parent alone, or to none.
 * Safe in:   signal handlers no; after fork yes
 *
 * A descriptor's name is read by readlink in /proc, which asks no disk: it works where the file's disk stands.
 */
#include "preload/blackbox/task.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/elf/kp_modulepath.h"
#include "collector/base/kp_poison.h"

enum { LINE_BYTES = 1024, PATH_BYTES = 64, ARGUMENTS = 2 };
enum { OF_A_PROCESS = 1, LIST_BYTES = 4096 };
enum on { NOTHING, FILE_0, PATH_0, PATH_1, CHILD_0, CHILD_1, FUTEX }; /* which argument says what a call waits for */

static const struct {
    long number;
    const char *name, *words;
    enum on on;
} calls[] = {
#define KP_CALL_WORDS(name, words, on) {SYS_##name, #name, words, on},
#include "preload/blackbox/callwords.def"
#undef KP_CALL_WORDS
};

const char *kp_task_call(const struct kp_task *t, const char **words)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == t->call) return *words = t->words ? t->words : calls[i].words, calls[i].name;
    return NULL;
}

static enum on on_of(long number)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number) return calls[i].on;
    return NOTHING;
}

static void path_put(char path[PATH_BYTES], uint32_t pid, uint32_t tid, const char *file)
{
    if (pid && tid != pid) kp_fmt(path, PATH_BYTES, "/proc/%u/task/%u/%s", pid, tid, file);
    else if (pid) kp_fmt(path, PATH_BYTES, "/proc/%u/%s", pid, file);
    else kp_fmt(path, PATH_BYTES, "/proc/self/task/%u/%s", tid, file);
}

static bool task_read(uint32_t pid, uint32_t tid, const char *file, char text[LINE_BYTES])
{
    char path[PATH_BYTES];
    path_put(path, pid, tid, file);
    return kp_io_text(path, text, LINE_BYTES) > 0;
}

/* The text of a stat file: "42 (a name) S ...". */
static bool stat_parse(const char *text, struct kp_task *out)
{
    const char *name = strchr(text, '('), *at = strrchr(text, ')');
    if (!name || !at || at[1] != ' ') return false;
    const size_t bytes = (size_t)(at - ++name);
    memcpy(out->name, name, bytes < sizeof out->name ? bytes : sizeof out->name - 1);
    out->state = at[2];
    out->cpu_ms = kp_digits_stat_ticks(text, KP_STAT_TIMES) * KP_STAT_TICK_MS;
    const char *const last = strrchr(text, ' '); /* exit_code */
    if (out->state == 'Z' && last) out->status = (int)kp_digits(last + 1);
    return true;
}

static void file_put(struct kp_task *t, uint32_t pid, uint64_t fd)
{
    char path[PATH_BYTES], file[24], name[sizeof t->on];
    kp_fmt(file, sizeof file, "fd/%u", (uint32_t)fd);
    path_put(path, pid, t->tid, file);
    const ssize_t n = kp_io_readlink(path, name, sizeof name - 1);
    if (n <= 0) return;
    name[n] = '\0';
    if (strncmp(name, "pipe:", 5) == 0) kp_fmt(t->on, sizeof t->on, "a pipe");
    else if (strncmp(name, "socket:", 7) == 0) kp_fmt(t->on, sizeof t->on, "a socket");
    else if (*name == '/') kp_fmt(t->on, sizeof t->on, "%s", name);
}

/* The text may lie in a page that is gone, or be changed meanwhile. */
static void path_peek(struct kp_task *t, uintptr_t from)
{
    char text[sizeof t->on] = "";
    size_t n = 0;
    while (n < sizeof text - 1 && kp_io_peek((const char *)from + n, &text[n], 1) == 0 && text[n]) n++;
    text[n] = '\0';
    kp_fmt(t->on, sizeof t->on, "%s", text);
}

/* A file that processes share, as that of a semaphore of Python's multiprocessing. Modules lie in files as well. */
static bool is_shared(const char *path)
{
    static const char *const begins[] = {"/dev/shm/", "/memfd:", "/dev/zero", "/SYSV"};
    bool is = false;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) is |= strncmp(path, begins[i], strlen(begins[i])) == 0;
    return is;
}

static void futex_look(struct kp_task *t, uintptr_t at, uint64_t operation)
{
    char path[sizeof t->on];
    t->futex = at;
    if ((operation & FUTEX_PRIVATE_FLAG) || !kp_modulepath_find(at, path, sizeof path) || !is_shared(path)) return;
    t->words = "waits for another process";
    kp_fmt(t->on, sizeof t->on, "shared memory");
}

static void on_put(struct kp_task *t, uint32_t pid, const char *at)
{
    uint64_t of[ARGUMENTS];
    for (int i = 0; i < ARGUMENTS; i++) at += strspn(at, " "), of[i] = kp_digits_hex(&at);
    switch (on_of(t->call)) {
    case NOTHING: break;
    case FILE_0: file_put(t, pid, of[0]); break;
    case PATH_0:
    case PATH_1:
        if (!pid) path_peek(t, of[on_of(t->call) == PATH_1]);
        break;
    case CHILD_0:
        if ((int)of[0] > 0) kp_fmt(t->on, sizeof t->on, "process %u", (uint32_t)of[0]);
        break;
    case CHILD_1:
        if (of[0] == OF_A_PROCESS) kp_fmt(t->on, sizeof t->on, "process %u", (uint32_t)of[1]);
        break;
    case FUTEX:
        if (!pid) futex_look(t, of[0], of[1]);
        break;
    }
}

static void call_look(struct kp_task *t, uint32_t pid)
{
    char text[LINE_BYTES];
    const char *at = text;
    if (!task_read(pid, t->tid, "syscall", text)) return;
    if (strncmp(text, "running", 7) == 0) t->call = KP_TASK_RUNS;
    if (*at < '0' || *at > '9') return;
    t->call = (long)kp_digits_read(&at);
    on_put(t, pid, at);
}

bool kp_task_look(struct kp_task *out, uint32_t pid, uint32_t tid)
{
    char text[LINE_BYTES];
    *out = (struct kp_task){.tid = tid, .call = KP_TASK_UNKNOWN, .status = -1};
    if (!task_read(pid, tid, "stat", text) || !stat_parse(text, out)) return false;
    call_look(out, pid);
    if (task_read(pid, tid, "wchan", text) && *text != '0') kp_fmt(out->channel, sizeof out->channel, "%s", text);
    return true;
}

uint32_t kp_task_children(uint32_t pid, uint32_t tid, uint32_t *pids, uint32_t most)
{
    char path[PATH_BYTES], text[LIST_BYTES];
    const char *at = text;
    uint32_t n = 0;
    if (pid) kp_fmt(path, sizeof path, "/proc/%u/task/%u/children", pid, tid);
    else kp_fmt(path, sizeof path, "/proc/self/task/%u/children", tid);
    (void)kp_io_text(path, text, sizeof text);
    for (uint32_t child; n < most && (child = (uint32_t)kp_digits_read(&at)) != 0; at += *at == ' ') pids[n++] = child;
    return n;
}

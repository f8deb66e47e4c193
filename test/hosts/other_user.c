// SPDX-License-Identifier: Apache-2.0
/*
 * other_user.c - a program with workers in a folder that another user can write to, and that user, who wants to end it
 *
 * usage: other_user FOLDER_OF_PROGRAMS swap|cut|family theirs|sticky    (by root, who becomes both users)
 * In ./kprof, where everybody may write, `children` is the other user's, or root's and sticky. A dead worker's spool
 * becomes a file of the other user's (swap), which he cuts off once it is opened (cut); or the file is his by which a
 * worker finds whose it is (family), likewise cut off.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/hosts/torch_late.h"
#include "test/support/spool.h"

enum { VICTIM = 52001, OTHER = 52002, TRIES = 1000, NAP_US = 10000 };

static void become(uid_t user)
{
    if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user)) _exit(98);
}

/* One waits for a file of the other's making; not for ever. */
static bool await(const char *file)
{
    for (int i = 0; i < TRIES; i++) {
        if (access(file, F_OK) == 0) return true;
        usleep(NAP_US);
    }
    return false;
}

static void say(const char *file, const char *text)
{
    char part[64];
    snprintf(part, sizeof part, "%s.part", file);
    FILE *f = fopen(part, "w");
    if (!f) _exit(97);
    fputs(text, f);
    fclose(f);
    rename(part, file);
}

/* ---- the program ---- */

static void ops(const char *name, int n)
{
    struct mini_range r;
    for (int i = 0; i < n; i++) begin(&r, name, 0), end(&r);
}

/*
 * It tells the name of its worker's spool, as a listing would; in root's folder only its owner can take it away. The
 * worker ends after that: the spool of one that has ended is soon exported, and its name not read again.
 */
static int with_worker(bool takes_away)
{
    glob_t found = {.gl_pathc = 0};
    int worked[2], ended[2];
    char byte = 0;
    if (pipe(worked) || pipe(ended)) return 91;
    ops("aten::parent", 50);
    const pid_t worker = fork();
    if (worker == 0) {
        close(ended[1]);
        ops("aten::worker", 50);
        if (write(worked[1], &byte, 1) != 1) _exit(90);
        _exit(read(ended[0], &byte, 1) != 0); /* 0: the parent closed it */
    }
    if (read(worked[0], &byte, 1) != 1) return 91;
    glob("kprof/children/*.kprof", 0, NULL, &found);
    if (found.gl_pathc && takes_away) unlink(found.gl_pathv[0]);
    say("ready", found.gl_pathc ? found.gl_pathv[0] : "none");
    await("go");
    close(ended[1]);
    waitpid(worker, NULL, 0);
    puts("the program ends");
    return 5;
}

static int as_worker(void)
{
    for (int i = 0; i < TRIES && access("cut_off", F_OK) != 0; i++) ops("aten::worker", 1), usleep(NAP_US);
    usleep(300000);
    puts("the worker ends");
    return 5;
}

/* ---- the other user ---- */

static void spool_write(const char *path, int chunks)
{
    struct test_spool s;
    test_spool_init(&s);
    test_spool_head(&s)->pid = 1;
    const uint32_t meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 0, 0, "");
    test_spool_clock(&s, meta, 1000, 1000, 1000);
    test_spool_cycle(&s, meta, 1, 1000, 1000000000, 0);
    const uint32_t name = test_spool_name(&s, "aten::other_user", 16);
    uint64_t at = 2000;
    for (int i = 0; i < chunks; i++) {
        const uint32_t data = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 7, 1, "other");
        while (test_spool_op(&s, data, &(struct test_op){.name = name, .start = at, .ticks = 5, .seq = -1})) at += 10;
    }
    test_spool_save(&s, path, 0);
    test_spool_free(&s);
    chmod(path, 0644);
}

/* Waits, a second at most, until somebody opens the file; then, when he has mapped it, it is cut off. */
static void cut_when_opened(int watch, const char *path)
{
    char event[4096];
    for (int i = 0; i < 100 && read(watch, event, sizeof event) <= 0; i++) usleep(NAP_US);
    usleep(NAP_US);
    truncate(path, 0);
}

static int watch_opens(const char *path)
{
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    inotify_add_watch(watch, path, IN_OPEN);
    return watch;
}

static void attack_spool(bool cuts)
{
    char name[512] = "", away[600];
    if (!await("ready")) return;
    FILE *f = fopen("ready", "r");
    if (!f || !fgets(name, sizeof name, f)) return;
    fclose(f);
    if (strcmp(name, "none") == 0) snprintf(name, sizeof name, "kprof/children/none.kprof");
    snprintf(away, sizeof away, "%s.stolen", name);
    rename(name, away);
    spool_write(name, cuts ? 600 : 4);
    const int watch = watch_opens(name);
    say("go", "");
    if (cuts) cut_when_opened(watch, name);
}

/* The name that children.c gives it can be told from /proc. */
static void family_name(char *out, size_t bytes, pid_t pid)
{
    char host[256] = "", text[512] = "", stat[64];
    snprintf(stat, sizeof stat, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(stat, "r");
    if (f && fgets(text, sizeof text, f)) fclose(f);
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    gethostname(host, sizeof host - 1);
    snprintf(out, bytes, "kprof/children/%s_%d-%lu.family", host, (int)pid, at ? strtoul(at, NULL, 10) : 0);
}

static void attack_family(pid_t parent)
{
    static char zeros[1 << 20];
    char path[600];
    family_name(path, sizeof path, parent);
    memcpy(zeros, &parent, sizeof(int32_t));
    FILE *f = fopen(path, "w");
    if (!f) _exit(95);
    fwrite(zeros, 1, sizeof zeros, f);
    fclose(f);
    chmod(path, 0666);
    const int watch = watch_opens(path);
    say("go", "");
    cut_when_opened(watch, path);
    say("cut_off", "");
}

/* ---- both ---- */

static void folders_make(bool sticky)
{
    umask(0);
    if (mkdir("kprof", 01777)) _exit(94);
    if (sticky && mkdir("kprof/children", 01777)) _exit(94);
    const pid_t other = fork();
    if (other == 0) {
        become(OTHER);
        if (!sticky && mkdir("kprof/children", 0777)) _exit(94);
        _exit(0);
    }
    waitpid(other, NULL, 0);
    umask(022);
}

/* Started anew, as a program of that user is; a worker's by the words that Python's multiprocessing gives it. */
static pid_t program_start(char **argv, const char *what)
{
    const pid_t pid = fork();
    if (pid) return pid;
    become(VICTIM);
    if (strcmp(what, "program") == 0) {
        execl("/proc/self/exe", argv[0], argv[1], "program", argv[3], (char *)NULL);
        _exit(93);
    }
    if (!await("go")) _exit(92);
    const pid_t worker = fork(); /* by a parent that lives on */
    if (worker == 0) {
        execl("/proc/self/exe", argv[0], argv[1], "worker", "--multiprocessing-fork", (char *)NULL);
        _exit(93);
    }
    int status = 0;
    waitpid(worker, &status, 0);
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    int status = 0;
    if (argc < 4) return 2;
    if (strcmp(argv[2], "program") == 0) return load(argv[1]), with_worker(strcmp(argv[3], "sticky") == 0);
    if (strcmp(argv[2], "worker") == 0) return load(argv[1]), as_worker();
    const bool is_family = strcmp(argv[2], "family") == 0;
    folders_make(strcmp(argv[3], "sticky") == 0);
    const pid_t program = program_start(argv, is_family ? "parent" : "program"), other = fork();
    if (other == 0) {
        become(OTHER);
        if (is_family) attack_family(program);
        else attack_spool(strcmp(argv[2], "cut") == 0);
        _exit(0);
    }
    waitpid(program, &status, 0);
    printf("the program: status %d, signal %d\n", WEXITSTATUS(status), WTERMSIG(status));
    waitpid(other, &status, 0);
    printf("the other user: %d\n", status);
    unlink("ready"), unlink("go"), unlink("cut_off");
    return 0;
}

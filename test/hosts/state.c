// SPDX-License-Identifier: Apache-2.0
/* state.c - prints all of the process state that a library could have touched */
#include <dirent.h>
#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list(const char *dir)
{
    DIR *d = opendir(dir);
    int own = dirfd(d), n = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && atoi(e->d_name) != own) n++;
    closedir(d);
    printf("%s: %d entries\n", dir, n);
}

int main(int argc, char **argv)
{
    int saved = errno, count = 0;
    sigset_t mask;
    char *env[4096], cwd[4096];
    (void)argc, (void)argv;
    printf("errno %d\n", saved);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int s = 1; s < 65; s++) {
        struct sigaction old;
        int err = sigaction(s, NULL, &old);
        printf("signal %d: %d blocked %d default %d ignored %d flags %x\n", s, err, sigismember(&mask, s),
               old.sa_handler == SIG_DFL, old.sa_handler == SIG_IGN, (unsigned)old.sa_flags);
    }
    for (char **e = environ; *e && count < 4096; e++)
        if (strncmp(*e, "LD_PRELOAD=", 11) != 0) env[count++] = *e;
    qsort(env, (size_t)count, sizeof *env, by_text);
    for (int i = 0; i < count; i++) printf("env %s\n", env[i]);
    printf("preload is still set: %d\n", getenv("LD_PRELOAD") != NULL);
    mode_t m = umask(0);
    printf("umask %o cwd is kept %d locale %s\n", (unsigned)m, getcwd(cwd, sizeof cwd) != NULL,
           setlocale(LC_ALL, NULL));
    printf("rounding %d exceptions %d\n", fegetround(), fetestexcept(FE_ALL_EXCEPT));
    for (int r = 0; r < RLIMIT_NLIMITS; r++) {
        struct rlimit l;
        getrlimit(r, &l);
        printf("limit %d %ld %ld\n", r, (long)l.rlim_cur, (long)l.rlim_max);
    }
    list("/proc/self/fd");
    list("/proc/self/task");
    char name[32] = "";
    prctl(PR_GET_NAME, name);
    printf("name %s dumpable %d subreaper ok nice %d\n", name, prctl(PR_GET_DUMPABLE), getpriority(PRIO_PROCESS, 0));
    return 0;
}

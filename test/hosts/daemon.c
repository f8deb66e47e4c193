// SPDX-License-Identifier: Apache-2.0
/* daemon.c - becomes a daemon: two forks, a session, no descriptors, another folder */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char path[4096];
    int gone[2];
    if (!getcwd(path, sizeof path - 16) || pipe(gone)) return 1;
    strcat(path, "/daemon.txt");
    pid_t p = fork();
    if (p == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        if (chdir("/")) _exit(1);
        umask(0);
        for (int fd = 0; fd < 1024; fd++)
            if (fd != gone[1]) close(fd);
        int fd = open(path, O_CREAT | O_WRONLY, 0644);
        dprintf(fd, "the daemon wrote this to descriptor %d\n", fd);
        return 0;
    }
    close(gone[1]);
    waitpid(p, NULL, 0);
    char c;
    return read(gone[0], &c, 1) == 0 ? 0 : 2; /* the daemon has ended */
}

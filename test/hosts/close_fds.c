// SPDX-License-Identifier: Apache-2.0
/* close_fds.c - closes every descriptor it has not opened, then works on */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    for (int fd = 3; fd < 20000; fd++) close(fd);
    int fd = open("/dev/null", O_RDONLY);
    printf("first descriptor %d\n", fd);
    void *h = dlopen("libresolv.so.2", RTLD_NOW);
    printf("library %d symbol %d\n", h != NULL, h && dlsym(h, "getpid") != NULL);
    close(1);
    close(2);
    fd = open("left.txt", O_CREAT | O_WRONLY, 0600);
    if (write(fd, "kept\n", 5) != 5) return 3;
    return fd == 1 ? 7 : 8;
}

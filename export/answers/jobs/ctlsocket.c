// SPDX-License-Identifier: Apache-2.0
/* ctlsocket.c - finds the sockets of running processes in a folder, connects to them and asks */
#include "export/answers/jobs/ctlsocket.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "export/read/folder/trace_source.h"

enum { ANSWER_MS = 10000 };

int kp_ctlsocket_connect(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct ucred who;
    socklen_t bytes = sizeof who;
    if (strlen(path) >= sizeof name.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name.sun_path, path, strlen(path));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0) {
        if (who.uid == geteuid() || who.uid == 0 || geteuid() == 0) return fd;
        errno = EPERM;
    }
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool answer_read(int fd, char *answer, size_t bytes)
{
    size_t has = 0;
    struct pollfd poll_one = {.fd = fd, .events = POLLIN};
    while (has + 1 < bytes && poll(&poll_one, 1, ANSWER_MS) > 0) {
        const ssize_t n = recv(fd, answer + has, bytes - 1 - has, 0);
        if (n <= 0) break;
        has += (size_t)n;
        answer[has] = '\0';
        char *const end = strchr(answer, '\n');
        if (!end) continue;
        *end = '\0';
        return true;
    }
    return false;
}

bool kp_ctlsocket_ask(int fd, const char *request, char *answer, size_t bytes)
{
    const size_t length = strlen(request);
    return send(fd, request, length, MSG_NOSIGNAL) == (ssize_t)length && answer_read(fd, answer, bytes);
}

static int is_socket_name(const struct dirent *entry)
{
    return kp_input_has_end(entry->d_name, ".sock") || kp_input_has_end(entry->d_name, KP_CTLSOCKET_EARLY);
}

int kp_ctlsocket_each(const char *folder, kp_ctlsocket_fn visit, void *context)
{
    struct dirent **entries;
    char host[65] = "", begin[80], path[4400], who[256];
    struct stat st;
    int elsewhere = 0;
    const int count = scandir(folder, &entries, is_socket_name, alphasort);
    if (count < 0) return -1;
    gethostname(host, sizeof host - 1);
    snprintf(begin, sizeof begin, "%s_", host);
    for (int i = 0; i < count; i++) {
        const char *const name = entries[i]->d_name;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        snprintf(who, sizeof who, "%.*s", (int)(strrchr(name, '.') - name), name);
        const bool is_here = strncmp(name, begin, strlen(begin)) == 0;
        const bool is_socket = lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
        elsewhere += is_socket && !is_here;
        if (is_socket && is_here) visit(context, path, who);
        free(entries[i]);
    }
    free(entries);
    return elsewhere;
}

/* The kernel lists the path of each listening socket. */
bool kp_ctlsocket_of_pid(long pid, const char *ending, char *out, size_t bytes)
{
    char line[4600], end[40];
    FILE *const f = fopen("/proc/net/unix", "re");
    snprintf(end, sizeof end, "_%ld%s", pid, ending);
    bool is_found = false;
    while (f && !is_found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        const char *const slash = strchr(line, '/');
        is_found = slash && kp_input_has_end(slash, end);
        if (is_found) snprintf(out, bytes, "%s", slash);
    }
    if (f) fclose(f);
    return is_found;
}

static void knock(void *context, const char *path, const char *who)
{
    const int fd = kp_ctlsocket_connect(path);
    (void)context;
    (void)who;
    if (fd >= 0) close(fd);
}

void kp_ctlsocket_knock(const char *folder) { (void)kp_ctlsocket_each(folder, knock, NULL); }

static void gone_remove(void *context, const char *path, const char *who)
{
    const char *const number = strrchr(who, '_');
    const long pid = number ? strtol(number + 1, NULL, 10) : 0;
    (void)context;
    if (pid > 0 && pid <= INT_MAX && kp_io_is_process_gone((int32_t)pid) && kp_io_socket_is_dead(path)) unlink(path);
}

void kp_ctlsocket_sweep(const char *folder) { (void)kp_ctlsocket_each(folder, gone_remove, NULL); }

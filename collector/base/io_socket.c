// SPDX-License-Identifier: Apache-2.0
/*
 * io_socket.c - the system calls on sockets of this machine, each with a point where a test can make it fail (fail.c)
 *
 * Called by: kprof-control; the handler of KPROF_SIGNAL (send); fork (close)
 * On fail:   -errno; nothing is logged here
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/base/kp_fail.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_poison.h"

/* Takes a new descriptor: moves it above those of the host, and remembers which socket it is. */
static int keep(int fd, struct kp_io_socket *out)
{
    struct stat st;
    const int high = kp_io_dup_high(fd);
    if (high >= 0) {
        kp_io_close(fd);
        fd = high;
    }
    const int rc = fd > STDERR_FILENO ? kp_io_fstat(fd, &st) : high; /* 0 to 2: the host's output must not go there */
    if (rc < 0) {
        kp_io_close(fd);
        return rc;
    }
    *out = (struct kp_io_socket){.fd = fd, .inode = st.st_ino};
    return 0;
}

static int make(void)
{
    int fd = kp_fail_point("socket");
    if (fd == 0) fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd == -1 ? -errno : fd;
}

static int address(const char *path, struct sockaddr_un *out)
{
    const size_t length = strlen(path);
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    if (length >= sizeof out->sun_path) return -ENAMETOOLONG;
    memcpy(out->sun_path, path, length);
    return 0;
}

int kp_io_socket_listen(const char *path, struct kp_io_socket *out)
{
    struct sockaddr_un name;
    int rc = address(path, &name);
    const int fd = rc < 0 ? rc : make();
    if (fd < 0) return fd;
    /* The mode of the socket is that of the file which bind makes: no other user ever sees it open. */
    rc = syscall(SYS_fchmod, fd, 0600) == 0 ? kp_fail_point("bind") : -errno;
    if (rc == 0 && bind(fd, (struct sockaddr *)&name, sizeof name) != 0) rc = -errno;
    const bool is_bound = rc == 0;
    if (rc == 0 && listen(fd, 16) != 0) rc = -errno;
    if (rc == 0) rc = keep(fd, out);
    else kp_io_close(fd);
    if (rc < 0 && is_bound) (void)kp_io_unlink(path);
    return rc;
}

/* An abstract name: no file has it, and the kernel frees it with its last socket. Returns the address's length. */
static socklen_t address_of_name(const char *name, struct sockaddr_un *out)
{
    const size_t most = sizeof out->sun_path - 1, length = strlen(name);
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    memcpy(out->sun_path + 1, name, length < most ? length : most);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (length < most ? length : most));
}

int kp_io_socket_listen_name(const char *name, struct kp_io_socket *out)
{
    struct sockaddr_un at;
    const socklen_t bytes = address_of_name(name, &at);
    const int fd = make();
    if (fd < 0) return fd;
    int rc = kp_fail_point("bind");
    if (rc == 0 && (bind(fd, (struct sockaddr *)&at, bytes) != 0 || listen(fd, 128) != 0)) rc = -errno;
    if (rc == 0) return keep(fd, out);
    kp_io_close(fd);
    return rc;
}

int kp_io_socket_connect_name(const char *name, struct kp_io_socket *out, uint32_t *uid)
{
    struct sockaddr_un at;
    struct ucred who;
    socklen_t bytes = address_of_name(name, &at), who_bytes = sizeof who;
    const int fd = make();
    if (fd < 0) return fd;
    int rc = kp_fail_point("connect");
    if (rc == 0 && (connect(fd, (struct sockaddr *)&at, bytes) != 0 ||
                    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_bytes) != 0))
        rc = -errno;
    if (rc < 0) {
        kp_io_close(fd);
        return rc;
    }
    *uid = who.uid;
    return keep(fd, out);
}

int kp_io_socket_pair(struct kp_io_socket out[2])
{
    int fds[2], rc = kp_fail_point("socket");
    if (rc == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) rc = -errno;
    if (rc < 0) return rc;
    rc = keep(fds[0], &out[0]);
    if (rc < 0) {
        kp_io_close(fds[1]);
        return rc;
    }
    rc = keep(fds[1], &out[1]);
    if (rc < 0) kp_io_socket_close(&out[0]);
    return rc;
}

int kp_io_socket_accept(const struct kp_io_socket *s, struct kp_io_socket *out, uint32_t *uid)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    int fd = kp_fail_point("accept");
    if (fd == 0) fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return fd == -1 ? -errno : fd;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) {
        const int rc = -errno;
        kp_io_close(fd);
        return rc;
    }
    *uid = who.uid;
    return keep(fd, out);
}

/* A file that is no socket refuses connections, too. O_PATH opens nothing and follows no link. */
static bool is_own_socket(const char *path)
{
    struct stat st;
    const int fd = kp_io_open(path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0) return false;
    const bool is = kp_io_fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid();
    kp_io_close(fd);
    return is;
}

bool kp_io_socket_is_dead(const char *path)
{
    struct sockaddr_un name;
    if (!is_own_socket(path) || address(path, &name) < 0) return false;
    const int fd = make();
    if (fd < 0) return false;
    const bool is = connect(fd, (struct sockaddr *)&name, sizeof name) != 0 && errno == ECONNREFUSED;
    kp_io_close(fd);
    return is;
}

bool kp_io_socket_is_ours(const struct kp_io_socket *s)
{
    struct stat st;
    return s->fd >= 0 && kp_io_fstat(s->fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == s->inode;
}

ssize_t kp_io_socket_read(const struct kp_io_socket *s, void *data, size_t bytes)
{
    const int rc = kp_fail_point("read");
    if (rc < 0) return rc;
    const ssize_t n = recv(s->fd, data, bytes, MSG_DONTWAIT);
    return n < 0 ? -errno : n;
}

ssize_t kp_io_socket_send(const struct kp_io_socket *s, const void *data, size_t bytes)
{
    const int rc = kp_fail_point("write");
    if (rc < 0) return rc;
    const ssize_t n = send(s->fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n < 0 ? -errno : n;
}

void kp_io_socket_close(struct kp_io_socket *s)
{
    if (kp_io_socket_is_ours(s)) kp_io_close(s->fd);
    s->fd = -1;
}

int kp_io_poll(struct pollfd *fds, uint32_t count, uint32_t ms)
{
    const int rc = kp_fail_point("poll");
    if (rc < 0) return rc;
    const int n = poll(fds, count, (int)ms);
    return n < 0 ? -errno : n;
}

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

#include "collector/base/sys/kp_fail.h"
#include "collector/base/sys/kp_io.h"
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
    return (int)KP_FAIL_ERRNO("socket", socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* A path, or an abstract name: no file has that, and the kernel frees it with its last socket. Returns the address's
 * length; 0: it is too long. */
static socklen_t address(const char *name, bool is_path, struct sockaddr_un *out)
{
    const size_t most = sizeof out->sun_path - 1, length = strlen(name), bytes = length < most ? length : most;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + !is_path, name, bytes);
    if (is_path) return bytes == length ? (socklen_t)sizeof *out : 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

static int peer(int fd, uint32_t *uid)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return -errno;
    *uid = who.uid;
    return 0;
}

/* Keeps the descriptor, unless something has failed. */
static int keep_or_close(int rc, int fd, struct kp_io_socket *out)
{
    if (rc == 0) return keep(fd, out);
    kp_io_close(fd);
    return rc;
}

int kp_io_socket_listen(const char *path, struct kp_io_socket *out)
{
    struct sockaddr_un name;
    const int fd = address(path, true, &name) ? make() : -ENAMETOOLONG;
    if (fd < 0) return fd;
    /* The mode of the socket is that of the file which bind makes: no other user ever sees it open. */
    int rc = (int)kp_fail_errno(syscall(SYS_fchmod, fd, 0600));
    if (rc == 0) rc = (int)KP_FAIL_ERRNO("bind", bind(fd, (struct sockaddr *)&name, sizeof name));
    const bool is_bound = rc == 0;
    if (rc == 0 && listen(fd, 16) != 0) rc = -errno;
    rc = keep_or_close(rc, fd, out);
    if (rc < 0 && is_bound) (void)kp_io_unlink(path);
    return rc;
}

int kp_io_socket_listen_name(const char *name, struct kp_io_socket *out)
{
    struct sockaddr_un at;
    const socklen_t bytes = address(name, false, &at);
    const int fd = make();
    if (fd < 0) return fd;
    int rc = (int)KP_FAIL_ERRNO("bind", bind(fd, (struct sockaddr *)&at, bytes));
    if (rc == 0 && listen(fd, 128) != 0) rc = -errno;
    return keep_or_close(rc, fd, out);
}

int kp_io_socket_connect_name(const char *name, struct kp_io_socket *out, uint32_t *uid)
{
    struct sockaddr_un at;
    const socklen_t bytes = address(name, false, &at);
    const int fd = make();
    if (fd < 0) return fd;
    int rc = (int)KP_FAIL_ERRNO("connect", connect(fd, (struct sockaddr *)&at, bytes));
    if (rc == 0) rc = peer(fd, uid);
    return keep_or_close(rc, fd, out);
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
    const int fd = (int)KP_FAIL_ERRNO("accept", accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    return fd < 0 ? fd : keep_or_close(peer(fd, uid), fd, out);
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
    if (!is_own_socket(path) || !address(path, true, &name)) return false;
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
    return KP_FAIL_ERRNO("read", recv(s->fd, data, bytes, MSG_DONTWAIT));
}

ssize_t kp_io_socket_send(const struct kp_io_socket *s, const void *data, size_t bytes)
{
    return KP_FAIL_ERRNO("write", send(s->fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void kp_io_socket_close(struct kp_io_socket *s)
{
    if (kp_io_socket_is_ours(s)) kp_io_close(s->fd);
    s->fd = -1;
}

int kp_io_poll(struct pollfd *fds, uint32_t count, uint32_t ms)
{
    return (int)KP_FAIL_ERRNO("poll", poll(fds, count, (int)ms));
}

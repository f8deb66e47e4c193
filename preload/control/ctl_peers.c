// SPDX-License-Identifier: Apache-2.0
/*
 * ctl_peers.c - one rank of each machine looks at the shared folder, and wakes the other ranks of the machine
 *
 * Called by: the thread kprof-control; fork and exit (kp_ctl_peers_end)
 * Owns:      a socket with an abstract name (of the rank that looks), and a connection to it (of each other rank)
 * Locks:     none
 * On fail:   a rank that finds no other one looks by itself
 * Safe in:   after fork: kp_ctl_peers_end comes first
 *
 * The first rank that asks for the name looks. The kernel gives the name away with the process, and ends the
 * connections, so the next rank takes it at once. No file is involved, and the folder's server hears nothing.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/control/ctl.h"
#include "collector/base/kp_poison.h"

enum { PEERS = 128, NAME_BYTES = 100, AGAIN_MS = 1000 };

static char name[NAME_BYTES]; /* "": not begun */
static struct kp_io_socket door = {.fd = -1}, link_to = {.fd = -1};
static struct kp_io_socket peers[PEERS];
static uint32_t count;
static uint64_t asked_ms; /* 0: never */

void kp_ctl_peers_begin(const char *folder)
{
    struct stat st;
    if (kp_io_stat(folder, &st) != 0) return;
    kp_fmt(name, sizeof name, "kprof-%lx-%lx-%u", (unsigned long)st.st_dev, (unsigned long)st.st_ino, geteuid());
}

/* A name that another user took serves nobody: this rank looks by itself, and asks again. */
static void elect(uint64_t now_ms)
{
    uint32_t uid;
    if (asked_ms && now_ms - asked_ms < AGAIN_MS) return;
    asked_ms = now_ms;
    const int rc = kp_io_socket_connect_name(name, &link_to, &uid);
    if (rc == 0 && uid != geteuid()) kp_io_socket_close(&link_to);
    if (rc == -ECONNREFUSED) (void)kp_io_socket_listen_name(name, &door);
}

/* The host may have closed our descriptors, as daemons do that close all. */
static void lost_forget(void)
{
    if (door.fd >= 0 && !kp_io_socket_is_ours(&door)) kp_ctl_peers_end();
    if (link_to.fd >= 0 && !kp_io_socket_is_ours(&link_to)) link_to.fd = -1;
}

bool kp_ctl_peers_must_look(uint64_t now_ms)
{
    if (!name[0]) return true;
    lost_forget();
    if (door.fd < 0 && link_to.fd < 0) elect(now_ms);
    return link_to.fd < 0;
}

struct pollfd kp_ctl_peers_poll(void)
{
    return (struct pollfd){.fd = link_to.fd >= 0 ? link_to.fd : door.fd, .events = POLLIN};
}

/* Closes those whose process is gone. */
static void gone_drop(void)
{
    uint32_t kept = 0;
    char unused[8];
    for (uint32_t i = 0; i < count; i++) {
        const bool is_here =
            kp_io_socket_is_ours(&peers[i]) && kp_io_socket_read(&peers[i], unused, sizeof unused) == -EAGAIN;
        if (!is_here) kp_io_socket_close(&peers[i]);
        else peers[kept++] = peers[i];
    }
    count = kept;
}

/* One beyond the room, or of another user, finds its connection closed, and looks by itself. */
static void peer_accept(void)
{
    uint32_t uid;
    struct kp_io_socket s;
    if (kp_io_socket_accept(&door, &s, &uid) < 0) return;
    gone_drop();
    if (uid != geteuid() || count == PEERS) kp_io_socket_close(&s);
    else peers[count++] = s;
}

bool kp_ctl_peers_hear(void)
{
    char rings[64];
    ssize_t n, heard = 0;
    if (link_to.fd < 0) {
        peer_accept();
        return false;
    }
    while ((n = kp_io_socket_read(&link_to, rings, sizeof rings)) > 0) heard += n;
    if (n != -EAGAIN && n != -EINTR) kp_io_socket_close(&link_to); /* it ended: see who looks now */
    return heard || link_to.fd < 0;
}

void kp_ctl_peers_wake(void)
{
    for (uint32_t i = 0; i < count; i++)
        if (kp_io_socket_is_ours(&peers[i])) (void)kp_io_socket_send(&peers[i], "!", 1);
}

void kp_ctl_peers_end(void)
{
    for (uint32_t i = 0; i < count; i++) kp_io_socket_close(&peers[i]);
    count = 0;
    kp_io_socket_close(&link_to);
    kp_io_socket_close(&door);
}

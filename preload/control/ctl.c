// SPDX-License-Identifier: Apache-2.0
/*
 * ctl.c - the thread kprof-control: a socket in the output folder, by which `kprof ctl` speaks to this process
 *
 * Called by: begin.c, exit.c, fork.c; the thread kprof-control
 * Owns:      KPROF_DIR/HOST_PID.sock, before the run begins HOST_PID.where; their clients, the bell (a pair of sockets
 *            that wakes the thread)
 * Locks:     none. While the thread acts it has the run's turn, as other helper threads that open windows.
 * Memory:    one mapping for the clients, made when the run begins
 * On fail:   without a socket or a thread a line is logged, and the program runs on without control
 * Safe in:   signal handlers: bell_ring; after fork: kp_ctl_forget comes first
 *
 * Nothing waits for a client: all sockets are non-blocking. A client has CLIENT_MS for each request and to read the
 * answer, then it is dropped. At most CLIENTS are served at a time, the others wait in the kernel's queue.
 */
#include "preload/control/ctl.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/kp_helper_threads.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/run.h"
#include "preload/blackbox/hangwatch.h"
#include "preload/blackbox/where.h"
#include "preload/finish/childends.h"
#include "preload/python_bridge.h"
#include "preload/torch_bridge.h"
#include "schedule/ctl_proto.h"
#include "collector/base/kp_poison.h"

enum { END_MS = 1000, END_NAP_NS = 50000000 }; /* how long exit waits for the folder */
enum { EARLY_MS = 1000 };                      /* a program that is over by then makes no socket */
enum { CLIENTS = 8, CLIENT_MS = 5000, BUSY_NS = 100000000, ALONE_MS = 1000, ANSWER_BYTES = 1024 };
enum { POLL_BELL, POLL_LISTENER, POLL_PEERS, POLL_CLIENTS, POLLS = POLL_CLIENTS + CLIENTS };

struct ctl_client {
    struct kp_io_socket socket; /* fd -1: free */
    uint64_t until_ms;
    size_t has, owes, sent; /* bytes of the request so far; of the answer, in all and sent */
    char request[KP_CTL_LINE_MAX + 1], answer[ANSWER_BYTES];
    struct kp_where_text more; /* an answer that is longer */
};

static const struct kp_config *config;
static int signal_number;
static struct kp_io_socket listener = {.fd = -1}, early = {.fd = -1},
                           bell[2] = {{.fd = -1}, {.fd = -1}}; /* bell: read, ring */
static struct ctl_client *clients;
static char path[4200], early_path[4200];
static uint64_t early_ms;              /* from when on `early` listens; 0: the thread began with the run */
static _Atomic bool is_begun;          /* the run has: `listener` is whole */
static _Atomic bool is_running;        /* the thread */
static _Atomic uint32_t names_removal; /* of the socket and of the rank's file */
enum { REMOVAL_NONE, REMOVAL_WANTED, REMOVAL_DONE };

void kp_ctl_setup(const struct kp_config *settings)
{
    config = settings;
    signal_number = settings->signal ? kp_ctl_signal_parse(settings->signal) : 0;
    if (kp_ctl_is_wanted()) kp_torch_collectives_watch();
}

bool kp_ctl_is_wanted(void) { return config && (config->control || signal_number || kp_hangwatch_is_wanted()); }

static bool has_begun(void) { return kp_load_acquire(&is_begun); } /* pairs with: kp_ctl_begin */

static void bell_ring(void)
{
    if (kp_io_socket_is_ours(&bell[1])) (void)kp_io_socket_send(&bell[1], "!", 1);
}

/* ---- clients ---- */

static void client_drop(struct ctl_client *c)
{
    kp_io_socket_close(&c->socket);
    kp_where_drop(&c->more);
    c->has = c->owes = c->sent = 0;
}

static void client_send(struct ctl_client *c)
{
    const char *const text = c->more.at ? c->more.at : c->answer;
    const ssize_t n = kp_io_socket_send(&c->socket, text + c->sent, c->owes - c->sent);
    if (n < 0 && n != -EAGAIN && n != -EINTR) client_drop(c);
    else if (n > 0) c->sent += (size_t)n;
    if (c->sent < c->owes) return;
    kp_where_drop(&c->more);
    c->owes = c->sent = 0;
    c->until_ms = kp_clock_ms() + CLIENT_MS;
}

/* Answers the requests that are complete, while the client reads the answers. */
static void client_answer(struct ctl_client *c)
{
    while (c->socket.fd >= 0 && !c->owes) {
        char *const end = memchr(c->request, '\n', c->has);
        if (!end) break;
        const size_t used = (size_t)(end - c->request) + 1;
        *end = '\0';
        if (strlen(c->request) + 1 < used) c->request[0] = '\0'; /* a NUL inside: no request has one */
        c->owes = kp_ctl_answer(c->request, c->answer, sizeof c->answer, has_begun(), &c->more);
        if (!c->owes) c->owes = c->more.used;
        c->has -= used;
        memmove(c->request, end + 1, c->has);
        client_send(c);
    }
}

static void client_read(struct ctl_client *c)
{
    const ssize_t n = kp_io_socket_read(&c->socket, c->request + c->has, sizeof c->request - c->has);
    if (n == -EAGAIN || n == -EINTR) return;
    if (n > 0) c->has += (size_t)n;
    if (n > 0) client_answer(c);
    const bool is_too_long = c->has == sizeof c->request && !c->owes;
    if (n <= 0 || is_too_long) client_drop(c);
}

static void client_accept(struct ctl_client *free_one)
{
    uint32_t uid;
    struct kp_io_socket s;
    const int rc = kp_io_socket_accept(has_begun() ? &listener : &early, &s, &uid); /* as polls_fill */
    if (rc < 0 && rc != -EAGAIN && rc != -ECONNABORTED) kp_helpers_sleep(BUSY_NS);  /* no descriptor: do not spin */
    if (rc < 0) return;
    kp_ctl_job_look_soon();
    free_one->socket = s;
    free_one->until_ms = kp_clock_ms() + CLIENT_MS;
    if (uid == 0 || uid == geteuid()) return;
    KP_LOG_ONCE(0, "a request of user %u was refused: only the program's own user and root are heard", uid);
    client_drop(free_one);
}

/* ---- the thread ---- */

static struct ctl_client *free_find(void)
{
    for (int i = 0; clients && i < CLIENTS; i++)
        if (clients[i].socket.fd < 0) return &clients[i];
    return NULL;
}

static uint32_t polls_fill(struct pollfd *polls)
{
    polls[POLL_BELL] = (struct pollfd){.fd = bell[0].fd, .events = POLLIN};
    const int heard = has_begun() ? listener.fd : early.fd;
    polls[POLL_LISTENER] = (struct pollfd){.fd = free_find() ? heard : -1, .events = POLLIN};
    polls[POLL_PEERS] = kp_ctl_peers_poll();
    for (int i = 0; clients && i < CLIENTS; i++)
        polls[POLL_CLIENTS + i] =
            (struct pollfd){.fd = clients[i].socket.fd, .events = clients[i].owes ? POLLOUT : POLLIN};
    return clients ? POLLS : POLL_CLIENTS;
}

static void client_serve(struct ctl_client *c, short events)
{
    if (c->socket.fd < 0) return;
    if (!kp_io_socket_is_ours(&c->socket) || kp_clock_ms() > c->until_ms) {
        client_drop(c);
        return;
    }
    if (!events) return;
    if (!c->owes) {
        client_read(c);
        return;
    }
    client_send(c);
    client_answer(c);
}

static void bell_hear(void)
{
    char rings[64];
    while (kp_io_socket_read(&bell[0], rings, sizeof rings) > 0) {}
    if (kp_ctl_signal_take()) (void)kp_ctl_turn();
}

/* The host may have closed our descriptors, as daemons do that close all. */
static bool are_sockets_ours(void)
{
    const struct kp_io_socket *const heard = has_begun() ? &listener : &early;
    const bool are = kp_io_socket_is_ours(&bell[0]) && (heard->fd < 0 || kp_io_socket_is_ours(heard));
    if (!are) kp_log(1, "the program closed the control socket: kprof ctl does not reach it any more");
    return are;
}

static void names_remove(void)
{
    kp_ctl_job_end();
    if (listener.fd >= 0) (void)kp_io_unlink(path);
    if (early.fd >= 0) (void)kp_io_unlink(early_path);
}

/* Exit wants it. The folder may be of a server that does not answer. */
static void names_look(void)
{
    if (kp_load_acquire(&names_removal) != REMOVAL_WANTED) return; /* pairs with: kp_ctl_end */
    names_remove();
    kp_store_release(&names_removal, REMOVAL_DONE); /* pairs with: kp_ctl_end */
    kp_io_wake(&names_removal);
}

static void events_take(const struct pollfd *polls, uint32_t some)
{
    if (polls[POLL_BELL].revents) bell_hear();
    if (polls[POLL_LISTENER].revents) client_accept(free_find());
    if (polls[POLL_PEERS].revents && kp_ctl_peers_hear()) kp_ctl_job_look_soon();
    for (uint32_t i = POLL_CLIENTS; i < some; i++) client_serve(&clients[i - POLL_CLIENTS], polls[i].revents);
}

static void path_make(char out[sizeof path], const char *ending)
{
    char host[KP_IO_HOST_BYTES]; /* several hosts may share the folder */
    kp_io_host_name(host);
    kp_fmt(out, sizeof path, "%s/%s_%d.%s", kp_run_out_dir(), host, (int)getpid(), ending);
}

/* A socket of the same name is one of a dead process that had our number, or it is in use on another machine. */
static int socket_open(const char *name, struct kp_io_socket *out)
{
    int rc = clients ? kp_io_mkdirs(kp_run_out_dir(), KP_IO_FOLDER_MODE) : -ENOMEM;
    if (rc == 0) rc = kp_io_socket_listen(name, out);
    if (rc == -EADDRINUSE && kp_io_socket_is_dead(name)) {
        (void)kp_io_unlink(name);
        rc = kp_io_socket_listen(name, out);
    }
    return rc;
}

/* Opens the early socket when it is time, and closes it when the run has begun. */
static void early_turn(void)
{
    if (has_begun()) {
        if (early.fd < 0) return;
        (void)kp_io_unlink(early_path);
        kp_io_socket_close(&early);
        return;
    }
    if (!early_ms || early.fd >= 0 || kp_clock_ms() < early_ms) return;
    early_ms = 0; /* once */
    path_make(early_path, "where");
    (void)socket_open(early_path, &early);
}

/* A program that is watched for a hang says how it ends, also where nothing is recorded. */
static uint32_t hang_look(void)
{
    static bool is_asked;
    const uint32_t ms = kp_hangwatch_look();
    if (!kp_hangwatch_has_step()) return ms;
    if (!is_asked) is_asked = kp_lastexception_ask();
    kp_childends_await();
    return ms;
}

/* The work that is due beside clients; in how many ms the next is. */
static uint32_t looks(void)
{
    early_turn();
    const uint32_t job_ms = kp_ctl_job_look();
    const uint32_t watch_ms = has_begun() ? hang_look() : job_ms;
    return job_ms < watch_ms ? job_ms : watch_ms;
}

static bool goes_on(void) { return kp_run_is_active() && !kp_helpers_pause_wanted() && !kp_io_helpers_alone(); }

/* No one reaches the thread any more. It watches on for a program that stands. */
static void watch_alone(void)
{
    kp_ctl_job_end();
    while (kp_hangwatch_is_wanted() && has_begun() && goes_on()) {
        const uint32_t ms = hang_look();
        kp_helpers_sleep((uint64_t)(ms < ALONE_MS ? ms : ALONE_MS) * 1000000);
    }
}

static void *control_thread(void *unused)
{
    struct pollfd polls[POLLS];
    (void)unused;
    kp_io_apart(true);                   /* the folder may stand */
    kp_store_release(&is_running, true); /* pairs with: kp_ctl_end */
    uint32_t look_ms = looks();
    while (goes_on()) {
        const uint32_t count = polls_fill(polls);
        if (kp_io_poll(polls, count, look_ms) < 0) kp_helpers_sleep(BUSY_NS);
        if (!kp_run_is_active() || kp_helpers_pause_wanted()) break;
        if (!are_sockets_ours()) {
            watch_alone();
            break;
        }
        events_take(polls, count);
        names_look();
        look_ms = looks();
    }
    kp_ctl_peers_end();
    (void)kp_exchange_acq_rel(&is_running, false); /* pairs with: kp_ctl_end */
    names_look();
    return NULL;
}

/* ---- begin and end ---- */

static void clients_make(void)
{
    if (clients) return;
    clients = kp_map_alloc(CLIENTS * sizeof *clients);
    for (int i = 0; clients && i < CLIENTS; i++) clients[i].socket.fd = -1;
}

static int thread_start(void)
{
    const int rc = kp_io_socket_pair(bell);
    return rc == 0 ? kp_helpers_start(control_thread, "kprof-control", KP_IO_NICE, bell_ring) : rc;
}

void kp_ctl_begin_early(void)
{
    if (!config->control || kp_load_relaxed(&is_begun) || kp_run_is_worker()) return;
    clients_make();
    early_ms = kp_clock_ms() + EARLY_MS;
    if (thread_start() == 0) return;
    early_ms = 0;
    kp_io_socket_close(&bell[0]);
    kp_io_socket_close(&bell[1]);
}

static int listener_open(void)
{
    clients_make();
    path_make(path, "sock");
    const int rc = socket_open(path, &listener);
    if (rc < 0)
        kp_log(0, "no control socket: %s (%s%s)", path, kp_log_error_text(rc),
               rc == -ENAMETOOLONG ? ", the path of a socket has at most 107 bytes" : "");
    return rc;
}

void kp_ctl_begin(void)
{
    if (!kp_ctl_is_wanted()) return;
    int rc = config->control ? listener_open() : 0;
    const bool is_there = kp_io_socket_is_ours(&bell[1]); /* the early thread */
    kp_store_release(&is_begun, true);                    /* pairs with: has_begun */
    if (rc < 0 && !signal_number && !kp_ctl_job_is_wanted() && !kp_hangwatch_is_wanted()) return;
    if (is_there) bell_ring();
    else rc = thread_start();
    if (!is_there && rc < 0) {
        kp_log(0, "no thread for the control socket (%s): kprof ctl does not reach this program",
               kp_log_error_text(rc));
        kp_ctl_end();
        return;
    }
    if (signal_number) kp_ctl_signal_watch(signal_number, bell_ring);
}

void kp_ctl_end(void)
{
    const bool hears = kp_load_acquire(&is_running) && kp_io_socket_is_ours(&bell[1]); /* pairs with: control_thread */
    if (!hears) {
        names_remove();
        return;
    }
    (void)kp_exchange_acq_rel(&names_removal, REMOVAL_WANTED); /* pairs with: names_look */
    bell_ring();
    const uint64_t until_ms = kp_clock_ms() + END_MS;
    while (kp_load_acquire(&names_removal) == REMOVAL_WANTED && kp_clock_ms() < until_ms) /* pairs with: names_look */
        kp_io_wait(&names_removal, REMOVAL_WANTED, END_NAP_NS);
}

void kp_ctl_forget(void)
{
    if (!kp_ctl_is_wanted()) return;
    kp_ctl_signal_forget();
    kp_store_relaxed(&is_running, false);
    kp_store_relaxed(&names_removal, REMOVAL_NONE);
    kp_ctl_job_forget();
    kp_ctl_peers_end();
    for (int i = 0; clients && i < CLIENTS; i++) client_drop(&clients[i]);
    kp_store_relaxed(&is_begun, false);
    early_ms = 0;
    kp_hangwatch_forget();
    kp_io_socket_close(&early);
    kp_io_socket_close(&listener);
    kp_io_socket_close(&bell[0]);
    kp_io_socket_close(&bell[1]);
}

// SPDX-License-Identifier: Apache-2.0
/* truth.c - SIMGPU_LOG: one line of JSON for each piece of work, wait, allocation (and call), with its true times */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/doubles/simgpu/core/core.h"

static int fd = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_log(void)
{
    const char *path = sim_settings()->log;
    if (path != NULL && *path) fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static bool is_on(void)
{
    pthread_once(&once, open_log);
    return fd >= 0;
}

/* One write per line: lines of threads and of forked children do not mix. */
static void __attribute__((format(printf, 1, 2))) line(const char *format, ...)
{
    char text[4096];
    int saved = errno;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > (int)sizeof text - 1) n = (int)sizeof text - 1;
    if (n > 0 && write(fd, text, (size_t)n) < 0) fd = -1;
    errno = saved;
}

static int tid(void) { return (int)syscall(SYS_gettid); }

static const char *const kinds[] = {"kernel", "memcpy", "memset", "host", "event_record", "event_wait"};

void sim_truth_work(const struct simgpu_work *w)
{
    if (!is_on()) return;
    line("{\"what\":\"work\",\"kind\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"device\":%u,\"context\":%u,"
         "\"stream\":%u,"
         "\"correlation\":%u,\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"device_start\":%" PRIu64
         ",\"device_end\":%" PRIu64 ",\"bytes\":%" PRIu64
         ",\"copy_kind\":%u,\"src_kind\":%u,\"dst_kind\":%u,\"value\":%u,\"async\":%u,\"peer\":%u,"
         "\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"cluster\":[%u,%u,%u],\"static_smem\":%u,\"dynamic_smem\":%u,"
         "\"registers\":%u,"
         "\"priority\":%d,\"graph\":%u,\"graph_node\":%" PRIu64 ",\"graph_launch\":%" PRIu64
         ",\"event\":%u,\"event_sync\":%" PRIu64 "}\n",
         kinds[w->kind], w->name ? w->name : "", (int)getpid(), tid(), w->device, w->context, w->stream, w->correlation,
         w->start_ns, w->end_ns, sim_device_ns(w->start_ns), sim_device_ns(w->end_ns), w->bytes, w->copy_kind,
         w->src_kind, w->dst_kind, w->value, w->is_async, w->is_peer, w->grid[0], w->grid[1], w->grid[2], w->block[0],
         w->block[1], w->block[2], w->cluster[0], w->cluster[1], w->cluster[2], w->static_smem, w->dynamic_smem,
         w->registers, w->priority, w->graph, w->graph_node, w->graph_launch, w->event, w->event_sync);
}

void sim_truth_call(const struct simgpu_call *call)
{
    if (!sim_settings()->log_calls || !is_on()) return;
    line("{\"what\":\"call\",\"api\":\"%s\",\"name\":\"%s\",\"cbid\":%u,\"pid\":%d,\"tid\":%d,\"correlation\":%u,"
         "\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"result\":%d,\"symbol\":\"%s\"}\n",
         call->domain == SIMGPU_DRIVER ? "driver" : "runtime", call->name, call->cbid, (int)getpid(), tid(),
         call->correlation, call->enter_ns, call->exit_ns, call->result, call->symbol ? call->symbol : "");
}

void sim_truth_sync(const struct simgpu_sync *s)
{
    if (!is_on()) return;
    line("{\"what\":\"%s\",\"type\":%u,\"result\":%d,\"pid\":%d,\"tid\":%d,\"context\":%u,\"stream\":%u,\"event\":%u,"
         "\"event_sync\":%" PRIu64 ",\"correlation\":%u,\"start\":%" PRIu64 ",\"end\":%" PRIu64 "}\n",
         s->is_query ? "query" : "sync", s->type, s->result, (int)getpid(), tid(), s->context, s->stream, s->event,
         s->event_sync, s->correlation, s->start_ns, s->end_ns);
}

void sim_truth_alloc(const struct simgpu_alloc *a)
{
    if (!is_on()) return;
    line("{\"what\":\"%s\",\"kind\":%u,\"pid\":%d,\"tid\":%d,\"address\":%" PRIu64 ",\"bytes\":%" PRIu64
         ",\"device\":%u,"
         "\"context\":%u,\"stream\":%u,\"correlation\":%u,\"time\":%" PRIu64 "}\n",
         a->is_free ? "free" : "alloc", a->kind, (int)getpid(), tid(), a->address, a->bytes, a->device, a->context,
         a->stream, a->correlation, a->host_ns);
}

void sim_truth_note(const char *what, const char *detail)
{
    if (!is_on()) return;
    line("{\"what\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"time\":%" PRIu64 "}\n", what, detail, (int)getpid(),
         tid(), sim_now());
}

// SPDX-License-Identifier: Apache-2.0
/*
 * chrome.c - a cycle of a spool as a trace file of Kineto's shape
 *
 * Called by: the export thread inside the host, the CLI
 * Memory:    a fixed set of mapped blocks (1 MB, 8 MB more at most for the arrows of a training run).
 * On fail:   -errno, no file. One pass, nothing is sorted: the reader gives the events by start, parents before children.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_clock.h"
#include "collector/base/kp_log.h"
#include "export/tbname.h"
#include "export/trace.h"
#include "collector/base/kp_poison.h"

#define PROGRESS_EVENTS 4096u

static int text_down(void *context, const void *data, size_t bytes)
{
    struct kp_trace *t = context;
    return t->gz ? kp_gz_write(t->gz, data, bytes) : kp_sink_write(&t->sink, data, bytes);
}

/* A name nobody has yet; the time moves on by a nanosecond a try. */
static int path_make(struct kp_trace *t, char *name, size_t bytes)
{
    const struct kp_file_head *head = kp_reader_head(t->reader);
    char host[sizeof head->host + 1] = {0};
    memcpy(host, head->host, strnlen(head->host, sizeof head->host));
    for (int tries = 0; tries < 1000; tries++) {
        int rc = kp_tbname_make(name, bytes, t->options->worker_name, host, head->pid, t->now_ns, t->options->gzip);
        if (rc) return rc;
        if (kp_fmt(t->result->path, sizeof t->result->path, "%s/%s", t->options->dir, name) >= sizeof t->result->path) return -ENAMETOOLONG;
        if (access(t->result->path, F_OK)) return 0;
        t->now_ns++;
    }
    return -EEXIST;
}

/* With the first event: opens the file and writes everything that stands before it. */
static int begin(struct kp_trace *t)
{
    char name[256];
    int rc = path_make(t, name, sizeof name);
    if (!rc) rc = kp_sink_open(&t->sink, t->options->dir, name);
    if (!rc) rc = kp_json_init(&t->json, text_down, t);
    if (rc) return rc;
    if (t->options->gzip && !(t->gz = kp_gz_open(&t->sink))) return -ENOMEM;
    t->flows = kp_flows_open();
    if (!t->flows) return -ENOMEM;
    t->pid = kp_reader_head(t->reader)->pid;
    t->to_tid_bytes = kp_fmt(t->to_tid, sizeof t->to_tid, "\",\"pid\":%u,\"tid\":", t->pid);
    t->begun = true;
    kp_head_write(t);
    return t->json.error;
}

/* A program that runs torch.profiler itself marks its steps as well: beside ours every viewer would count them twice. */
static bool is_second_mark(const struct kp_trace *t, const struct kp_event *e)
{
    if (e->kind != KP_KIND_OP || e->scope != 7 || !t->result->steps || strncmp(e->name, "ProfilerStep#", 13) != 0) return false;
    return e->name[13] && !e->name[13 + strspn(e->name + 13, "0123456789")];
}

static int event_take(void *context, const struct kp_event *e)
{
    struct kp_trace *t = context;
    int rc = t->begun ? 0 : begin(t);
    if (rc || is_second_mark(t, e)) return rc;
    kp_event_write(t, e);
    if (e->kind == KP_KIND_OP) t->result->events++;
    else t->result->steps++;
    if (t->index % PROGRESS_EVENTS) return 0;
    if (t->options->progress && t->options->progress(t->options->context, t->index)) return -ECANCELED;
    return t->json.error;
}

static int finish(struct kp_trace *t)
{
    int rc, tries = 0;
    kp_tail_write(t);
    rc = kp_json_flush(&t->json);
    if (!rc && t->gz) rc = kp_gz_finish(t->gz);
    if (!rc) rc = kp_sink_commit(&t->sink, t->result->path);
    while (rc == -EEXIST && tries++ < 1000) { /* taken between path_make and here */
        char name[256];
        t->now_ns++;
        rc = path_make(t, name, sizeof name);
        if (!rc) rc = kp_sink_commit(&t->sink, t->result->path);
    }
    return rc;
}

static int cycle_find(struct kp_reader *r, uint32_t number, struct kp_cycle *out)
{
    for (size_t i = kp_reader_cycles(r); i-- > 0;)
        if (!kp_reader_cycle(r, i, out) && out->number == number) return 0;
    return -ENOENT;
}

int kp_export_trace(struct kp_reader *reader, uint32_t cycle, const struct kp_export_options *options, struct kp_export_result *result)
{
    struct kp_trace *t = kp_map_alloc(sizeof *t);
    int rc = t ? 0 : -ENOMEM;
    memset(result, 0, sizeof *result);
    if (rc) return rc;
    t->sink.fd = -1;
    t->reader = reader, t->options = options, t->result = result;
    t->now_ns = kp_clock_ns(CLOCK_REALTIME);
    rc = cycle_find(reader, cycle, &t->cycle);
    if (!rc) rc = kp_reader_events(reader, cycle, event_take, t);
    if (!rc) rc = t->begun ? finish(t) : -ENODATA;
    result->lost = t->cycle.lost;
    if (rc) {
        kp_sink_drop(&t->sink);
        result->path[0] = 0;
    }
    kp_gz_close(t->gz);
    kp_flows_close(t->flows);
    kp_json_fini(&t->json);
    kp_map_free(t, sizeof *t);
    return rc;
}

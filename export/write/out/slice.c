// SPDX-License-Identifier: Apache-2.0
/*
 * slice.c - writes pieces that a trace's events share: a place and a time, an arrow's end, a row's name
 *
 * Called by: all that writes a part of a trace (hot: no search, no allocation)
 */
#include "export/write/out/slice.h"

#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

void kp_slice_place_write(struct kp_trace *t, uint64_t pid, int64_t tid, uint64_t start_ns, uint64_t end_ns)
{
    kp_json_fmt(&t->json, "\",\"pid\":%lu,\"tid\":%ld,\"ts\":%ju,\"dur\":%ju", pid, tid, kp_ts_of(t, start_ns),
                end_ns - start_ns);
}

void kp_slice_arrow_write(struct kp_trace *t, char phase, const char *kind, uint64_t id, uint64_t pid, int64_t tid,
                          uint64_t start_ns)
{
    kp_json_fmt(&t->json, "{\"ph\":\"%c\",\"id\":%lu,\"pid\":%lu,\"tid\":%ld,\"ts\":%ju,\"cat\":\"%s\",\"name\":\"%s\"",
                phase, id, pid, tid, kp_ts_of(t, start_ns), kind, kind);
    if (phase == 'f') kp_json_lit(&t->json, ",\"bp\":\"e\"");
    kp_json_lit(&t->json, "},\n");
}

void kp_row_write(struct kp_trace *t, const char *name, uint64_t pid, uint64_t tid, const char *arg, const char *text,
                  uint64_t number)
{
    kp_json_fmt(&t->json, "{\"ph\":\"M\",\"name\":\"%s\",\"ts\":%ju,\"pid\":%lu,\"tid\":%lu,\"args\":{\"%s\":", name,
                kp_ts_of(t, t->cycle.begin_ns), pid, tid, arg);
    if (text) kp_json_cstring(&t->json, text);
    else kp_json_u64(&t->json, number);
    kp_json_lit(&t->json, "}},\n");
}

void kp_thread_row_write(struct kp_trace *t, uint32_t tid, const char *name)
{
    char text[64];
    kp_fmt(text, sizeof text, "thread %u (%s)", tid, name);
    kp_row_write(t, "thread_name", t->pid, tid, "name", text, 0);
    kp_row_write(t, "thread_sort_index", t->pid, tid, "sort_index", NULL, tid);
}

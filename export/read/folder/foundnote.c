// SPDX-License-Identifier: Apache-2.0
/* foundnote.c - reads whose a file of a folder is from the head of its trace */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/folder/run_folder.h"
#include "export/read/folder/tracehead.h"

#define FORKED_FROM "\"parent_pid\": \""

#define BASE "\"baseTimeNanoseconds\": "
#define FIRST "\"ts\":"

/* Copies what stands behind `key` in a head, up to the quote. */
static void quoted_copy(char *out, size_t room, const char *head, const char *key)
{
    const char *const at = strstr(head, key);
    if (at) snprintf(out, room, "%.*s", (int)strcspn(at + strlen(key), "\""), at + strlen(key));
}

/* The first time in a trace's head: in microseconds after a base. */
static int64_t begin_read(const char *head, int64_t unknown)
{
    const char *const base = strstr(head, BASE), *const first = strstr(head, FIRST);
    int64_t ns;
    if (!base || !first) return unknown;
    if (__builtin_mul_overflow(strtoll(first + sizeof FIRST - 1, NULL, 10), 1000, &ns)) return unknown;
    return __builtin_add_overflow(ns, strtoll(base + sizeof BASE - 1, NULL, 10), &ns) ? unknown : ns;
}

/* The number behind `key` from `at` on, whoever wrote the blanks; -1: none. */
static long number_behind(const char *at, const char *key)
{
    const char *const found = strstr(at, key);
    char *end;
    if (!found) return -1;
    const char *const from = found + strlen(key), *const digits = from + strspn(from, ": \n\r\t");
    const long number = strtol(digits, &end, 10);
    return end == digits ? -1 : number;
}

/* As torch.profiler writes it: names of its handler's files, HOST_PID or "worker0", do not have the rank. */
static long rank_read(const char *head)
{
    const char *const job = strstr(head, "\"distributedInfo\"");
    return job && number_behind(job, "\"world_size\"") > 1 ? number_behind(job, "\"rank\"") : -1;
}

void kp_found_note(struct kp_found *f)
{
    struct kp_tracehead head;
    if (f->is_spool || f->is_noted) return;
    f->is_noted = true;
    kp_tracehead_read(&head, f->path);
    const char *const at = strstr(head.bytes, "\"ppid\": ");
    const char *const forked = strstr(head.bytes, FORKED_FROM); /* a worker's trace */
    if (forked) f->parent_pid = strtol(forked + sizeof FORKED_FROM - 1, NULL, 10);
    else f->parent_pid = at ? strtol(at + sizeof "\"ppid\": " - 1, NULL, 10) : 0;
    f->begin_ns = begin_read(head.bytes, f->since_ns);
    quoted_copy(f->program, sizeof f->program, head.bytes, "\"args\":{\"name\":\"");
    quoted_copy(f->program, sizeof f->program, head.bytes, "\"script\": \"");
    const char *const ours = strstr(head.bytes, "\"kprof\": {"); /* the user's own keys stand before it */
    f->is_ours = ours != NULL;
    if (ours) quoted_copy(f->job, sizeof f->job, ours, "\"job\": \"");
    else if (f->rank < 0) f->rank = rank_read(head.bytes);
    if (strstr(head.bytes, "\"torch_version\": ")) f->kind = KP_FOUND_TORCH;
    else if (strstr(head.bytes, "\"script\": ")) f->kind = KP_FOUND_PYTHON;
}

// SPDX-License-Identifier: Apache-2.0
/* who_ran_whom.c - which process of a folder started which other one, by the heads of their traces */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "export/cli/run_folder.h"
#include "export/report/kineto.h"

#define FORKED_FROM "\"parent_pid\": \""

struct head_text {
    char bytes[8192];
    size_t used;
};

static int head_take(void *context, const char *text, size_t bytes)
{
    struct head_text *head = context;
    const size_t room = sizeof head->bytes - 1 - head->used, n = bytes < room ? bytes : room;
    memcpy(head->bytes + head->used, text, n);
    head->used += n;
    head->bytes[head->used] = 0;
    return head->used == sizeof head->bytes - 1; /* enough */
}

/* Copies what stands behind `key` in a head, up to the quote. */
static void quoted_copy(char *out, size_t room, const char *head, const char *key)
{
    const char *const at = strstr(head, key);
    if (at) snprintf(out, room, "%.*s", (int)strcspn(at + strlen(key), "\""), at + strlen(key));
}

void kp_found_note(struct kp_found *f)
{
    struct head_text head = {.used = 0};
    char why[256];
    if (f->is_spool) return;
    (void)kp_text_file_each(f->path, head_take, &head, why, sizeof why);
    const char *const at = strstr(head.bytes, "\"ppid\": ");
    const char *const forked = strstr(head.bytes, FORKED_FROM); /* a worker's trace */
    if (at) f->parent_pid = strtol(at + sizeof "\"ppid\": " - 1, NULL, 10);
    else f->parent_pid = forked ? strtol(forked + sizeof FORKED_FROM - 1, NULL, 10) : 0;
    quoted_copy(f->program, sizeof f->program, head.bytes, "\"args\":{\"name\":\"");
    quoted_copy(f->program, sizeof f->program, head.bytes, "\"script\": \"");
    if (strstr(head.bytes, "\"torch_version\": ")) f->kind = KP_FOUND_TORCH;
    else if (strstr(head.bytes, "\"script\": ")) f->kind = KP_FOUND_PYTHON;
}

size_t kp_found_siblings(struct kp_run_folder *folder)
{
    const struct kp_found *const newest = kp_run_folder_newest(folder, true, 0);
    size_t count = 0;
    for (size_t i = 0; i < folder->count; i++) kp_found_note(&folder->of[i]);
    for (size_t i = 0; newest && newest->parent_pid && i < folder->count; i++)
        count += folder->of[i].parent_pid == newest->parent_pid;
    return count;
}

static long worker_pid(const struct kp_found *f)
{
    const char *const at = strrchr(f->worker, '_');
    return at ? strtol(at + 1, NULL, 10) : 0;
}

static const struct kp_found *newest_of_pid(const struct kp_run_folder *folder, long pid)
{
    const struct kp_found *newest = NULL;
    for (size_t i = 0; i < folder->count; i++)
        if (worker_pid(&folder->of[i]) == pid && (!newest || folder->of[i].since_ns > newest->since_ns))
            newest = &folder->of[i];
    return newest;
}

const struct kp_found *kp_found_above(const struct kp_run_folder *folder, const struct kp_found *f)
{
    return f->parent_pid ? newest_of_pid(folder, f->parent_pid) : NULL;
}

static bool is_below(const struct kp_run_folder *folder, const struct kp_found *f, const struct kp_found *top)
{
    for (size_t up = 0; f && up < folder->count; up++, f = kp_found_above(folder, f))
        if (kp_found_is_same_worker(f, top)) return true;
    return false;
}

/* How much the heap's profile beside a trace holds: the more allocations, the larger. */
static int64_t heap_bytes(const struct kp_found *f)
{
    struct stat st;
    char path[4400];
    const char *const end = strstr(f->path, ".pt.trace.json");
    if (!end) return 0;
    snprintf(path, sizeof path, "%.*s.heap.zst", (int)(end - f->path), f->path);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* A program with torch goes before one without. What is no Python is a wrapper, if what it ran allocated more. Else the
 * program goes before what it ran, and its newest trace before others. */
static bool is_rather(const struct kp_run_folder *folder, const struct kp_found *f, const struct kp_found *best)
{
    if (f->kind != best->kind) return f->kind > best->kind;
    if (f->kind == KP_FOUND_ANY) return heap_bytes(f) > heap_bytes(best);
    return kp_found_is_same_worker(f, best) ? f->since_ns > best->since_ns : is_below(folder, best, f);
}

const struct kp_found *kp_found_program(const struct kp_run_folder *folder, const struct kp_found *top)
{
    const struct kp_found *best = top;
    for (size_t i = 0; i < folder->count; i++) {
        const struct kp_found *const f = &folder->of[i];
        if (!f->is_spool && is_below(folder, f, top) && is_rather(folder, f, best)) best = f;
    }
    return best;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * wherechildren.c - what the child processes of this one do, and which were killed
 *
 * Called by: where.c, on the thread that answers
 * Owns:      the numbers of the children
 * Locks:     none
 * Memory:    static
 * On fail:   children that cannot be read are left out. A kernel without /proc/TID/children shows none.
 * Safe in:   signal handlers no; after fork yes
 *
 * A program that waits for a child says so by its own frames alone: what that child does, or that it was killed, is
 * the cause. Which ended is known until the program waits for it (a zombie), and where waitpid took it (endlist.c).
 */
#include "preload/blackbox/where.h"

#include <string.h>
#include <sys/wait.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_digits.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "export/write/out/json.h"
#include "preload/blackbox/task.h"
#include "preload/procfacts/endlist.h"
#include "collector/base/kp_poison.h"

enum { CHILDREN_MAX = 32, LIST_BYTES = 4096 };

static uint32_t children[CHILDREN_MAX], children_n;

void kp_wherechildren_note(uint32_t tid)
{
    char path[64], text[LIST_BYTES];
    kp_fmt(path, sizeof path, "/proc/self/task/%u/children", tid);
    const char *at = kp_io_text(path, text, sizeof text) > 0 ? text : "";
    while (*at && children_n < CHILDREN_MAX) {
        const uint32_t pid = (uint32_t)kp_digits_read(&at);
        if (pid) children[children_n++] = pid;
        at += *at ? 1 : 0;
    }
}

void kp_wherechildren_call_put(struct kp_json *j, const struct kp_task *t)
{
    const char *words = "", *const name = kp_task_call(t, &words);
    if (t->call == KP_TASK_RUNS) kp_json_lit(j, ",\"words\":\"runs\"");
    if (t->call < 0) return;
    if (name) kp_json_fmt(j, ",\"call\":\"%s\",\"words\":\"%s\"", name, words);
    else kp_json_fmt(j, ",\"call\":\"%ld\"", t->call);
    if (*t->on) kp_json_fmt(j, ",\"on\":\"%s\"", t->on);
}

static void status_put(struct kp_json *j, int status)
{
    if (status >= 0) kp_json_fmt(j, ",\"status\":%d", status);
}

/* Not a process of the library that writes where the folder stands. */
static bool is_of_host(const struct kp_task *t) { return strncmp(t->name, "kprof-", 6) != 0; }

static void lost_put(struct kp_json *j)
{
    char text[KP_ENDLIST_MAX * KP_ENDLIST_LINE + 1] = "";
    bool is_first = true;
    const uint64_t now_ns = kp_clock_ns(CLOCK_REALTIME);
    text[kp_endlist_text(text, sizeof text)] = '\0';
    kp_json_lit(j, ",\"lost\":[");
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        const uint32_t pid = (uint32_t)kp_digits_read(&at);
        at += *at == ' ';
        const int status = (int)kp_digits_read(&at);
        at += *at == ' ';
        const uint64_t at_ns = kp_digits_read(&at);
        if (!WIFSIGNALED(status)) continue; /* programs run commands that fail */
        kp_json_fmt(j, "%s{\"pid\":%u,\"status\":%d,\"ago_ms\":%lu}", is_first ? "" : ",", pid, status,
                    (unsigned long)(now_ns > at_ns ? (now_ns - at_ns) / 1000000 : 0));
        is_first = false;
    }
    kp_json_char(j, ']');
}

void kp_wherechildren_put(struct kp_json *j)
{
    struct kp_task t;
    bool is_first = true;
    kp_json_lit(j, ",\"children\":[");
    for (uint32_t i = 0; i < children_n; i++) {
        if (!kp_task_look(&t, children[i], children[i]) || !is_of_host(&t)) continue;
        kp_json_fmt(j, "%s{\"pid\":%u,\"name\":\"%s\",\"state\":\"%c\"", is_first ? "" : ",", t.tid, t.name, t.state);
        kp_wherechildren_call_put(j, &t);
        status_put(j, t.status);
        kp_json_char(j, '}');
        is_first = false;
    }
    kp_json_char(j, ']');
    children_n = 0;
    lost_put(j);
}

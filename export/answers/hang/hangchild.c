// SPDX-License-Identifier: Apache-2.0
/* hangchild.c - the child processes of one that stands: what they do, and which were killed */
#include "export/answers/hang/hangchild.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "export/read/kineto/ended.h"
#include "export/show/plain.h"

void kp_hang_call_put(FILE *out, const struct kp_hang_call *call)
{
    const bool has_words = *call->words;
    kp_plain_fmt(out, "%s", call->words);
    if (!*call->name) return;
    kp_plain_fmt(out, "%s%s", has_words ? " (" : "", call->name);
    if (*call->on) kp_plain_fmt(out, ": %s", call->on);
    if (has_words) fputc(')', out);
}

/* No part of a program ends its children so. SIGTERM is the usual way. */
static bool is_killed(int status)
{
    const int signal = status > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return signal == SIGKILL || signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGILL ||
           signal == SIGFPE;
}

static void end_put(FILE *out, int status)
{
    char name[16];
    if (status < 0) fputs("has ended", out);
    else if (WIFSIGNALED(status))
        fprintf(out, "was killed by %s", kp_ended_signal_name(WTERMSIG(status), name, sizeof name));
    else fprintf(out, "has ended with status %d", WEXITSTATUS(status));
}

static void child_put(FILE *out, const struct kp_hang_child *c)
{
    kp_plain_fmt(out, "process %ld", c->pid);
    if (*c->name) kp_plain_fmt(out, " (%s)", c->name);
    fputc(' ', out);
    if (c->is_over) end_put(out, c->status);
    else if (*c->call.words || *c->call.name) kp_hang_call_put(out, &c->call);
    else fputs("runs", out);
    if (c->is_over && c->ago_ms > 0) fprintf(out, " %.1f s before", c->ago_ms / 1e3);
}

static bool is_awaited(const struct kp_hang_process *p, const struct kp_hang_child *c)
{
    char name[32];
    snprintf(name, sizeof name, "process %ld", c->pid);
    for (size_t i = 0; i < p->thread_count; i++)
        if (p->threads[i].is_main && strcmp(p->threads[i].call.on, name) == 0) return true;
    return false;
}

void kp_hang_child_say(FILE *out, const struct kp_hang_process *p)
{
    const struct kp_hang_child *said = NULL;
    for (size_t i = 0; i < p->child_count; i++)
        if (!said && is_awaited(p, &p->children[i])) said = &p->children[i];
    for (size_t i = p->child_count; !said && i-- > 0;) /* the newest last */
        if (p->children[i].is_over && is_killed(p->children[i].status)) said = &p->children[i];
    if (!said) return;
    fputs(said->is_over ? "; its child " : "; ", out);
    child_put(out, said);
}

void kp_hang_children_print(FILE *out, const struct kp_hang_process *p)
{
    for (size_t i = 0; i < p->child_count; i++) {
        fputs("  child ", out);
        child_put(out, &p->children[i]);
        fputc('\n', out);
    }
}

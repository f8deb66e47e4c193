// SPDX-License-Identifier: Apache-2.0
/* hangprint.c - prints where processes stand, and who waits for whom, for people */
#include "export/answers/hang/hangprint.h"

#include <stdlib.h>
#include <string.h>

#include "export/answers/hang/hangchild.h"
#include "export/read/frames/ownline.h"
#include "export/read/kineto/kineto.h"
#include "export/show/plain.h"
#include "export/show/units.h"

static void thread_print(FILE *out, const struct kp_hang_thread *t)
{
    kp_plain_fmt(out, "  thread %ld (%s)%s", t->tid, t->name, t->is_main ? ", main" : "");
    if (*t->call.words || *t->call.name) fputs(": ", out);
    kp_hang_call_put(out, &t->call);
    if (t->has_moved) fputs(", it ran meanwhile", out);
    fputc('\n', out);
    kp_hang_frames_print(out, t);
}

/* The work of a process beside its threads, as the end of its line. */
static void facts_print(FILE *out, const struct kp_hang_process *p)
{
    struct kp_hang_spot spot;
    kp_hang_spot(&spot, p);
    if (p->step > 0) fprintf(out, ", step %ld", p->step);
    if (spot.within) kp_plain_fmt(out, ", in %s", spot.within->name);
    if (spot.within && spot.within->since_ms > 0)
        kp_plain_fmt(out, " no. %ld for %.1f s", spot.within->begun, spot.within->since_ms / 1e3);
    if (*p->no_python) kp_plain_fmt(out, ", without frames of Python: %s", p->no_python);
}

static void head_print(FILE *out, const struct kp_hang_process *p)
{
    struct kp_hang_spot none = {NULL, NULL, NULL};
    if (p->rank >= 0) fprintf(out, "rank %ld, ", p->rank);
    fprintf(out, "process %ld", p->pid);
    if (*p->host) kp_plain_fmt(out, " on %s", p->host);
    if (*p->python) kp_plain_fmt(out, ", Python %s", p->python);
    facts_print(out, p);
    if (p->state != KP_HANG_TOLD) fputs(": ", out);
    if (p->state != KP_HANG_TOLD) kp_hang_spot_put(out, p, &none);
    fputc('\n', out);
}

void kp_hang_threads_print(FILE *out, const struct kp_hang_process *p)
{
    head_print(out, p);
    for (size_t i = 0; i < p->thread_count; i++) thread_print(out, &p->threads[i]);
    kp_hang_children_print(out, p);
    if (p->left_out) fprintf(out, "  %ld more thread%s\n", p->left_out, kp_units_s((size_t)p->left_out));
}

/* The threads of a process that is accused: its main thread, and those in code of the program, or that its exit waits
 * for. */
static void accused_print(FILE *out, const struct kp_hang_process *p)
{
    struct kp_hang_spot spot;
    kp_hang_spot(&spot, p);
    const bool is_at_exit = spot.thread && kp_hang_is_at_exit(spot.thread);
    head_print(out, p);
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct kp_hang_thread *const t = &p->threads[i];
        const struct kp_hang_frame *const own = kp_hang_own(t);
        if (t->is_main || (is_at_exit && own) || (own && kp_ownline_is_file(NULL, own->file))) thread_print(out, t);
    }
    kp_hang_children_print(out, p);
}

static bool is_same(const struct kp_hang_process *a, const struct kp_hang_process *b)
{
    struct kp_hang_spot x, y;
    kp_hang_spot(&x, a);
    kp_hang_spot(&y, b);
    if (a->state != b->state || !x.within != !y.within || !x.thread != !y.thread) return false;
    if (x.within && (strcmp(x.within->name, y.within->name) != 0 || x.within->begun != y.within->begun)) return false;
    if (!x.thread) return true;
    if (x.thread->frame_count != y.thread->frame_count || strcmp(x.thread->call.name, y.thread->call.name) != 0)
        return false;
    for (size_t i = 0; i < x.thread->frame_count; i++) {
        const struct kp_hang_frame *const f = &x.thread->frames[i], *const g = &y.thread->frames[i];
        if (f->line != g->line || strcmp(f->file, g->file) != 0 || strcmp(f->function, g->function) != 0) return false;
    }
    return true;
}

/* A hook of DDP goes on in a thread that runs collectives. One that waits there for a collective may stop its rank. */
static void hooks_print(FILE *out, const struct kp_hang_process *p)
{
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct kp_hang_thread *const t = &p->threads[i];
        if (!t->is_main && t->frame_count && strstr(t->frames[0].file, "torch/distributed/")) thread_print(out, t);
    }
}

static void others_print(FILE *out, const struct kp_hang *h, const struct kp_hang_verdict *v)
{
    bool *const told = kp_kineto_zeros(h->count + 1, sizeof *told), *const now =
                                                                        kp_kineto_zeros(h->count + 1, sizeof *now);
    for (size_t i = 0; i < h->count; i++) {
        struct kp_hang_spot spot;
        if (told[i] || v->accused[i]) continue;
        for (size_t k = 0; k < h->count; k++) {
            now[k] = k >= i && !told[k] && !v->accused[k] && is_same(&h->of[i], &h->of[k]);
            told[k] |= now[k];
        }
        kp_hang_spot(&spot, &h->of[i]);
        kp_hang_ranks_put(out, h, now);
        facts_print(out, &h->of[i]);
        fputc('\n', out);
        if (spot.thread) thread_print(out, spot.thread);
        if (spot.within) hooks_print(out, &h->of[i]);
    }
    free(told);
    free(now);
}

void kp_hang_print(FILE *out, const struct kp_hang *h, const struct kp_hang_verdict *v)
{
    kp_plain_fmt(out, "%s\n", v->text);
    for (size_t i = 0; i < h->count; i++)
        if (v->accused[i]) accused_print(out, &h->of[i]);
    others_print(out, h, v);
}

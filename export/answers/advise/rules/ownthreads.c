// SPDX-License-Identifier: Apache-2.0
/*
 * ownthreads.c - what other threads of the same program take from the thread of the steps: cores; and their line
 *
 * The recorder notes how long all other threads had a core in the window, those that have ended, too. Threads of
 * torch's pool are among them, and share its ops. So what these had at most is left out, where their number was noted,
 * and else all count only where there is no pool: one thread ran, or OMP_NUM_THREADS is 1. The recorder's own are not
 * among them.
 */
#include "export/answers/advise/rules/ownthreads.h"

#include "export/answers/advise/parts/costrules.h"

#include "export/read/facts/selftime.h"
#include "export/answers/top/timeshares.h"

const char *kp_ownthreads_text(const struct kp_costrules *x)
{
    const double others_ns = (double)kp_summary_own_threads_ns(x->tree->trace);
    const double had_ns = 1e3 * kp_costrules_fact(x, "kprof.core_had_us");
    if (!(others_ns > 0) || x->out->has_gpu) return NULL;   /* a GPU's backward has a thread of torch's */
    const long torch = kp_threads_of(x->tree->trace).torch; /* beside its pool they had a core so long at least */
    const char *const pool = torch > 1 ? KP_TEXT(" besides torch's %ld", torch) : "";
    return KP_TEXT("Other threads of this program%s ran for %s%.0f ms together in these steps, %s for %.0f ms", pool,
                   *pool ? "at least " : "", others_ns / 1e6, x->out->step_thread, had_ns / 1e6);
}

const char *kp_ownthreads_relatives(const struct kp_costrules *x)
{
    const struct kp_kineto *const trace = x->tree->trace;
    const bool has_ranks = kp_rankwaits_rank(trace) >= 0 && kp_threads_of(trace).ranks != 1;
    return KP_TEXT("%s%s", kp_namefacts_has_workers(trace) ? ", this program's DataLoader workers" : "",
                   has_ranks ? ", other ranks of the job" : "");
}

/* ---- their line ---- */

struct seeking {
    const struct kp_costrules *x;
    int64_t steps_tid;
    struct kp_keyindex keys; /* a line; rows: ns */
};

/* The thread that runs most ops: the majority's, if there is one. */
static int64_t steps_thread(const struct kp_costrules *x)
{
    int64_t tid = 0;
    size_t votes = 0;
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!kp_costrules_is_op(x, i)) continue;
        const int64_t of = kp_tree_event(x->tree, i)->tid;
        if (!votes) tid = of;
        votes += of == tid ? 1 : (size_t)-1;
    }
    return tid;
}

static void time_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct seeking *const s = context;
    const struct kp_tree *const tree = s->x->tree;
    const struct kp_node *const n = &tree->nodes[node];
    if (!n->is_python || kp_tree_event(tree, node)->tid == s->steps_tid) return;
    if (kp_namefacts(tree->trace, n->name) & KP_NAME_IDLE) return;
    const int64_t ns = kp_spans_between(&s->x->chosen->in_steps, from_ns, to_ns);
    const uint32_t line = kp_tree_line(tree, n);
    if (line && ns > 0) *kp_keyindex_sum(&s->keys, line) += (double)ns;
}

const char *kp_ownthreads_line(const struct kp_costrules *x)
{
    struct seeking s = {.x = x, .steps_tid = steps_thread(x)};
    if (!kp_costrules_has_calls(x)) return NULL;
    kp_selftime_each(x->tree, time_take, &s);
    const uint64_t line = s.keys.count ? s.keys.keys[kp_keyindex_most(&s.keys)] : 0;
    kp_keyindex_fini(&s.keys);
    return line ? kp_kineto_text(x->tree->trace, (uint32_t)line) : NULL;
}

const char *kp_ownthreads_where(const struct kp_costrules *x)
{
    const char *const line = kp_ownthreads_line(x);
    if (!kp_costrules_has_calls(x))
        return "what they run: kprof run --with-stack 1 --schedule 10-30, then kprof stacks --threads";
    return line ? KP_TEXT("most of what they run is %s", line) : "what they run: kprof stacks --threads";
}

// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_calls.c - writes calls into CUDA as Kineto shows them, linked to the op and annotation around them; NVTX ranges
 *
 * Called by: export.c, for events in order of time: ops at their start, calls at their middle (hot)
 *
 * Calls that Kineto leaves out as noise are left out here. The calls are six of the runtime, and all driver calls but
 * launches and virtual memory. An arrow begins at calls that start work or wait for it.
 */
#include <string.h>

#include "export/write/gpu/gpu.h"
#include "collector/base/kp_poison.h"

#define USER_SCOPE 7
enum { IS_SHOWN = 1, HAS_ARROW = 2 };
enum {
    CBID_MEMCPY = 31,
    CBID_MEMSET2D_ASYNC = 52
}; /* CUPTI's numbers of the first call (cudaMemcpy) and the last from which Kineto draws arrows */

static const struct rule {
    const char *name;
    uint8_t what;
} runtime_rules[] =
    {
        {"cudaGetDevice", 0},
        {"cudaSetDevice", 0},
        {"cudaGetLastError", 0},
        {"cudaEventCreate", 0},
        {"cudaEventCreateWithFlags", 0},
        {"cudaEventDestroy", 0},
        {"cudaLaunchKernel", IS_SHOWN | HAS_ARROW},
        {"__cudaLaunchKernel", IS_SHOWN | HAS_ARROW}, /* called by stubs of nvcc 13; Kineto begins no arrow here */
        {"cudaLaunchKernelExC", IS_SHOWN | HAS_ARROW},
        {"cudaLaunchCooperativeKernel", IS_SHOWN | HAS_ARROW},
        {"cudaLaunchCooperativeKernelMultiDevice", IS_SHOWN | HAS_ARROW},
        {"cudaGraphLaunch", IS_SHOWN | HAS_ARROW},
        {"cudaStreamSynchronize", IS_SHOWN | HAS_ARROW},
        {"cudaDeviceSynchronize", IS_SHOWN | HAS_ARROW},
        {"cudaStreamWaitEvent", IS_SHOWN | HAS_ARROW},
},
  driver_rules[] = {
      {"cuLaunchKernel", IS_SHOWN | HAS_ARROW},
      {"cuLaunchKernelEx", IS_SHOWN | HAS_ARROW},
      {"cuMemCreate", IS_SHOWN},
      {"cuMemMap", IS_SHOWN},
      {"cuMemUnmap", IS_SHOWN},
      {"cuMemRelease", IS_SHOWN},
      {"cuMemExportToShareableHandle", IS_SHOWN},
      {"cuMemImportFromShareableHandle", IS_SHOWN},
};

/* Calls of the per-thread default stream have a suffix, and count as the same calls. */
static bool is_named(const char *name, const char *rule)
{
    size_t n = strlen(rule);
    return !strncmp(name, rule, n) && (!name[n] || !strcmp(name + n, "_ptsz") || !strcmp(name + n, "_ptds"));
}

static uint8_t rule_find(const struct rule *rules, size_t n, const char *name, uint8_t otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (is_named(name, rules[i].name)) return rules[i].what;
    return otherwise;
}

static uint8_t what_of(const struct kp_event *e)
{
    uint8_t otherwise = IS_SHOWN;
    if (e->flags & KP_DEV_DRIVER)
        return rule_find(driver_rules, sizeof driver_rules / sizeof *driver_rules, e->name, 0);
    if (e->cbid) {
        if (e->cbid >= CBID_MEMCPY && e->cbid <= CBID_MEMSET2D_ASYNC) return IS_SHOWN | HAS_ARROW;
    } else if (!strncmp(e->name, "cudaMemcpy", 10) || !strncmp(e->name, "cudaMemset", 10)) {
        otherwise |= HAS_ARROW;
    }
    return rule_find(runtime_rules, sizeof runtime_rules / sizeof *runtime_rules, e->name, otherwise);
}

/*
 * Fits a call's edges into the op around its middle. Its times come from another clock than the ops', so an edge may
 * lie outside that op. Slices of a row must nest, or some viewers drop one.
 */
static void edges_fit(const struct kp_op_thread *thread, uint64_t *start_ns, uint64_t *end_ns)
{
    const struct kp_open_op *op = thread->n ? &thread->of[thread->n - 1] : NULL;
    if (op && *start_ns < op->start_ns) *start_ns = op->start_ns;
    if (*start_ns < thread->last_end_ns) *start_ns = thread->last_end_ns;
    if (op && *end_ns > op->end_ns) *end_ns = op->end_ns;
    if (*end_ns < *start_ns) *end_ns = *start_ns;
}

/* Keeps the link for the work of this call. True: an arrow begins here. */
static bool link_make(struct kp_gpu *g, struct kp_op_thread *thread, const struct kp_event *e, uint8_t what)
{
    struct kp_link *link = e->correlation ? kp_links_make(&g->links, &g->scratch, e->correlation) : NULL;
    g->unlinked += e->correlation && !link;
    if (!link) return false;
    bool has_arrow =
        what & HAS_ARROW && !link->has_arrow; /* only the first of a runtime call and the driver call in it */
    link->external = thread->n ? thread->of[thread->n - 1].external & 0x7fffffffu : 0;
    link->note = kp_note_number(g, thread) & 0x7fffffffu;
    link->is_there = true;
    link->has_arrow |= has_arrow;
    return has_arrow;
}

void kp_call_write(struct kp_trace *t, const struct kp_event *e)
{
    struct kp_op_thread *thread = kp_opstack_thread(&t->gpu->ops, e->tid), none = {0};
    uint8_t what = what_of(e);
    uint64_t start_ns = e->start_ns, end_ns = e->end_ns;
    t->gpu->unlinked += !thread;
    if (!thread && !e->tid) return;
    if (!thread) thread = &none; /* no memory: the call is shown without its op */
    kp_opstack_close(thread, e->middle_ns);
    bool has_arrow = link_make(t->gpu, thread, e, what);
    if (!(what & IS_SHOWN)) return;
    edges_fit(thread, &start_ns, &end_ns);
    t->gpu->count[KP_KIND_API].shown++;
    if (e->flags & KP_DEV_DRIVER) kp_json_lit(&t->json, "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":\"");
    else kp_json_lit(&t->json, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"");
    kp_json_text(&t->json, e->name, strlen(e->name));
    kp_slice_place_write(t, t->pid, e->tid, start_ns, end_ns);
    kp_json_lit(&t->json, ",\"args\":{");
    if (thread->n && thread->of[thread->n - 1].external)
        kp_json_fmt(&t->json, "\"External id\":%u,", thread->of[thread->n - 1].external);
    if (e->cbid) kp_json_fmt(&t->json, "\"cbid\":%u,", e->cbid);
    kp_json_fmt(&t->json, "\"correlation\":%u", e->correlation);
    if (e->result > 0) kp_json_fmt(&t->json, ",\"result\":%d", e->result);
    kp_json_lit(&t->json, "}},\n");
    if (has_arrow) kp_slice_arrow_write(t, 's', "ac2g", e->correlation, t->pid, e->tid, start_ns);
}

/* --- what calls are linked to --- */

/* An asynchronous range may end on another thread. If it ends inside the op around it, it is one like others. */
static bool is_nested(const struct kp_op_thread *thread, const struct kp_event *e)
{
    if (e->kind != KP_KIND_OP || !(e->flags & KP_OP_ASYNC)) return true;
    return thread->n && e->end_ns <= thread->of[thread->n - 1].end_ns;
}

void kp_gpu_op(struct kp_trace *t, const struct kp_event *e, uint64_t external)
{
    bool is_annotation = e->scope == USER_SCOPE;
    struct kp_op_thread *thread = kp_opstack_thread(&t->gpu->ops, e->tid);
    if (!thread || external >= 1u << 31) {
        t->gpu->unlinked++;
        return;
    }
    kp_opstack_close(thread, e->start_ns);
    if (!is_nested(thread, e)) return;
    struct kp_open_op *op = kp_opstack_open(thread, e->start_ns, e->end_ns);
    t->gpu->unlinked += !op;
    if (!op) return;
    if (!is_annotation) {
        op->external = (uint32_t)external;
        return;
    }
    op->own = (uint32_t)external;
    op->annotation = thread->n;
    op->name = e->kind == KP_KIND_STEP ? NULL : e->name;
    op->step = e->step;
}

/* --- NVTX --- */

/* Writes an NVTX range. The name of its domain is an argument. */
static void range_write(struct kp_trace *t, const struct kp_event *e)
{
    kp_json_fmt(&t->json, "{\"ph\":\"X\",\"cat\":\"nvtx\",\"name\":\"%s", e->name);
    kp_slice_place_write(t, t->pid, e->tid, e->start_ns, e->end_ns);
    kp_json_fmt(&t->json, ",\"args\":{\"domain\":\"%s\"", e->domain);
    if (e->flags & KP_OP_UNFINISHED) kp_json_lit(&t->json, ",\"finished\":false");
    kp_json_lit(&t->json, "}},\n");
}

/* Writes a mark, or an end of a range that may end on another thread. Viewers pair the ends by id. */
static void point_write(struct kp_trace *t, const struct kp_event *e)
{
    if (e->nvtx == KP_NVTX_MARK) kp_json_lit(&t->json, "{\"ph\":\"i\",\"s\":\"t\"");
    else if (e->nvtx == KP_NVTX_START) kp_json_lit(&t->json, "{\"ph\":\"b\",\"id\":");
    else kp_json_lit(&t->json, "{\"ph\":\"e\",\"id\":");
    if (e->nvtx != KP_NVTX_MARK) kp_json_u64(&t->json, e->nvtx_id);
    kp_json_fmt(&t->json, ",\"cat\":\"nvtx\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%ju,\"args\":{", e->name,
                t->pid, e->tid, kp_ts_of(t, e->start_ns));
    if (e->domain) kp_json_fmt(&t->json, "\"domain\":\"%s\"", e->domain);
    kp_json_lit(&t->json, "}},\n");
}

void kp_nvtx_write(struct kp_trace *t, const struct kp_event *e)
{
    if (t->gpu) t->gpu->count[KP_KIND_NVTX].shown++;
    if (e->nvtx == KP_NVTX_RANGE) range_write(t, e);
    else point_write(t, e);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * activity.c - writes what ran on the devices: kernels, copies, fills, and CUPTI's own overhead
 *
 * Called by: export.c, once the host's events are written (hot: every record of the window's chunks)
 */
#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_log.h"
#include "export/write/gpu/collectives.h"
#include "export/write/gpu/gpu.h"
#include "export/write/out/double.h"
#include "collector/base/kp_poison.h"

#define PROGRESS_RECORDS 65536u
#define SHAPES 1024u

/* The part of a kernel's arguments that follows from its shape, as text: programs launch few shapes, many times. */
struct kp_shape {
    uint32_t device, registers, static_smem, dynamic_smem, grid[3], block[3];
    uint32_t bytes; /* 0: free */
    char text[764]; /* enough with every number at its longest */
};

/* --- a kernel's shape --- */

struct shape_text {
    char *at, *end;
};

static void text_add(struct shape_text *x, const char *format, ...)
{
    va_list args;
    size_t room = (size_t)(x->end - x->at);
    va_start(args, format);
    size_t n = kp_vfmt(x->at, room, format, args);
    va_end(args);
    x->at += n < room ? n : room;
}

/* A float as the double it is; JSON has no infinity, so Kineto quotes it. */
static void float_add(struct shape_text *x, const char *before, float value)
{
    char number[KP_DOUBLE_TEXT];
    if (value - value == 0) kp_double_text(number, (double)value);
    else kp_fmt(number, sizeof number, "%s", value > 0 ? "\"inf\"" : "\"nan\"");
    text_add(x, "%s%s", before, number);
}

static void limits_add(struct shape_text *x, uint32_t limits)
{
    static const char *const names[] = {"WARPS", "REGS", "SMEM", "BLOCKS"};
    const char *between = "";
    text_add(x, ",\"limitingFactors\":\"%s", limits ? "" : "none");
    for (uint32_t i = 0; i < 4; i++) {
        if (!(limits & 1u << i)) continue;
        text_add(x, "%s%s", between, names[i]);
        between = "|";
    }
    text_add(x, "\"");
}

static uint32_t shape_text(struct kp_shape *s, const struct kp_trace *t, const struct kp_rec_kernel *k)
{
    struct shape_text x = {s->text, s->text + sizeof s->text};
    struct kp_occupancy o;
    kp_occupancy_make(&o, kp_reader_gpu(t->reader, k->device), k);
    text_add(&x, ",\"registers per thread\":%u,\"shared memory\":%u", k->registers, k->static_smem + k->dynamic_smem);
    if (k->local_per_thread) text_add(&x, ",\"local memory per thread\":%u", k->local_per_thread);
    float_add(&x, ",\"blocks per SM\":", o.blocks_per_sm);
    float_add(&x, ",\"warps per SM\":", o.warps_per_sm);
    text_add(&x, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"est. achieved occupancy %%\":%d", k->grid[0], k->grid[1],
             k->grid[2], k->block[0], k->block[1], k->block[2], o.percent);
    text_add(&x, ",\"occupancy\":{\"activeBlocksPerMultiprocessor\":%d", o.active);
    limits_add(&x, o.limits);
    text_add(&x,
             ",\"blockLimitRegs\":%d,\"blockLimitSharedMem\":%d,\"blockLimitWarps\":%d,\"blockLimitBlocks\":%d,"
             "\"blockLimitBarriers\":%d",
             o.by_regs, o.by_smem, o.by_warps, o.by_blocks, o.limits ? INT32_MAX : 0);
    text_add(&x, ",\"allocatedRegistersPerBlock\":%d,\"allocatedSharedMemPerBlock\":%d}", o.registers, o.smem);
    return (uint32_t)(x.at - s->text);
}

static void shape_write(struct kp_trace *t, const struct kp_rec_kernel *k)
{
    struct kp_shape key = {
        .device = k->device, .registers = k->registers, .static_smem = k->static_smem, .dynamic_smem = k->dynamic_smem};
    memcpy(key.grid, k->grid, sizeof key.grid);
    memcpy(key.block, k->block, sizeof key.block);
    uint32_t words[10], hash = 0;
    memcpy(words, &key, sizeof words);
    for (int i = 0; i < 10; i++) hash = (hash ^ words[i]) * 0x9e3779b1u, hash ^= hash >> 15;
    struct kp_shape *s = &t->gpu->shapes[hash & (SHAPES - 1)];
    if (!s->bytes || memcmp(s, &key, sizeof words) != 0) {
        memcpy(s, &key, sizeof words);
        s->bytes = shape_text(s, t, k);
    }
    kp_json_raw(&t->json, s->text, s->bytes);
}

/* --- one piece of work --- */

/* Writes all up to the arguments, and puts the work on its stream. Returns the begin that the trace shows. */
static uint64_t begin_write(struct kp_trace *t, const struct kp_device_event *e, const struct kp_link *link,
                            uint32_t device, uint32_t stream)
{
    struct kp_stream *s = kp_stream_get(t->gpu, device, stream);
    uint64_t start_ns = s ? kp_stream_follow(s, e) : e->start_ns, end_ns = start_ns + (e->end_ns - e->start_ns);
    kp_slice_place_write(t, device, stream, start_ns, end_ns);
    kp_json_lit(&t->json, ",\"args\":{");
    if (link && link->external) kp_json_fmt(&t->json, "\"External id\":%d,", link->external);
    if (link && link->note) kp_note_extend(t->gpu, link->note, device, stream, start_ns, end_ns);
    return start_ns;
}

static void where_write(struct kp_trace *t, uint32_t device, uint32_t context, uint32_t stream, uint32_t correlation)
{
    kp_json_fmt(&t->json, "\"device\":%u,\"context\":%u,\"stream\":%u,\"correlation\":%u", device, context, stream,
                correlation);
}

static void graph_write(struct kp_trace *t, bool has_graph, uint32_t graph, uint64_t node)
{
    if (!has_graph) return;
    kp_json_fmt(&t->json, ",\"graph id\":%u,\"graph node id\":%lu", graph, node);
}

static void channel_write(struct kp_trace *t, bool has_channel, uint32_t channel, uint8_t type)
{
    if (!has_channel) return;
    kp_json_fmt(&t->json, ",\"channel\":%u,\"channel_type\":%d", channel, type);
}

static void end_write(struct kp_trace *t, uint32_t correlation, uint32_t device, uint32_t stream, uint64_t start_ns)
{
    kp_json_lit(&t->json, "}},\n");
    if (correlation) kp_slice_arrow_write(t, 'f', "ac2g", correlation, device, stream, start_ns);
}

static void kernel_write(struct kp_trace *t, const struct kp_device_event *e, const struct kp_link *link)
{
    const struct kp_rec_kernel *k = &e->of.kernel;
    const char *name = kp_demangle_name(&t->gpu->names, e->name);
    if (!strcmp(name, "kernel")) name = "Kernel"; /* for old viewers, says Kineto */
    kp_context_see(t->gpu, k->context, k->device);
    kp_json_fmt(&t->json, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s", name);
    uint64_t start_ns = begin_write(t, e, link, k->device, k->stream);
    kp_json_fmt(&t->json, "\"queued\":%lu,", k->queued);
    where_write(t, k->device, k->context, k->stream, k->correlation);
    if (k->has & KP_KERNEL_SHAPE) shape_write(t, k);
    graph_write(t, k->has & KP_KERNEL_GRAPH, k->graph, k->graph_node);
    if (k->has & KP_KERNEL_PRIORITY) kp_json_fmt(&t->json, ",\"priority\":%d", k->priority);
    channel_write(t, k->has & KP_KERNEL_CHANNEL, k->channel, k->channel_type);
    if (link && link->external) kp_comms_kernel_write(t, link->external);
    end_write(t, k->correlation, k->device, k->stream, start_ns);
}

static const char *copy_kind(uint8_t kind)
{
    static const char *const names[] = {NULL,   "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                        "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
    return kind && kind < sizeof names / sizeof *names ? names[kind] : "<unknown>";
}

static const char *memory_kind(uint8_t kind)
{
    static const char *const names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return kind < sizeof names / sizeof *names ? names[kind] : "Unrecognized";
}

static void peer_write(struct kp_trace *t, const struct kp_rec_copy *c)
{
    kp_json_fmt(&t->json,
                "\"fromDevice\":%u,\"inDevice\":%u,\"toDevice\":%u,\"fromContext\":%u,\"inContext\":%u,"
                "\"toContext\":%u,\"stream\":%u,\"correlation\":%u",
                c->src_device, c->device, c->dst_device, c->src_context, c->context, c->dst_context, c->stream,
                c->correlation);
}

static void copy_write(struct kp_trace *t, const struct kp_device_event *e, const struct kp_link *link)
{
    const struct kp_rec_copy *c = &e->of.copy;
    char name[80], number[KP_DOUBLE_TEXT];
    kp_context_see(t->gpu, c->context, c->device);
    if (e->kind == KP_KIND_MEMSET)
        kp_fmt(name, sizeof name, "gpu_memset\",\"name\":\"Memset (%s)", memory_kind(c->dst_kind));
    else
        kp_fmt(name, sizeof name, "gpu_memcpy\",\"name\":\"Memcpy %s (%s -> %s)", copy_kind(c->kind),
               memory_kind(c->src_kind), memory_kind(c->dst_kind));
    kp_json_lit(&t->json, "{\"ph\":\"X\",\"cat\":\"");
    kp_json_raw(&t->json, name, strlen(name));
    uint64_t start_ns = begin_write(t, e, link, c->device, c->stream);
    if (c->is_peer) peer_write(t, c);
    else where_write(t, c->device, c->context, c->stream, c->correlation);
    kp_json_fmt(&t->json, ",\"bytes\":%lu", c->bytes);
    if (e->end_ns > e->start_ns) {
        kp_double_text(number, (double)c->bytes / (double)(e->end_ns - e->start_ns));
        kp_json_fmt(&t->json, ",\"memory bandwidth (GB/s)\":%s", number);
    }
    graph_write(t, c->has & KP_KERNEL_GRAPH, c->graph, c->graph_node);
    channel_write(t, c->has & KP_KERNEL_CHANNEL, c->channel, c->channel_type);
    end_write(t, c->correlation, c->device, c->stream, start_ns);
}

/* Writes a whole graph as one piece. A tool in the process switched CUPTI to that, so the graph has no kernels. */
static void graphrun_write(struct kp_trace *t, const struct kp_device_event *e, const struct kp_link *link)
{
    const struct kp_rec_graphrun *r = &e->of.run;
    kp_context_see(t->gpu, r->context, r->device);
    kp_json_fmt(&t->json, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"CUDA graph %u", r->graph);
    uint64_t start_ns = begin_write(t, e, link, r->device, r->stream);
    where_write(t, r->device, r->context, r->stream, r->correlation);
    kp_json_fmt(&t->json, ",\"graph id\":%u", r->graph);
    end_write(t, r->correlation, r->device, r->stream, start_ns);
}

static const char *overhead_name(uint32_t kind)
{
    switch (kind) {
    case 0: return "Unknown";
    case 1: return "Driver Compiler";
    case 1u << 16: return "Buffer Flush";
    case 2u << 16: return "Instrumentation";
    case 3u << 16: return "Resource";
    case 4u << 16: return "Runtime Triggered Module Loading";
    case 5u << 16: return "Lazy Function Loading";
    case 6u << 16: return "Command Buffer Full";
    case 7u << 16: return "Activity Buffer Request";
    case 8u << 16: return "UVM Activity Init";
    default: return "Unrecognized";
    }
}

static void overhead_write(struct kp_trace *t, const struct kp_device_event *e)
{
    t->gpu->has_overhead = true;
    kp_json_fmt(&t->json,
                "{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"%s\",\"pid\":-1,\"tid\":0,\"ts\":%ju,\"dur\":%ju},\n",
                overhead_name(e->of.overhead.type), kp_ts_of(t, e->start_ns), e->end_ns - e->start_ns);
}

/* --- the walk --- */

static int device_take(void *context, const struct kp_device_event *e)
{
    struct kp_trace *t = context;
    const struct kp_link *link;
    switch (e->kind) {
    case KP_KIND_KERNEL:
        if (kp_work_belongs(t, e, e->of.kernel.correlation, &link)) kernel_write(t, e, link);
        break;
    case KP_KIND_MEMCPY:
    case KP_KIND_MEMSET:
        if (kp_work_belongs(t, e, e->of.copy.correlation, &link)) copy_write(t, e, link);
        break;
    case KP_KIND_GRAPHRUN:
        if (kp_work_belongs(t, e, e->of.run.correlation, &link)) graphrun_write(t, e, link);
        break;
    case KP_KIND_OVERHEAD:
        if (kp_work_belongs(t, e, 0, &link)) overhead_write(t, e);
        break;
    case KP_KIND_CUDAEVENT: kp_waits_record(t->gpu, &e->of.event); break;
    case KP_KIND_SYNC: t->gpu->syncs++; break;
    default: break;
    }
    if (++t->gpu->walked % PROGRESS_RECORDS) return 0;
    if (t->options->progress && t->options->progress(t->options->context, t->index)) return -ECANCELED;
    return t->json.error;
}

int kp_work_write(struct kp_trace *t)
{
    int rc;
    t->gpu->shapes = kp_map_alloc(SHAPES * sizeof *t->gpu->shapes);
    if (!t->gpu->shapes) return -ENOMEM;
    rc = kp_reader_device(t->reader, t->cycle.number, device_take, t);
    kp_map_free(t->gpu->shapes, SHAPES * sizeof *t->gpu->shapes);
    t->gpu->shapes = NULL;
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * window_work.c - decides which work belongs to a window, and writes device properties, versions and counts
 *
 * Kineto takes work that began and ended between its start and stop, and waits for the devices before it stops. The
 * library does not wait. So work launched by a call of the window belongs to the window, if it began in it or later.
 * Other work (launched in the warm-up, or its call was lost) belongs if it began and ended in the window.
 */
#include "export/write/gpu/gpu.h"

#include "export/write/gpu/collectives.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

int kp_gpu_open(struct kp_trace *t)
{
    if (!kp_reader_has_device(t->reader)) return 0;
    struct kp_gpu *g = kp_map_alloc(sizeof *g);
    if (!g) return -ENOMEM;
    kp_scratch_init(&g->scratch, t->options->scratch_dir, t->options->scratch_most);
    kp_list_init(&g->notes, &g->scratch, sizeof(struct kp_annotation));
    kp_list_init(&g->spans, &g->scratch, sizeof(struct kp_span));
    kp_list_init(&g->comms, &g->scratch, KP_COMMS_KEPT_BYTES);
    kp_list_init(&g->records, &g->scratch, sizeof(struct kp_event_record));
    kp_demangle_init(&g->names, &g->scratch, t->options->loads_cpp, t->options->cpp);
    t->gpu = g;
    return 0;
}

void kp_gpu_close(struct kp_gpu *g)
{
    if (!g) return;
    kp_demangle_fini(&g->names);
    kp_list_fini(&g->notes);
    kp_list_fini(&g->spans);
    kp_list_fini(&g->records);
    kp_list_fini(&g->comms);
    kp_opstack_fini(&g->ops);
    kp_links_fini(&g->links);
    kp_scratch_fini(&g->scratch);
    kp_map_free(g, sizeof *g);
}

/* --- keys at the top --- */

static void device_write(struct kp_trace *t, const struct kp_rec_device *d)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"totalGlobalMem", d->total_memory},
        {"computeMajor", d->major},
        {"computeMinor", d->minor},
        {"maxThreadsPerBlock", d->max_threads_per_block},
        {"maxThreadsPerMultiprocessor", d->max_threads_per_sm},
        {"regsPerBlock", d->regs_per_block},
        {"warpSize", d->warp_size},
        {"sharedMemPerBlock", d->smem_per_block},
        {"numSms", d->sms},
        {"regsPerMultiprocessor", d->regs_per_sm},
        {"sharedMemPerBlockOptin", d->smem_per_block_optin},
        {"sharedMemPerMultiprocessor", d->smem_per_sm},
    };
    kp_json_fmt(&t->json, "\n    {\"id\": %u, \"name\": \"%s\"", d->id, kp_reader_name(t->reader, d->head.name));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        kp_json_fmt(&t->json, ", \"%s\": %lu", numbers[i].name, numbers[i].value);
    kp_json_char(&t->json, '}');
}

void kp_device_keys_write(struct kp_trace *t)
{
    static const char *const versions[] = {"cupti_version", "cuda_runtime_version", "cuda_driver_version"};
    uint32_t shown = 0;
    kp_json_lit(&t->json, "  \"deviceProperties\": [");
    for (uint32_t i = 0; i < kp_reader_gpus(t->reader); i++) {
        if (!kp_reader_gpu(t->reader, i)) continue;
        if (shown++) kp_json_char(&t->json, ',');
        device_write(t, kp_reader_gpu(t->reader, i));
    }
    if (shown) kp_json_lit(&t->json, "\n  ");
    kp_json_lit(&t->json, "],\n");
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        const char *text = kp_reader_text(t->reader, versions[i]);
        size_t digits = text ? strspn(text, "0123456789") : 0;
        if (!digits || text[digits] || digits > 15 || (digits > 1 && *text == '0')) continue;
        kp_json_fmt(&t->json, "  \"%s\": %s,\n", versions[i], text);
    }
}

/* --- which records are shown, and how many are not --- */

bool kp_work_belongs(struct kp_trace *t, const struct kp_device_event *e, uint32_t correlation,
                     const struct kp_link **link)
{
    struct kp_gpu_count *count = &t->gpu->count[e->kind];
    *link = kp_links_get(&t->gpu->links, &t->gpu->scratch, correlation);
    if (e->time_status == KP_TIME_NONE) {
        count->no_time++;
    } else if (e->time_status == KP_TIME_INVALID) {
        count->invalid++;
    } else if (e->start_ns < t->cycle.begin_ns || (!*link && e->end_ns > t->cycle.end_ns)) {
        count->outside++;
    } else {
        count->shown++;
        return true;
    }
    return false;
}

/* --- the counts behind the events --- */

static void count_write(struct kp_trace *t, const char *kind, const struct kp_gpu_count *c)
{
    if (!c->shown && !c->outside && !c->no_time && !c->invalid) return;
    kp_json_fmt(&t->json, ", \"%s\": {\"shown\": %lu", kind, c->shown);
    if (c->outside) kp_json_fmt(&t->json, ", \"outside the window\": %lu", c->outside);
    if (c->no_time) kp_json_fmt(&t->json, ", \"without time\": %lu", c->no_time);
    if (c->invalid) kp_json_fmt(&t->json, ", \"invalid\": %lu", c->invalid);
    kp_json_char(&t->json, '}');
}

/* False: a later line has the same key. */
static bool is_last(const struct kp_trace *t, const char *line, const char *value)
{
    char key[64];
    size_t n = (size_t)(value - line);
    if (n >= sizeof key) return true;
    memcpy(key, line, n);
    key[n] = 0;
    return kp_reader_text(t->reader, key) == value + 1;
}

bool kp_gpu_has_counts(const struct kp_trace *t) { return t->gpu || kp_reader_text(t->reader, "gpu_windows_cut"); }

void kp_gpu_counts_write(struct kp_trace *t)
{
    static const char *const names[KP_KIND_N] = {
        [KP_KIND_API] = "calls",           [KP_KIND_KERNEL] = "kernel",  [KP_KIND_MEMCPY] = "gpu_memcpy",
        [KP_KIND_MEMSET] = "gpu_memset",   [KP_KIND_SYNC] = "cuda_sync", [KP_KIND_OVERHEAD] = "overhead",
        [KP_KIND_GRAPHRUN] = "graph runs", [KP_KIND_NVTX] = "nvtx",
    };
    const char *source = kp_reader_text(t->reader, "gpu_source"), *line = NULL;
    kp_json_fmt(&t->json, "  \"kprof_gpu\": {\"source\": \"%s\"", source ? source : "unknown");
    for (uint32_t i = 0; i < KP_KIND_N && t->gpu; i++)
        if (names[i]) count_write(t, names[i], &t->gpu->count[i]);
    if (t->gpu && t->gpu->unlinked) kp_json_fmt(&t->json, ", \"unlinked\": %lu", t->gpu->unlinked);
    while ((line = kp_reader_line(t->reader, line))) { /* other notes of the source */
        const char *value = strchr(line, '=');
        if (strncmp(line, "gpu_", 4) != 0 || !value || !strncmp(line, "gpu_source=", 11) || !is_last(t, line, value))
            continue;
        kp_json_fmt(&t->json, ", \"%.*s\": \"%s\"", (int)((size_t)(value - line) - 4), line + 4, value + 1);
    }
    kp_json_lit(&t->json, "},\n");
}

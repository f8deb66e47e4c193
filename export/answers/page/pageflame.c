// SPDX-License-Identifier: Apache-2.0
/*
 * pageflame.c - call paths for the page's flame graphs: every moment that a place has, so that any time can be drawn
 *
 * The places and values are those of kprof stacks.
 */
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/pageparts.h"
#include "collector/base/kp_order.h"
#include "export/answers/stacks/walltime.h"

struct flame_moment {
    int64_t from_ns, value;
    uint32_t place;
    uint8_t part;
};
struct flame_moments {
    struct flame_moment *of;
    size_t count, capacity;
};

static void moment_take(void *context, uint32_t place, enum kp_part part, int64_t from_ns, int64_t value)
{
    struct flame_moments *m = context;
    if (value <= 0) return;
    *KP_KINETO_NEXT(m->of, m->count, m->capacity) = (struct flame_moment){from_ns, value, place, (uint8_t)part};
}

KP_ORDER2(moment_order, struct flame_moment, from_ns, place)

/* Joins moments of one place that touch. */
static size_t moments_join(struct flame_moments *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct flame_moment *last = kept ? &m->of[kept - 1] : NULL;
        if (last && last->place == m->of[i].place && last->part == m->of[i].part &&
            last->from_ns + last->value == m->of[i].from_ns)
            last->value += m->of[i].value;
        else m->of[kept++] = m->of[i];
    }
    return kept;
}

/* Each moment: time since the one before, or (at `is_value`) its value; in two halves. */
static void halves_put(struct kp_page *page, const struct flame_moments *m, bool is_value, const char *const names[2])
{
    uint32_t *const low = kp_kineto_room(2 * (m->count + 1), sizeof *low), *const high = low + m->count + 1;
    int64_t last_ns = page->base_ns;
    for (size_t i = 0; i < m->count; i++) {
        const struct flame_moment *const at = &m->of[i];
        const uint64_t after = at->from_ns > last_ns ? (uint64_t)at->from_ns - (uint64_t)last_ns : 0;
        if (at->from_ns > last_ns) last_ns = at->from_ns;
        kp_page_two_put(&low[i], &high[i], is_value ? (uint64_t)at->value : after);
    }
    kp_page_blob_put(&page->blob, names[0], low, m->count);
    kp_page_blob_put(&page->blob, names[1], high, m->count);
    free(low);
}

/* Each moment: its place, time since the one before, value, part. */
static void columns_put(struct kp_page *page, const struct flame_moments *m, const char *const names[6])
{
    uint32_t *const places = kp_kineto_room(m->count + 1, sizeof *places);
    for (size_t i = 0; i < m->count; i++) places[i] = m->of[i].place;
    kp_page_blob_put(&page->blob, names[0], places, m->count);
    free(places);
    halves_put(page, m, false, names + 1);
    halves_put(page, m, true, names + 3);
    uint8_t *const parts = kp_kineto_room(m->count + 1, 1);
    for (size_t i = 0; i < m->count; i++) parts[i] = m->of[i].part;
    kp_page_blob_put_bytes(&page->blob, names[5], parts, m->count);
    free(parts);
}

static void metric_put(struct kp_page *page, struct kp_calltree *paths, enum kp_wall_metric metric,
                       const char *const names[6])
{
    struct flame_moments m = {0};
    struct kp_wall_told told;
    const struct kp_wall_options options = {.metric = metric, .tell = moment_take, .context = &m};
    kp_wall_add(paths, page->tree, &options, &told);
    if (metric == KP_WALL_CPU) page->has_frames = told.has_frames;
    if (m.count) qsort(m.of, m.count, sizeof *m.of, moment_order);
    if (metric == KP_WALL_CPU) m.count = moments_join(&m);
    columns_put(page, &m, names);
    free(m.of);
}

static void places_put(struct kp_page *page, const struct kp_calltree *paths)
{
    size_t unused = 0, count = kp_calltree_count(paths);
    uint32_t *parents = kp_kineto_grow(NULL, &unused, count, sizeof *parents);
    uint32_t *names = kp_kineto_grow(NULL, (unused = 0, &unused), count, sizeof *names);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = i ? kp_calltree_name(paths, i) : "all";
        parents[i] = kp_calltree_parent(paths, i);
        names[i] = kp_page_text(page, kp_strings_put(page->tree->trace->strings, name, strlen(name)));
    }
    kp_page_blob_put(&page->blob, "placeParent", parents, count);
    kp_page_blob_put(&page->blob, "placeName", names, count);
    free(parents);
    free(names);
}

void kp_page_flame_put(struct kp_page *page)
{
    static const char *const names[][6] = {
        [KP_WALL_CPU] = {"cpuPlace", "cpuAfterLow", "cpuAfterHigh", "cpuValueLow", "cpuValueHigh", "cpuPart"},
        [KP_WALL_GPU] = {"gpuPlace", "gpuAfterLow", "gpuAfterHigh", "gpuValueLow", "gpuValueHigh", "gpuPart"},
        [KP_WALL_MEMORY] = {"bytesPlace", "bytesAfterLow", "bytesAfterHigh", "bytesValueLow", "bytesValueHigh",
                            "bytesPart"},
    };
    struct kp_calltree *paths = kp_calltree_open();
    metric_put(page, paths, KP_WALL_CPU, names[KP_WALL_CPU]);
    if (page->tree->has_device) metric_put(page, paths, KP_WALL_GPU, names[KP_WALL_GPU]);
    if (page->tree->trace->memory_count) metric_put(page, paths, KP_WALL_MEMORY, names[KP_WALL_MEMORY]);
    places_put(page, paths);
    kp_calltree_close(paths);
}

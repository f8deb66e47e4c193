// SPDX-License-Identifier: Apache-2.0
/*
 * sources.c - the list of all sources, and which of them are attached
 *
 * Called by: boot.c (the list; run.c calls gpu changed), begin.c (attach; activity, in the thread kprof-clock), fork.c;
 *            of activity also finish.c (boot.c registers it), childends.c, ctl_job.c, hangwatch.c
 * Owns:      the lists below
 * Locks:     none; begin.c lets one thread attach
 * Safe in:   signal handlers no; after fork yes
 */
#include "preload/window/sources.h"

#include <stddef.h>

#include "collector/base/kp_poison.h"

const struct kp_source *const kp_sources[] = {
    &kp_torch_source,  &kp_python_source,      &kp_markers_source,   &kp_applied_source,   &kp_garbage_source,
    &kp_groups_source, &kp_distributed_source, &kp_nvtx_source,      &kp_cupti_source,     &kp_cuda_hooks_source,
    &kp_driver_source, &kp_heap_source,        &kp_calltrace_source, &kp_stepcalls_source, NULL};
enum { SOURCES_MAX = sizeof kp_sources / sizeof *kp_sources };

static bool attached[SOURCES_MAX];
static const struct kp_source *child_sources[SOURCES_MAX]; /* in a child: those that record there */
static bool is_out[SOURCES_MAX];                           /* in a child: those that do not record there */

bool kp_sources_attach(bool *starts_active)
{
    bool is_news = false;
    *starts_active = false;
    for (size_t i = 0; kp_sources[i]; i++) {
        if (is_out[i]) continue;
        if (attached[i] && kp_sources[i]->modules_changed) kp_sources[i]->modules_changed();
        if (attached[i] || !kp_sources[i]->attach()) continue;
        attached[i] = is_news = true;
        *starts_active |= kp_sources[i]->starts_active;
    }
    return is_news;
}

bool kp_sources_attach_early(const void *inside, bool *starts_active)
{
    bool is_news = false;
    *starts_active = false;
    for (size_t i = 0; kp_sources[i]; i++) {
        if (is_out[i] || attached[i] || !kp_sources[i]->attach_early || !kp_sources[i]->attach_early(inside)) continue;
        attached[i] = is_news = true;
        *starts_active |= kp_sources[i]->starts_active;
    }
    return is_news;
}

/* One that records from the start is active once it is attached. */
static bool is_active(const struct kp_source *s) { return s->had_activity ? s->had_activity() : s->starts_active; }

static bool had_activity(bool of_any)
{
    for (size_t i = 0; kp_sources[i]; i++) {
        const struct kp_source *const s = kp_sources[i];
        if (attached[i] && (of_any || !s->starts_active) && is_active(s)) return true;
    }
    return false;
}

bool kp_sources_had_activity(void) { return had_activity(true); }

bool kp_sources_had_work(void) { return had_activity(false); }

/*
 * torch's answer comes first: CUDA only knows that it was used. The heap and calls by name record imports as well. So
 * where torch is loaded they are no work, else steps by time would begin while it is imported.
 */
bool kp_sources_had_activity_since(void)
{
    bool has_torch = false;
    for (size_t i = 0; kp_sources[i]; i++) {
        if (!attached[i]) continue;
        const bool is_asked = kp_sources[i]->had_activity_since != NULL;
        has_torch |= is_asked;
        if ((has_torch && kp_sources[i]->starts_active) || !is_active(kp_sources[i])) continue;
        return is_asked ? kp_sources[i]->had_activity_since() : true;
    }
    return false;
}

void kp_sources_gpu_changed(void)
{
    for (size_t i = 0; kp_sources[i]; i++)
        if (kp_sources[i]->gpu_changed) kp_sources[i]->gpu_changed();
}

uint32_t kp_sources_before_fork(uint32_t *lost)
{
    uint32_t held = 0;
    *lost = 0;
    for (uint32_t i = 0; kp_sources[i]; i++) {
        if (!attached[i] || !kp_sources[i]->before_fork) continue;
        if (kp_sources[i]->before_fork()) held |= 1u << i;
        else *lost |= 1u << i;
    }
    return held;
}

void kp_sources_after_fork(uint32_t held, bool is_child)
{
    for (uint32_t i = 0; kp_sources[i]; i++)
        if (held >> i & 1) kp_sources[i]->after_fork(is_child);
}

const struct kp_source *const *kp_sources_of_child(uint32_t lost)
{
    uint32_t n = 0;
    for (size_t i = 0; kp_sources[i]; i++) {
        is_out[i] = !kp_sources[i]->forget || lost >> i & 1;
        if (!is_out[i]) child_sources[n++] = kp_sources[i];
        else attached[i] = false;
    }
    child_sources[n] = NULL;
    return child_sources;
}

// SPDX-License-Identifier: Apache-2.0
/* viewblocks.c - the tab of memory: each device's peak in the chosen time, by category and by op */
#include <stdio.h>

#include "export/answers/memory/memblocks.h"
#include "export/answers/view/viewparts.h"

enum { PLACE_BYTES = 300 };

static void group_add(struct kp_view_tab *tab, const struct kp_memview *view, const struct kp_mem_group *g,
                      int32_t parent)
{
    char name[1024], place[PLACE_BYTES];
    const char *op = kp_kineto_text(view->tree->trace, g->op);
    kp_mem_place_text(view, g, place, sizeof place);
    snprintf(name, sizeof name, "%.600s%s%s",
             *op           ? op
             : g->is_older ? "(before recording)"
                           : "(outside any op)",
             *place ? "  " : "", place);
    const int32_t row = kp_view_add(tab, parent, name);
    tab->rows[row].values[0] = (double)g->bytes;
    tab->rows[row].values[2] = (double)g->count;
}

static void device_add(struct kp_view_tab *tab, const struct kp_memview *view, size_t device, int64_t from_ns,
                       int64_t to_ns)
{
    struct kp_mem_curve curve;
    struct kp_mem_groups groups;
    char name[128], at[40];
    kp_mem_curve_build(&curve, view, device, from_ns, to_ns);
    kp_mem_groups_live(&groups, view, device, curve.peak_ns);
    kp_mem_groups_alike(&groups, view);
    kp_view_cell(at, sizeof at, KP_VIEW_TIME, (double)(curve.peak_ns - view->zero_ns));
    snprintf(name, sizeof name, "%s: the peak, at %s", curve.device->name, *at ? at : "0 ns");
    const int32_t root = kp_view_add(tab, KP_VIEW_NONE, name);
    tab->rows[root].values[0] = (double)curve.peak.total;
    tab->rows[root].is_open = tab->rows[root].is_bold = true;
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) {
        if (!curve.peak.of[k]) continue;
        const int32_t row = kp_view_add(tab, root, kp_mem_category_name(k));
        tab->rows[row].values[0] = (double)curve.peak.of[k];
        for (size_t i = 0; i < groups.count; i++) {
            if (groups.rows[i].category != k) continue;
            group_add(tab, view, &groups.rows[i], row);
            tab->rows[row].values[2] += (double)groups.rows[i].count;
        }
        tab->rows[root].values[2] += tab->rows[row].values[2];
    }
    for (size_t i = (size_t)root; i < tab->count && curve.peak.total > 0; i++)
        tab->rows[i].values[1] = tab->rows[i].values[0] / (double)curve.peak.total;
    kp_mem_groups_fini(&groups);
    kp_mem_curve_fini(&curve);
}

void kp_view_blocks_make(struct kp_view *v)
{
    struct kp_view_tab *tab = &v->tabs[KP_VIEW_MEMORY];
    struct kp_memview view;
    *tab =
        (struct kp_view_tab){.title = "Memory",
                             .what = "what was live at the peak",
                             .columns = {{"bytes", KP_VIEW_BYTES}, {"share", KP_VIEW_SHARE}, {"blocks", KP_VIEW_COUNT}},
                             .column_count = 3};
    snprintf(tab->empty, sizeof tab->empty,
             "No memory of torch in this trace; kprof run --profile-memory (KPROF_PROFILE_MEMORY=1) records it.");
    if (kp_memview_build(&view, v->tree) == 0) {
        const struct kp_step *step = v->step >= 0 && v->chosen.step_count ? &v->chosen.steps[0] : NULL;
        for (size_t d = 0; d < view.device_count; d++)
            device_add(tab, &view, d, step ? step->start_ns : view.begin_ns, step ? step->end_ns : view.end_ns);
    } else if (view.no_addresses) {
        snprintf(tab->empty, sizeof tab->empty, "No blocks in this trace: " KP_MEM_NO_ADDRESSES ".");
    }
    kp_memview_fini(&view);
}

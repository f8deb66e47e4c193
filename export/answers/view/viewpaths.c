// SPDX-License-Identifier: Apache-2.0
/* viewpaths.c - the tab of call paths: what kprof stacks prints, as a tree that unfolds */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/stacks/walltime.h"
#include "export/answers/view/viewparts.h"

struct paths_sum {
    const struct kp_view *view;
    const struct kp_calltree *paths;
    double *own[KP_PARTS]; /* by place */
    size_t capacity[KP_PARTS];
};

static void moment_take(void *context, uint32_t place, enum kp_part part, int64_t from_ns, int64_t value)
{
    struct paths_sum *s = context;
    s->own[part] = kp_kineto_grow_zeros(s->own[part], &s->capacity[part], (size_t)place + 1, sizeof **s->own);
    s->own[part][place] += (double)kp_spans_between(&s->view->chosen.spans, from_ns, from_ns + value);
}

/* Adds the places of one part that have any time; a place comes after its parent. */
static void part_add(struct kp_view_tab *tab, const struct paths_sum *s, enum kp_part part)
{
    const size_t count =
        s->capacity[part] < kp_calltree_count(s->paths) ? s->capacity[part] : kp_calltree_count(s->paths);
    double *total = kp_kineto_room(count + 1, sizeof *total);
    int32_t *rows = kp_kineto_room(count + 1, sizeof *rows);
    if (count) memcpy(total, s->own[part], count * sizeof *total);
    for (size_t i = count; i-- > 1;) total[kp_calltree_parent(s->paths, (uint32_t)i)] += total[i];
    for (uint32_t i = 0; i < count && total[0] > 0; i++) {
        if (!(total[i] > 0)) continue;
        rows[i] = i ? kp_view_add(tab, rows[kp_calltree_parent(s->paths, i)], kp_calltree_name(s->paths, i))
                    : kp_view_add(tab, KP_VIEW_NONE, kp_part_name(part));
        tab->rows[rows[i]].values[0] = total[i];
        tab->rows[rows[i]].values[2] = s->own[part][i];
        tab->rows[rows[i]].is_bold = !i;
    }
    free(total);
    free(rows);
}

static void shares_make(struct kp_view_tab *tab)
{
    double whole = 0;
    for (size_t i = 0; i < tab->count; i++)
        if (tab->rows[i].parent == KP_VIEW_NONE) whole += tab->rows[i].values[0];
    for (size_t i = 0; i < tab->count && whole > 0; i++) tab->rows[i].values[1] = tab->rows[i].values[0] / whole;
}

void kp_view_paths_make(struct kp_view *v)
{
    struct kp_view_tab *tab = &v->tabs[KP_VIEW_PATHS];
    struct kp_wall_told told;
    struct kp_calltree *paths = kp_calltree_open();
    struct paths_sum s = {.view = v, .paths = paths};
    const struct kp_wall_options options = {.metric = KP_WALL_CPU, .tell = moment_take, .context = &s};
    *tab = (struct kp_view_tab){.title = "Tree",
                                .what = "wall time of the main thread, by calls",
                                .columns = {{"total", KP_VIEW_TIME}, {"share", KP_VIEW_SHARE}, {"self", KP_VIEW_TIME}},
                                .column_count = 3};
    kp_wall_add(paths, v->tree, &options, &told);
    for (unsigned part = 0; part < KP_PARTS; part++) {
        if (s.own[part]) part_add(tab, &s, (enum kp_part)part);
        free(s.own[part]);
    }
    shares_make(tab);
    snprintf(tab->empty, sizeof tab->empty, "Nothing ran in the chosen time.");
    kp_calltree_close(paths);
}

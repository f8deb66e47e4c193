// SPDX-License-Identifier: Apache-2.0
/* viewrows.c - the rows of a tab: which of them are shown, in which order, and where the user is */
#include <stdlib.h>
#include <string.h>

#include "export/show/plain.h"
#include "export/answers/view/viewparts.h"

enum { NAME_MAX_BYTES = 2048 };

int32_t kp_view_add(struct kp_view_tab *tab, int32_t parent, const char *name)
{
    char plain[NAME_MAX_BYTES];
    const int32_t at = (int32_t)tab->count;
    struct kp_view_row *row = KP_KINETO_NEXT(tab->rows, tab->count, tab->capacity);
    kp_plain_text(plain, sizeof plain, name, strlen(name));
    *row = (struct kp_view_row){
        .step = KP_VIEW_NONE, .parent = parent, .first = KP_VIEW_NONE, .last = KP_VIEW_NONE, .next = KP_VIEW_NONE};
    row->name = kp_kineto_room(strlen(plain) + 1, 1);
    strcpy(row->name, plain);
    int32_t *first = &tab->first, *last = &tab->last;
    if (parent != KP_VIEW_NONE) {
        first = &tab->rows[parent].first;
        last = &tab->rows[parent].last;
        row->depth = (uint16_t)(tab->rows[parent].depth + 1);
    }
    if (tab->count == 1) tab->first = tab->last = KP_VIEW_NONE;
    if (*last == KP_VIEW_NONE) *first = at;
    else tab->rows[*last].next = at;
    *last = at;
    return at;
}

/* ---- order ---- */

static int row_order(const void *a, const void *b, void *context)
{
    const struct kp_view_tab *tab = context;
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (tab->sort >= 0) {
        const double i = tab->rows[x].values[tab->sort], j = tab->rows[y].values[tab->sort];
        if (i < j || i > j) return i > j ? -1 : 1;
    }
    return (x > y) - (x < y);
}

/* Adds the rows from `first` on, and those below the open ones. There is no recursion: paths may be hundreds deep. */
static void rows_show(struct kp_view_tab *tab)
{
    int32_t *open = NULL;
    size_t count = 0, capacity = 0;
    for (int32_t first = tab->first;;) {
        const size_t from = count;
        for (int32_t i = first; i != KP_VIEW_NONE; i = tab->rows[i].next) {
            *KP_KINETO_NEXT(open, count, capacity) = i;
        }
        if (count > from) qsort_r(open + from, count - from, sizeof *open, row_order, tab);
        for (size_t a = from, b = count; a + 1 < b; a++) { /* the first one lies on top */
            const int32_t other = open[--b];
            open[b] = open[a];
            open[a] = other;
        }
        if (!count) break;
        const int32_t row = open[--count];
        *KP_KINETO_NEXT(tab->shown, tab->shown_count, tab->shown_capacity) = row;
        first = tab->rows[row].is_open ? tab->rows[row].first : KP_VIEW_NONE;
    }
    free(open);
}

static bool is_around(const struct kp_view_tab *tab, int32_t around, int32_t row)
{
    while (row != KP_VIEW_NONE && row != around) row = tab->rows[row].parent;
    return row == around;
}

void kp_view_settle(struct kp_view_tab *tab)
{
    const int32_t had = tab->at < tab->shown_count ? tab->shown[tab->at] : KP_VIEW_NONE;
    tab->shown_count = 0;
    if (tab->count) rows_show(tab);
    for (size_t i = 0; i < tab->shown_count && had != KP_VIEW_NONE; i++)
        if (is_around(tab, tab->shown[i], had)) tab->at = i; /* the last of them is the row itself */
    if (tab->at >= tab->shown_count) tab->at = tab->shown_count ? tab->shown_count - 1 : 0;
}

void kp_view_sort(struct kp_view_tab *tab, int column)
{
    tab->sort = column;
    kp_view_settle(tab);
}

/* ---- where the user is ---- */

void kp_view_go(struct kp_view_tab *tab, long by, size_t height)
{
    const long most = (long)tab->shown_count - 1, to = (long)tab->at + by;
    tab->at = (size_t)(most < 0 || to < 0 ? 0 : to > most ? most : to);
    if (tab->at < tab->top) tab->top = tab->at;
    if (height && tab->at >= tab->top + height) tab->top = tab->at + 1 - height;
    if (height && tab->shown_count < tab->top + height) /* no empty lines below while there are rows above */
        tab->top = tab->shown_count > height ? tab->shown_count - height : 0;
}

void kp_view_open(struct kp_view_tab *tab, bool open)
{
    if (!tab->shown_count) return;
    struct kp_view_row *row = &tab->rows[tab->shown[tab->at]];
    if (!open && (!row->is_open || row->first == KP_VIEW_NONE) && row->parent != KP_VIEW_NONE) {
        for (size_t i = 0; i < tab->at; i++)
            if (tab->shown[i] == row->parent) tab->at = i;
        return;
    }
    row->is_open = open;
    kp_view_settle(tab);
}

void kp_view_open_all(struct kp_view_tab *tab, bool open)
{
    for (size_t i = 0; i < tab->count; i++) tab->rows[i].is_open = open && tab->rows[i].first != KP_VIEW_NONE;
    kp_view_settle(tab);
}

/* ---- search ---- */

/* Every row in the order of the screen, as if all were open: the row that comes by `by` after `row`. */
static int32_t *rows_all(struct kp_view_tab *tab)
{
    struct kp_view_tab whole = *tab;
    whole.rows = kp_kineto_room(tab->count, sizeof *whole.rows);
    memcpy(whole.rows, tab->rows, tab->count * sizeof *whole.rows);
    whole.shown = NULL;
    whole.shown_count = whole.shown_capacity = 0;
    for (size_t i = 0; i < whole.count; i++) whole.rows[i].is_open = true;
    rows_show(&whole);
    free(whole.rows);
    return whole.shown;
}

bool kp_view_find(struct kp_view_tab *tab, const char *text, int by, bool from_here)
{
    if (!tab->count || !*text) return false;
    int32_t *all = rows_all(tab), found = KP_VIEW_NONE;
    size_t here = 0;
    for (size_t i = 0; i < tab->count; i++)
        if (all[i] == tab->shown[tab->at]) here = i;
    for (size_t k = from_here ? 0 : 1; k <= tab->count && found == KP_VIEW_NONE; k++) {
        const size_t at = by > 0 ? (here + k) % tab->count : (here + tab->count - k % tab->count) % tab->count;
        if (strcasestr(tab->rows[all[at]].name, text)) found = all[at];
    }
    free(all);
    if (found == KP_VIEW_NONE) return false;
    for (int32_t up = tab->rows[found].parent; up != KP_VIEW_NONE; up = tab->rows[up].parent)
        tab->rows[up].is_open = true;
    kp_view_settle(tab);
    for (size_t i = 0; i < tab->shown_count; i++)
        if (tab->shown[i] == found) tab->at = i;
    return true;
}

void kp_view_tab_fini(struct kp_view_tab *tab)
{
    for (size_t i = 0; i < tab->count; i++) free(tab->rows[i].name);
    free(tab->rows);
    free(tab->shown);
    *tab = (struct kp_view_tab){0};
}

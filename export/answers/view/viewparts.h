// SPDX-License-Identifier: Apache-2.0
/* viewparts.h - what the files of this room share: tabs, their rows, the text of a cell */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/read/tree/chosen.h"

/* ---- viewrows.c: rows as a tree, of which the open part is shown ---- */

enum { KP_VIEW_COLUMNS_MAX = 6, KP_VIEW_NONE = -1, KP_VIEW_ALL = -2 };
enum kp_view_kind { KP_VIEW_TIME, KP_VIEW_BYTES, KP_VIEW_COUNT, KP_VIEW_SHARE };
struct kp_view_column {
    const char *title;
    enum kp_view_kind kind;
};
struct kp_view_row {
    char *name; /* as a terminal may show it */
    double values[KP_VIEW_COLUMNS_MAX];
    long step; /* of a step's row: its number; KP_VIEW_ALL: start-up and end, too; else KP_VIEW_NONE */
    int32_t parent, first, last, next;
    uint16_t depth;
    bool is_open, is_bold;
};
struct kp_view_tab {
    const char *title, *what; /* what: the head of the names */
    struct kp_view_column columns[KP_VIEW_COLUMNS_MAX];
    int column_count, sort; /* sort: a column, or KP_VIEW_NONE: as they were added */
    struct kp_view_row *rows;
    size_t count, capacity;
    int32_t first, last;
    int32_t *shown; /* indices of rows from top to bottom */
    size_t shown_count, shown_capacity;
    size_t at, top; /* of `shown`: the chosen row, the first on the screen */
    bool is_prose;  /* rows without numbers are texts: they have the whole width */
    char empty[200];
};
/* Adds a row below `parent` (KP_VIEW_NONE: at the top); `name` may be any text. Returns its index. */
int32_t kp_view_add(struct kp_view_tab *tab, int32_t parent, const char *name);
void kp_view_settle(struct kp_view_tab *tab); /* finds `shown` anew, and keeps the chosen row, or the one around it */
void kp_view_sort(struct kp_view_tab *tab, int column);
void kp_view_go(struct kp_view_tab *tab, long by, size_t height); /* moves, and keeps the chosen row on the screen */
void kp_view_open(struct kp_view_tab *tab, bool open); /* the chosen row; one that is closed gives its parent */
void kp_view_open_all(struct kp_view_tab *tab, bool open);
/* Goes to the next row whose name has the text, without regard to case, folded or not; `by` is 1 or -1. False: none. */
bool kp_view_find(struct kp_view_tab *tab, const char *text, int by, bool from_here);
void kp_view_tab_fini(struct kp_view_tab *tab);

/* ---- viewtext.c ---- */

/* Writes a cell's text: "12.34 ms", "1.5 MiB", "1,234", "12.3 %". */
const char *kp_view_cell(char *out, size_t bytes, enum kp_view_kind kind, double value);
/* Copies as much of `text` as has `columns` on a terminal, with ".." where it is cut. Returns the columns used. Letters
 * beyond ASCII become '?' unless `utf8`. */
size_t kp_view_cut(char *out, size_t bytes, const char *text, size_t columns, bool utf8);

/* ---- what the tabs have ---- */

enum { KP_VIEW_FINDINGS, KP_VIEW_STEPS, KP_VIEW_OPS, KP_VIEW_PATHS, KP_VIEW_KERNELS, KP_VIEW_MEMORY, KP_VIEW_TABS };
struct kp_view {
    struct kp_tree *tree;
    const char *label;
    struct kp_chosen whole, chosen;
    long step; /* what all but findings and steps are about: a step, or KP_VIEW_ALL. KP_VIEW_NONE: the steps */
    struct kp_view_tab tabs[KP_VIEW_TABS];
    char head[400];
};
struct kp_advice;
int kp_view_make(struct kp_view *view, struct kp_tree *tree, const struct kp_advice *advice, const char *label,
                 char *why, size_t why_bytes);
/* Makes the tabs again of one step, with KP_VIEW_NONE of the steps, with KP_VIEW_ALL of everything. */
void kp_view_choose(struct kp_view *view, long step);
void kp_view_fini(struct kp_view *view);
void kp_view_paths_make(struct kp_view *view);  /* viewpaths.c */
void kp_view_blocks_make(struct kp_view *view); /* viewblocks.c */

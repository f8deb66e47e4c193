// SPDX-License-Identifier: Apache-2.0
/* viewjson.c - prints what the tabs of `kprof view` show, as one JSON object */
#include <ctype.h>

#include "export/answers/view/view.h"
#include "export/answers/view/viewparts.h"
#include "export/show/fields.h"

/* "a step" of times becomes "a_step_ms". */
static const char *key_of(const struct kp_view_column *column, char *room, size_t bytes)
{
    static const char *const ends[] = {[KP_VIEW_TIME] = "_ms", [KP_VIEW_BYTES] = "_bytes"};
    const bool has_end = column->kind == KP_VIEW_TIME || column->kind == KP_VIEW_BYTES;
    size_t used = 0;
    for (const char *c = column->title; *c && used + 8 < bytes; c++) {
        if (isalnum((unsigned char)*c)) room[used++] = (char)tolower((unsigned char)*c);
        else if (c[1]) room[used++] = '_';
    }
    snprintf(room + used, bytes - used, "%s", has_end ? ends[column->kind] : "");
    return room;
}

struct viewjson_row {
    const struct kp_view_tab *tab;
    const struct kp_view_row *row;
};

static void values_put(struct kp_jsonout *j, const struct viewjson_row *r)
{
    char key[80];
    for (int c = 0; c < r->tab->column_count && !(r->tab->is_prose && r->row->depth); c++) {
        const enum kp_view_kind kind = r->tab->columns[c].kind;
        kp_jsonout_unit(j, key_of(&r->tab->columns[c], key, sizeof key), r->row->values[c],
                        kind == KP_VIEW_TIME    ? KP_UNIT_MS
                        : kind == KP_VIEW_SHARE ? KP_UNIT_SHARE
                                                : KP_UNIT_COUNT);
    }
}

#define ROW(F, IF)                                   \
    F(TEXT, name, r->row->name)                      \
    F(WHOLE, level, r->row->depth)                   \
    IF(r->row->step >= 0, WHOLE, step, r->row->step) \
    F(MORE, , (KP_TYPE("number"), values_put, r))
KP_FIELDS(row, struct viewjson_row, ROW)

#define TAB(F, IF)                                                                         \
    F(TEXT, tab, r->title)                                                                 \
    F(LIST, rows, (row, r->shown_count, &(struct viewjson_row){r, &r->rows[r->shown[i]]})) \
    IF(!r->count, TEXT, empty, r->empty)
KP_FIELDS(tab, struct kp_view_tab, TAB)

struct viewjson {
    const struct kp_view *view;
    const char *label;
};
#define VIEW(F, IF)              \
    F(TEXT, trace, r->label)     \
    F(TEXT, head, r->view->head) \
    F(LIST, tabs, (tab, KP_VIEW_TABS, &r->view->tabs[i]))
KP_FIELDS(view, struct viewjson, VIEW)

const struct kp_fields *const kp_view_schema = &view_fields;

int kp_view_json(FILE *out, struct kp_tree *tree, const struct kp_advice *advice, const char *label, char *why,
                 size_t why_bytes)
{
    struct kp_view view;
    const int rc = kp_view_make(&view, tree, advice, label, why, why_bytes);
    if (rc == 0) {
        for (int i = 0; i < KP_VIEW_TABS; i++) kp_view_open_all(&view.tabs[i], true);
        kp_fields_line(out, &view_fields, &(struct viewjson){&view, label});
    }
    kp_view_fini(&view);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
/* viewjson.c - prints what the tabs of `kprof view` show, as one JSON object */
#include <ctype.h>
#include <string.h>

#include "export/show/plain.h"
#include "export/answers/view/view.h"
#include "export/answers/view/viewparts.h"

/* "a step" of times becomes "a_step_ms". */
static void key_put(FILE *out, const struct kp_view_column *column)
{
    static const char *const ends[] = {[KP_VIEW_TIME] = "_ms", [KP_VIEW_BYTES] = "_bytes"};
    fputs(",\"", out);
    for (const char *c = column->title; *c; c++) {
        if (isalnum((unsigned char)*c)) fputc(tolower((unsigned char)*c), out);
        else if (c[1]) fputc('_', out);
    }
    fprintf(out, "%s\":", column->kind == KP_VIEW_TIME || column->kind == KP_VIEW_BYTES ? ends[column->kind] : "");
}

static void row_put(FILE *out, const struct kp_view_tab *tab, const struct kp_view_row *row)
{
    fputs("{\"name\":", out);
    kp_plain_json(out, row->name);
    fprintf(out, ",\"level\":%u", (unsigned)row->depth);
    if (row->step >= 0) fprintf(out, ",\"step\":%ld", row->step);
    for (int c = 0; c < tab->column_count && !(tab->is_prose && row->depth); c++) {
        key_put(out, &tab->columns[c]);
        switch (tab->columns[c].kind) {
        case KP_VIEW_TIME: fprintf(out, "%.6f", row->values[c] / 1e6); break;
        case KP_VIEW_SHARE: fprintf(out, "%.6f", row->values[c]); break;
        default: fprintf(out, "%.0f", row->values[c]);
        }
    }
    fputs("}", out);
}

static void tab_put(FILE *out, struct kp_view_tab *tab)
{
    kp_view_open_all(tab, true);
    fputs("{\"tab\":", out);
    kp_plain_json(out, tab->title);
    fputs(",\"rows\":[", out);
    for (size_t i = 0; i < tab->shown_count; i++) {
        if (i) fputs(",", out);
        row_put(out, tab, &tab->rows[tab->shown[i]]);
    }
    fputs("]", out);
    if (!tab->count) {
        fputs(",\"empty\":", out);
        kp_plain_json(out, tab->empty);
    }
    fputs("}", out);
}

int kp_view_json(FILE *out, struct kp_tree *tree, const struct kp_advice *advice, const char *label, char *why,
                 size_t why_bytes)
{
    struct kp_view view;
    const int rc = kp_view_make(&view, tree, advice, label, why, why_bytes);
    if (rc == 0) {
        fputs("{\"trace\":", out);
        kp_plain_json(out, label);
        fputs(",\"head\":", out);
        kp_plain_json(out, view.head);
        fputs(",\"tabs\":[", out);
        for (int i = 0; i < KP_VIEW_TABS; i++) {
            if (i) fputs(",", out);
            tab_put(out, &view.tabs[i]);
        }
        fputs("]}\n", out);
    }
    kp_view_fini(&view);
    return rc;
}

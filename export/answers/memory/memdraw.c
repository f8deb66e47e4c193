// SPDX-License-Identifier: Apache-2.0
/*
 * memdraw.c - writes what curve.js draws of a device: sums of 800 stretches, each by its highest moment
 *
 * So a peak of a microsecond shows, and the file does not grow with the window.
 */
#include "export/answers/memory/memblocks.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SLICES = 800 };

static void sums_put(FILE *out, const char *begin, const struct kp_mem_sum *sum)
{
    fputs(begin, out);
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) fprintf(out, "%s%" PRId64, k ? "," : "", sum->of[k]);
    fputs("]", out);
}

static void steps_put(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show)
{
    const char *between = "";
    fputs(",\"steps\":[", out);
    for (size_t i = 0; i < view->step_count; i++) {
        const struct kp_mem_step *step = &view->steps[i];
        if (step->from_ns < show->from_ns || step->from_ns > show->to_ns) continue;
        fprintf(out, "%s[%ld,%" PRId64 "]", between, step->number, step->from_ns - view->zero_ns);
        between = ",";
    }
    fputs("]", out);
}

static void slices_put(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show,
                       const struct kp_mem_curve *curve)
{
    int64_t at[SLICES];
    char begin[48];
    struct kp_mem_sum *slices = kp_mem_curve_slices(curve, show->from_ns, show->to_ns, SLICES, at);
    fputs(",\"slices\":[", out);
    for (size_t i = 0; i < SLICES; i++) {
        snprintf(begin, sizeof begin, "%s[%" PRId64 ",", i ? ",\n" : "\n", at[i] - view->zero_ns);
        sums_put(out, begin, &slices[i]);
    }
    fputs("]", out);
    free(slices);
}

void kp_memdraw_data(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show,
                     const struct kp_mem_curve *curve)
{
    const int64_t span_ns = show->to_ns - show->from_ns;
    fprintf(out, "{\"from\":%" PRId64 ",\"span\":%" PRId64 ",\"names\":[", show->from_ns - view->zero_ns,
            span_ns > 0 ? span_ns : 1);
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) fprintf(out, "%s\"%s\"", k ? "," : "", kp_mem_category_name(k));
    sums_put(out, "],\"most\":[", &curve->most);
    fprintf(out, ",\"peak\":{\"at\":%" PRId64 ",\"total\":%" PRId64, curve->peak_ns - view->zero_ns, curve->peak.total);
    sums_put(out, ",\"of\":[", &curve->peak);
    fputs("}", out);
    steps_put(out, view, show);
    slices_put(out, view, show, curve);
    fputs("}", out);
}

void kp_memdraw_script(FILE *out)
{
    fwrite(kp_memcurve_script, 1, (size_t)(kp_memcurve_file_end - kp_memcurve_script), out);
}

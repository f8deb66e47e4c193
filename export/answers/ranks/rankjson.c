// SPDX-License-Identifier: Apache-2.0
/* rankjson.c - what all traces of a job tell together, as one line of JSON */
#include "export/answers/ranks/rankjson.h"

#include <inttypes.h>

#include "export/show/plain.h"

static void text_put(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\":", key);
    kp_plain_json(out, text);
}

static void compared_put(FILE *out, const struct kp_rankwaits *w)
{
    const struct kp_rankwait *const late = kp_rankwaits_most(w);
    char cause[KP_RANKCAUSE_BYTES];
    fprintf(out, ",\"matched\":%zu,\"last\":", w->matched);
    if (late) fprintf(out, "%ld,", late->rank);
    else fputs("null,", out);
    text_put(out, "cause", late && kp_rankwaits_cause(cause, sizeof cause, w, late) ? cause : NULL);
    fputs(",\"rows\":[", out);
    for (size_t i = 0; late && i < w->rank_count; i++)
        fprintf(out, "%s{\"rank\":%ld,\"last\":%zu,\"waited_ms\":%.6f}", i ? "," : "", w->ranks[i].rank,
                w->ranks[i].last, (double)w->ranks[i].waited_ns / 1e6);
    fputs("]", out);
}

void kp_rankjson_print(FILE *out, const struct kp_rankwaits *w, const char *stands)
{
    char missing[KP_RANKTEXT_BYTES];
    const bool is_several = w->rank_count > 1 && !w->has_jobs, lacks = is_several && kp_rankwaits_lack(w);
    if (!is_several && !stands) return;
    fputs("{\"ranks\":{", out);
    text_put(out, "stuck", stands);
    fputs(",", out);
    text_put(out, "missing", lacks ? kp_rankwaits_missing(missing, sizeof missing, w) : NULL);
    if (is_several && !lacks && !stands) compared_put(out, w);
    fputs("}}\n", out);
}

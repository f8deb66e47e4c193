// SPDX-License-Identifier: Apache-2.0
/* pagerank.c - what the page compares between ranks: the parts of a step, and who waited in collectives */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/pageparts.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/plain.h"
#include "export/answers/ranks/rankwaits.h"

static void parts_put(const struct kp_page *page, FILE *out)
{
    const size_t count = page->chosen.step_count;
    struct kp_step_split *splits = kp_kineto_room(count + 1, sizeof *splits);
    double means[KP_SPLIT_PARTS] = {0}, step = 0;
    kp_step_split_all(splits, page->tree, &page->chosen);
    for (size_t i = 0; i < count; i++) {
        step += (double)splits[i].step_ns / (double)count;
        for (int p = 0; p < KP_SPLIT_PARTS; p++) means[p] += (double)splits[i].part_ns[p] / (double)count;
    }
    fprintf(out, ",\"gpu\":%s,\"steps\":%zu,\"step\":%.0f,\"parts\":[", page->has_gpu ? "true" : "false", count, step);
    for (int p = 0; p < KP_SPLIT_PARTS; p++) fprintf(out, "%s%.0f", p ? "," : "", means[p]);
    fputs("]", out);
    free(splits);
}

/* Writes a block of the page with this text as its head. Frees the text. */
static int block_put(char *text, size_t bytes, const char *name, FILE *out)
{
    static const struct kp_page_blob none;
    fprintf(out, "<script type=\"text/plain\" class=\"%s\">", name);
    const int rc = kp_page_blob_write(&none, text, bytes, out);
    fputs("</script>\n", out);
    free(text);
    return rc;
}

int kp_page_rank_put(const struct kp_page *page, const char *label, const struct kp_rankwaits *ranks, FILE *out)
{
    const struct kp_kineto *trace = page->tree->trace;
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return -ENOMEM;
    fputs("{\"label\":", f);
    kp_plain_json(f, label);
    kp_page_member_put(f, "rank", kp_kineto_fact(trace, "distributedInfo.rank"));
    kp_page_member_put(f, "host", kp_kineto_fact(trace, "host_name"));
    parts_put(page, f);
    if (kp_rankwaits_rank(trace) < 0) fputs(",\"trace\":null}", f);
    else fprintf(f, ",\"trace\":%zu}", ranks->trace_count - 1);
    if (fclose(f) != 0) {
        free(text);
        return -ENOMEM;
    }
    return block_put(text, bytes, "rank", out);
}

/* What each trace waited for others, and what the ranks have in common: as `kprof report` says. */
static void waits_put(const struct kp_rankwaits *ranks, FILE *out)
{
    const struct kp_rankwait *const most = kp_rankwaits_most(ranks);
    char missing[KP_RANKTEXT_BYTES];
    fputs(",\"waits\":[", out);
    for (size_t i = 0; i < ranks->trace_count; i++)
        fprintf(out, "%s[%" PRId64 ",%zu]", i ? "," : "", ranks->traces[i].waited_ns, ranks->traces[i].last);
    fprintf(out, "],\"matched\":%zu,\"left\":%zu,\"untold\":%zu,\"bandwidth\":%.6f", ranks->matched, ranks->partial,
            ranks->untold, ranks->transfer_ns ? (double)ranks->bus_bytes / (double)ranks->transfer_ns : 0);
    kp_page_member_put(out, "missing",
                       kp_rankwaits_lack(ranks) ? kp_rankwaits_missing(missing, sizeof missing, ranks) : NULL);
    if (!most) fputs(",\"most\":null", out);
    else fprintf(out, ",\"most\":[\"%ld\",%zu,%zu]", most->rank, most->last, most->matched);
}

static void words_put(FILE *out, const char *before, long rank, const struct kp_rankwords *words)
{
    fprintf(out, "%s{\"rank\":\"%ld\"", before, rank);
    kp_page_member_put(out, "what", words->what);
    kp_page_member_put(out, "change", words->change);
    fprintf(out, ",\"gpu\":%s,\"note\":%s,\"part\":%.6f", words->is_for_gpu ? "true" : "false",
            words->is_note ? "true" : "false", words->part);
}

/* What they say of the findings of steps that are long by communication. */
static void longer_put(const struct kp_rankwaits *ranks, size_t count, FILE *out)
{
    struct kp_rankwords words;
    for (size_t i = 0; i < ranks->asked_count; i++) {
        const struct kp_rankasked *const a = &ranks->asked[i];
        if (!kp_finding_of_longer(&words, ranks, a->rank, a->longer_by, a->is_each_nth)) continue;
        words_put(out, count++ ? "," : "", a->rank, &words);
        kp_page_member_put(out, "longer_by", a->longer_by);
        fputs("}", out);
    }
}

/* What the traces of all ranks say of each: who is late, and why; whether the finding of its collectives is that. No
 * rank of a job that stands is late. */
int kp_page_verdict_put(const struct kp_rankwaits *ranks, const struct kp_stuck_told *stands, FILE *out)
{
    const struct kp_rankwait *const late = stands ? NULL : kp_rankwaits_late(ranks);
    struct kp_rankwords words;
    struct kp_finding found;
    char *text = NULL, cause[KP_RANKCAUSE_BYTES];
    size_t bytes = 0, count = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return -ENOMEM;
    fprintf(f, "{\"id\":\"%s\"", KP_FINDING_COMM);
    kp_page_member_put(f, "stuck", stands ? stands->what : NULL);
    kp_page_member_put(f, "stuck_next", stands ? stands->next : NULL);
    kp_page_member_put(f, "cause", late && kp_rankwaits_cause(cause, sizeof cause, ranks, late) ? cause : NULL);
    waits_put(ranks, f);
    fputs(",\"ranks\":[", f);
    for (size_t i = 0; !stands && i < ranks->rank_count; i++) {
        if (!kp_finding_of_rank(&words, ranks, ranks->ranks[i].rank)) continue;
        words_put(f, count++ ? "," : "", ranks->ranks[i].rank, &words);
        fputs("}", f);
    }
    if (!stands) longer_put(ranks, count, f);
    fputs("],\"late\":", f);
    if (late && kp_finding_of_late(&found, &words, ranks, late->rank)) {
        fprintf(f, "{\"rank\":\"%ld\",", late->rank);
        kp_page_finding_put(f, &found);
        fputs("}", f);
    } else fputs("null", f);
    fputs("}", f);
    if (fclose(f) != 0) {
        free(text);
        return -ENOMEM;
    }
    return block_put(text, bytes, "verdict", out);
}

// SPDX-License-Identifier: Apache-2.0
/* pagerank.c - what the page compares between ranks: the parts of a step, and how long each collective took */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/page/pageparts.h"
#include "export/report/plain.h"
#include "export/report/rankwaits.h"

enum { COLLECTIVES_MAX = 20000 };

/*
 * Each collective of the steps, as `kprof report` counts them: what it is on every rank, start after the first event,
 * duration, nanoseconds; bytes of the bus.
 */
static void collectives_put(const struct kp_page *page, FILE *out)
{
    const struct kp_tree *tree = page->tree;
    const bool on_device = kp_collective_are_on_gpu(tree);
    const struct kp_chosen *chosen = &page->chosen;
    const struct kp_spans *within = chosen->step_count ? &chosen->in_steps : &chosen->spans;
    size_t count = 0;
    fputs(",\"collectives\":[", out);
    for (size_t i = 0; i < tree->count && count < COLLECTIVES_MAX; i++) {
        const struct kp_node *n = &tree->nodes[i];
        char key[1024], shown[KP_PAGE_TEXT_MAX];
        if (!kp_collective_is(tree, i, on_device) || !kp_spans_has(within, n->start_ns)) continue;
        const struct kp_kineto_work *work = kp_kineto_work_of(tree->trace, n->event);
        kp_collective_key(key, sizeof key, tree, &page->chosen, i, work);
        kp_plain_text(shown, sizeof shown, key, strlen(key));
        fputs(count++ ? ",[" : "[", out);
        kp_plain_json(out, shown);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRId64 "]", (uint64_t)n->start_ns - (uint64_t)page->base_ns,
                n->end_ns > n->start_ns ? (uint64_t)n->end_ns - (uint64_t)n->start_ns : 0, work ? work->bus_bytes : 0);
    }
    fprintf(out, "],\"cut\":%s", count == COLLECTIVES_MAX ? "true" : "false");
}

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

int kp_page_rank_put(const struct kp_page *page, const char *label, FILE *out)
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
    collectives_put(page, f);
    fputs("}", f);
    if (fclose(f) != 0) {
        free(text);
        return -ENOMEM;
    }
    return block_put(text, bytes, "rank", out);
}

/* What the traces of all ranks say of each: who is late, and why; whether the finding of its collectives is that. */
int kp_page_verdict_put(const struct kp_rankwaits *ranks, FILE *out)
{
    const struct kp_rankwait *const late = kp_rankwaits_late(ranks);
    struct kp_rankwords words;
    struct kp_finding found;
    char *text = NULL, cause[KP_RANKCAUSE_BYTES];
    size_t bytes = 0, count = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return -ENOMEM;
    fprintf(f, "{\"id\":\"%s\"", KP_FINDING_COMM);
    kp_page_member_put(f, "cause", late && kp_rankwaits_cause(cause, sizeof cause, ranks, late) ? cause : NULL);
    fputs(",\"ranks\":[", f);
    for (size_t i = 0; i < ranks->rank_count; i++) {
        if (!kp_finding_of_rank(&words, ranks, ranks->ranks[i].rank)) continue;
        fprintf(f, "%s{\"rank\":\"%ld\"", count++ ? "," : "", ranks->ranks[i].rank);
        kp_page_member_put(f, "what", words.what);
        kp_page_member_put(f, "change", words.change);
        fputs("}", f);
    }
    fputs("],\"late\":", f);
    if (late && kp_finding_of_late(&found, &words, ranks, late->rank)) {
        fprintf(f, "{\"rank\":\"%ld\",\"critical\":%s,\"cost\":%.0f,\"share\":%.6f,\"steps\":%zu", late->rank,
                found.is_critical ? "true" : "false", found.step_ns, found.share, found.steps);
        kp_page_member_put(f, "what", found.what);
        kp_page_member_put(f, "change", found.change);
        fputs("}", f);
    } else fputs("null", f);
    fputs("}", f);
    if (fclose(f) != 0) {
        free(text);
        return -ENOMEM;
    }
    return block_put(text, bytes, "verdict", out);
}

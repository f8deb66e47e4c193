// SPDX-License-Identifier: Apache-2.0
/* pagerank.c - what the page compares between ranks: the parts of a step, and who waited in collectives */
#include <errno.h>
#include <stdlib.h>

#include "export/answers/page/pageparts.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/fields.h"
#include "export/answers/ranks/rankwaits.h"

struct rank {
    const char *label;
    const struct kp_page *page;
    size_t steps;
    double step_ns, parts_ns[KP_SPLIT_PARTS]; /* means */
    long trace;                               /* its number among those compared; -1: of no job */
};
#define RANK(F, IF)                                                              \
    F(TEXT, label, r->label)                                                     \
    F(MAYBE, rank, kp_kineto_fact(r->page->tree->trace, "distributedInfo.rank")) \
    F(MAYBE, host, kp_kineto_fact(r->page->tree->trace, "host_name"))            \
    F(BOOL, gpu, r->page->has_gpu)                                               \
    F(WHOLE, steps, r->steps)                                                    \
    F(FIXED, step, (0, r->step_ns))                                              \
    F(OTHER, parts, (KP_TYPE_ARRAY(KP_TYPE("number")), means_put, r))            \
    F(MAYBE_WHOLE, trace, r->trace)

static void means_put(struct kp_jsonout *j, const char *key, const struct rank *r)
{
    kp_jsonout_open(j, key, '[');
    for (int p = 0; p < KP_SPLIT_PARTS; p++) kp_jsonout_number(j, NULL, r->parts_ns[p], 0);
    kp_jsonout_close(j, ']');
}

KP_FIELDS(rank, struct rank, RANK)

static void means_make(struct rank *r)
{
    const struct kp_page *page = r->page;
    struct kp_step_split *splits = kp_kineto_room(r->steps + 1, sizeof *splits);
    kp_step_split_all(splits, page->tree, &page->chosen);
    for (size_t i = 0; i < r->steps; i++) {
        r->step_ns += (double)splits[i].step_ns / (double)r->steps;
        for (int p = 0; p < KP_SPLIT_PARTS; p++) r->parts_ns[p] += (double)splits[i].part_ns[p] / (double)r->steps;
    }
    free(splits);
}

/* Writes a block of the page with an object as its head. 0 or -errno. */
static int block_put(const struct kp_fields *fields, const void *item, const char *name, FILE *out)
{
    static const struct kp_page_blob none;
    char *text = NULL;
    size_t bytes = 0;
    FILE *const f = open_memstream(&text, &bytes);
    if (!f) return -ENOMEM;
    kp_fields_put(KP_JSONOUT(f), NULL, fields, item);
    const int rc = fclose(f) == 0 ? kp_page_block_put(name, &none, text, bytes, out) : -ENOMEM;
    free(text);
    return rc;
}

int kp_page_rank_put(const struct kp_page *page, const char *label, const struct kp_rankwaits *ranks, FILE *out)
{
    const bool is_of_job = kp_rankwaits_rank(page->tree->trace) >= 0;
    struct rank r = {label, page, page->chosen.step_count, .trace = is_of_job ? (long)ranks->trace_count - 1 : -1};
    means_make(&r);
    return block_put(&rank_fields, &r, "rank", out);
}

/* ---- what the traces of all ranks say ---- */

struct verdict {
    const struct kp_rankwaits *ranks;
    const struct kp_stuck_told *stands;
    const struct kp_rankwait *late; /* NULL: none, or the job stands */
};

/* The time that each trace waited for others. */
static void waits_put(struct kp_jsonout *j, const char *key, const struct kp_rankwaits *ranks)
{
    kp_jsonout_open(j, key, '[');
    for (size_t i = 0; i < ranks->trace_count; i++)
        kp_jsonout_wholes(j, NULL, KP_JSONOUT_NUMBERS(ranks->traces[i].waited_ns, (int64_t)ranks->traces[i].last));
    kp_jsonout_close(j, ']');
}

static void most_put(struct kp_jsonout *j, const char *key, const struct kp_rankwait *most)
{
    if (!most) {
        kp_jsonout_null(j, key);
        return;
    }
    kp_jsonout_open(j, key, '[');
    kp_jsonout_id(j, NULL, most->rank);
    kp_jsonout_items(j, KP_JSONOUT_NUMBERS((int64_t)most->last, (int64_t)most->matched));
    kp_jsonout_close(j, ']');
}

struct said { /* of a rank: it is late, or waited */
    long rank;
    struct kp_rankwords words;
    struct kp_longer_steps longer; /* of the finding of its steps that are long by communication; else none */
};
#define SAID(F, IF)                   \
    F(ID, rank, r->rank)              \
    F(MAYBE, what, r->words.what)     \
    F(MAYBE, change, r->words.change) \
    F(BOOL, gpu, r->words.is_for_gpu) \
    F(BOOL, note, r->words.is_note)   \
    F(SHARE, part, r->words.part)     \
    F(SHARE, small, r->words.small)   \
    F(SOME, longer_by, kp_page_longer_text(room, sizeof room, &r->longer))
KP_FIELDS(said, struct said, SAID)

/* Their words on the findings of steps that are long by communication. */
static void longer_put(struct kp_jsonout *j, const struct kp_rankwaits *ranks)
{
    for (size_t i = 0; i < ranks->asked_count; i++) {
        const struct kp_rankasked *const a = &ranks->asked[i];
        struct said said = {.rank = a->rank, .longer = a->longer};
        if (kp_finding_of_longer(&said.words, ranks, a->rank, &a->longer)) kp_fields_put(j, NULL, &said_fields, &said);
    }
}

static void ranks_put(struct kp_jsonout *j, const char *key, const struct verdict *v)
{
    kp_jsonout_open(j, key, '[');
    for (size_t i = 0; !v->stands && i < v->ranks->rank_count; i++) {
        struct said said = {.rank = v->ranks->ranks[i].rank};
        if (kp_finding_of_rank(&said.words, v->ranks, said.rank)) kp_fields_put(j, NULL, &said_fields, &said);
    }
    if (!v->stands) longer_put(j, v->ranks);
    kp_jsonout_close(j, ']');
}

struct rank_cores_said {
    long rank;
    bool are_ranks; /* its job's ranks took the cores */
    const char *text;
};
#define CORES(F, IF)             \
    F(ID, rank, r->rank)         \
    F(BOOL, ranks, r->are_ranks) \
    F(TEXT, text, r->text)
KP_FIELDS(cores, struct rank_cores_said, CORES)

/* Who has the cores that a rank wanted. */
static void machines_put(struct kp_jsonout *j, const char *key, const struct kp_rankwaits *ranks)
{
    char text[512];
    kp_jsonout_open(j, key, '[');
    for (size_t i = 0; i < ranks->rank_count; i++) {
        struct rank_cores_said said = {ranks->ranks[i].rank, false, text};
        said.are_ranks = kp_finding_of_cores(text, sizeof text, ranks, said.rank, true);
        if (said.are_ranks || kp_finding_of_cores(text, sizeof text, ranks, said.rank, false))
            kp_fields_put(j, NULL, &cores_fields, &said);
    }
    kp_jsonout_close(j, ']');
}

static void late_put(struct kp_jsonout *j, const char *key, const struct verdict *v)
{
    struct kp_rankwords words;
    struct kp_finding found;
    if (!v->late || !kp_finding_of_late(&found, &words, v->ranks, v->late->rank)) {
        kp_jsonout_null(j, key);
        return;
    }
    kp_jsonout_open(j, key, '{');
    kp_jsonout_id(j, "rank", v->late->rank);
    kp_page_finding_put(j, &found);
    kp_jsonout_close(j, '}');
}

#define VERDICT(F, IF)                                                                                                \
    F(TEXT, id, KP_FINDING_COMM)                                                                                      \
    F(MAYBE, stuck, r->stands ? r->stands->what : NULL)                                                               \
    F(MAYBE, stuck_next, r->stands ? r->stands->next : NULL)                                                          \
    IF(r->stands, ID, stuck_rank, r->stands->rank)                                                                    \
    F(MAYBE, cause, r->late &&kp_rankwaits_cause(room, sizeof room, r->ranks, r->late) ? room : NULL)                 \
    F(OTHER, waits, (KP_TYPE("array"), waits_put, r->ranks))                                                          \
    F(WHOLE, matched, r->ranks->matched)                                                                              \
    F(WHOLE, left, r->ranks->partial)                                                                                 \
    F(WHOLE, untold, r->ranks->untold)                                                                                \
    F(FIXED, bandwidth, (6, r->ranks->transfer_ns ? (double)r->ranks->bus_bytes / (double)r->ranks->transfer_ns : 0)) \
    F(MAYBE, missing, kp_rankwaits_lack(r->ranks) ? kp_rankwaits_missing(room, sizeof room, r->ranks) : NULL)         \
    F(OTHER, most, (KP_TYPE_MAYBE("array"), most_put, kp_rankwaits_most(r->ranks)))                                   \
    F(OTHER, ranks, (KP_TYPE("array"), ranks_put, r))                                                                 \
    F(OTHER, cores, (KP_TYPE("array"), machines_put, r->ranks))                                                       \
    F(OTHER, late, (KP_TYPE_MAYBE("object"), late_put, r))
KP_FIELDS(verdict, struct verdict, VERDICT)

int kp_page_verdict_put(const struct kp_rankwaits *ranks, const struct kp_stuck_told *stands, FILE *out)
{
    const struct verdict v = {ranks, stands, stands ? NULL : kp_rankwaits_late(ranks)};
    return block_put(&verdict_fields, &v, "verdict", out);
}

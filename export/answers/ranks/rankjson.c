// SPDX-License-Identifier: Apache-2.0
/* rankjson.c - what all traces of a job tell together, as one line of JSON */
#include "export/answers/ranks/rankjson.h"

#include "export/show/fields.h"

struct rankjson_turn { /* others wait for the rank at collectives of that name */
    long rank;
    const char *name;
    int64_t ns;
};
struct rankjson {
    struct rankjson_turn turns[2];
    size_t turn_count;
    const struct kp_rankwaits *waits;
    const char *stands, *missing;
    const struct kp_rankwait *late; /* NULL: none */
    bool is_compared;
};

static const char *cause_of(const struct rankjson *r, char *room)
{
    return r->late && kp_rankwaits_cause(room, KP_RANKCAUSE_BYTES, r->waits, r->late) ? room : NULL;
}

#define RANK(F, IF)         \
    F(WHOLE, rank, r->rank) \
    F(WHOLE, last, r->last) \
    F(MS, waited_ms, r->waited_ns)
KP_FIELDS(rank, struct kp_rankwait, RANK)

#define TURN(F, IF)         \
    F(WHOLE, rank, r->rank) \
    F(TEXT, name, r->name)  \
    F(MS, waited_ms, r->ns)
KP_FIELDS(turn, struct rankjson_turn, TURN)

#define JOB(F, IF)                                                       \
    F(MAYBE, stuck, r->stands)                                           \
    F(MAYBE, missing, r->missing)                                        \
    IF(r->is_compared, WHOLE, matched, r->waits->matched)                \
    IF(r->is_compared, MAYBE_WHOLE, last, r->late ? r->late->rank : -1)  \
    IF(r->is_compared, MAYBE, cause, cause_of(r, room))                  \
    IF(r->is_compared, LIST, turns, (turn, r->turn_count, &r->turns[i])) \
    IF(r->is_compared, LIST, rows, (rank, r->late ? r->waits->rank_count : 0, &r->waits->ranks[i]))
KP_FIELDS(job, struct rankjson, JOB)

#define RANKS(F, IF) F(OBJECT, ranks, (job, r))
KP_FIELDS(ranks, struct rankjson, RANKS)

const struct kp_fields *const kp_rankjson_schema = &ranks_fields;

static void turns_take(struct rankjson *all)
{
    const struct kp_rankwaits *const w = all->waits;
    for (; kp_rankwaits_take_turns(w) && all->turn_count < 2; all->turn_count++) {
        const struct kp_rankturn *const of = &w->turns[all->turn_count];
        all->turns[all->turn_count] =
            (struct rankjson_turn){w->ranks[of->row].rank, kp_strings_get(w->texts, of->name), of->ns};
    }
}

void kp_rankjson_print(FILE *out, const struct kp_rankwaits *w, const char *stands)
{
    char missing[KP_RANKTEXT_BYTES];
    const bool is_several = w->rank_count > 1 && !w->has_jobs, lacks = is_several && kp_rankwaits_lack(w);
    if (!is_several && !stands) return;
    struct rankjson all = {.waits = w,
                           .stands = stands,
                           .missing = lacks ? kp_rankwaits_missing(missing, sizeof missing, w) : NULL,
                           .late = kp_rankwaits_most(w),
                           .is_compared = is_several && !lacks && !stands};
    turns_take(&all);
    kp_fields_put(KP_JSONOUT(out), NULL, &ranks_fields, &all);
    fputc('\n', out);
}

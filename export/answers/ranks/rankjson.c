// SPDX-License-Identifier: Apache-2.0
/* rankjson.c - what all traces of a job tell together, as one line of JSON */
#include "export/answers/ranks/rankjson.h"

#include "export/show/fields.h"

struct rankjson_turn {
    const struct kp_rankwaits *waits;
    const struct kp_rankturn *of;
};
struct rankjson {
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

#define TURN(F, IF)                                             \
    F(WHOLE, rank, r->waits->ranks[r->of->row].rank)            \
    F(TEXT, name, kp_strings_get(r->waits->texts, r->of->name)) \
    F(MS, waited_ms, r->of->ns)
KP_FIELDS(turn, struct rankjson_turn, TURN)

static size_t turns_of(const struct kp_rankwaits *w)
{
    return kp_rankwaits_take_turns(w) ? sizeof w->turns / sizeof *w->turns : 0;
}

#define JOB(F, IF)                                                                         \
    F(MAYBE, stuck, r->stands)                                                             \
    F(MAYBE, missing, r->missing)                                                          \
    IF(r->is_compared, WHOLE, matched, r->waits->matched)                                  \
    IF(r->is_compared, MAYBE_WHOLE, last, r->late ? r->late->rank : -1)                    \
    IF(r->is_compared, MAYBE, cause, cause_of(r, room))                                    \
    IF(r->is_compared, LIST, turns,                                                        \
       (turn, turns_of(r->waits), &(struct rankjson_turn){r->waits, &r->waits->turns[i]})) \
    IF(r->is_compared, LIST, rows, (rank, r->late ? r->waits->rank_count : 0, &r->waits->ranks[i]))
KP_FIELDS(job, struct rankjson, JOB)

#define RANKS(F, IF) F(OBJECT, ranks, (job, r))
KP_FIELDS(ranks, struct rankjson, RANKS)

const struct kp_fields *const kp_rankjson_schema = &ranks_fields;

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
    kp_fields_line(out, &ranks_fields, &all);
}

// SPDX-License-Identifier: Apache-2.0
/* endranks.c - what the other ranks' traces of a run that has just ended tell of one rank's findings */

#include <string.h>

#include "export/answers/ranks/rankwaits.h"
#include "export/answers/runadvice/runadvice.h"

enum { QUICK_BYTES = 1 << 20, ASKED_BYTES = 16 << 20 }; /* of the other ranks' traces together: their user waits */

struct others {
    const char *own; /* path of the trace that is read already */
    int64_t bytes;
    struct kp_rankwaits ranks;
};

static void bytes_add(void *context, const char *path, int64_t bytes)
{
    struct others *const o = context;
    if (strcmp(path, o->own) != 0) o->bytes += bytes;
}

static void rank_add(void *context, const char *path, int64_t bytes)
{
    struct others *const o = context;
    struct kp_advised other = {0};
    (void)bytes;
    if (strcmp(path, o->own) == 0) return;
    if (kp_advised_read_all(&other.trace, &other.tree, &other.chosen, path) == 0)
        kp_rankwaits_add(&o->ranks, &other.tree, &other.chosen);
    kp_advised_close(&other);
}

void kp_endranks_tell(struct kp_advised *a, const char *path, const char *folder, const struct timespec *since,
                      bool is_asked)
{
    const long rank = kp_rankwaits_rank(a->trace);
    struct others o = {.own = path};
    if (rank < 0) return;
    kp_advised_each(folder, since, bytes_add, &o);
    if (!o.bytes || o.bytes > (is_asked ? ASKED_BYTES : QUICK_BYTES)) return;
    kp_rankwaits_add(&o.ranks, &a->tree, &a->chosen);
    kp_advised_each(folder, since, rank_add, &o);
    kp_rankwaits_settle(&o.ranks);
    kp_runadvice_of_rank(&a->advice, &o.ranks, rank, a->trace->strings);
    a->has_read_ranks = true;
    kp_rankwaits_fini(&o.ranks);
}

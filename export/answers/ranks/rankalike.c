// SPDX-License-Identifier: Apache-2.0
/*
 * rankalike.c - what is said of all ranks at once, where none of them stands out
 *
 * One of three ranks arrives last at a third of the collectives, and one has the largest figure of three that differ by
 * chance. Its name would be taken for that of a culprit.
 */
#include "export/answers/ranks/rankwaits.h"

#include <math.h>
#include <string.h>

#include "export/show/units.h"

#define LAST_ALIKE 1.5     /* times as often as by chance */
#define MOST_OF_CORES 0.75 /* of the cores' time: other programs have little */
#define LITTLE_OF_CORES 0.25
#define CORE_ALIKE 0.10 /* of the time in which a rank wants a core: the least and the most differ by less */

bool kp_rankwaits_are_last_alike(const struct kp_rankwaits *w)
{
    if (w->rank_count < 2 || kp_rankwaits_lack(w) || kp_rankwaits_late(w)) return false;
    for (size_t i = 0; i < w->rank_count; i++) {
        const struct kp_rankwait *const r = &w->ranks[i];
        const double chance = (double)w->matched / (double)w->rank_count;
        if (r->matched != w->matched || (double)r->last > LAST_ALIKE * chance) return false;
    }
    return true;
}

const char *kp_rankwaits_core_text(char *out, size_t bytes, const struct kp_rankwaits *w)
{
    const struct kp_rankwait *const most = kp_rankwaits_without_core(w);
    double least = 1;
    *out = '\0';
    if (!most) return out;
    const double share = kp_rankwait_no_core(most);
    for (size_t i = 0; i < w->rank_count; i++) least = fmin(least, kp_rankwait_no_core(&w->ranks[i]));
    const bool are_alike = w->rank_count > 1 && least > 0 && share - least < CORE_ALIKE;
    char range[32] = "";
    if (lround(100 * least) < lround(100 * share)) snprintf(range, sizeof range, "%.0f to ", 100 * least);
    if (are_alike)
        snprintf(out, bytes, "each rank had no CPU core for %s%.0f %% of the time that it wanted one", range,
                 100 * share);
    else
        snprintf(out, bytes, "rank %ld had no CPU core for %.0f %% of the time that it wanted one", most->rank,
                 100 * share);
    return out;
}

/* ---- the cores of a machine ---- */

struct rank_cores { /* of the ranks of a machine */
    size_t ranks;
    long cores, threads; /* threads: 0: not known of some rank */
    double had;          /* of the cores' time, 0 to 1 */
    bool has_workers;
};

/* False: some rank's trace does not tell. */
static bool cores_add(struct rank_cores *c, const struct kp_rankwait *r)
{
    if (r->core_had_ns <= 0 || r->core_of_ns <= 0 || r->cores <= 0) return false;
    c->threads = r->busy_threads > 0 && (!c->ranks || c->threads) ? c->threads + r->busy_threads : 0;
    c->ranks++;
    if (r->cores > c->cores) c->cores = r->cores; /* a rank may be bound to some of them */
    c->had += (double)(r->core_had_ns + r->core_others_ns) / (double)r->core_of_ns;
    c->has_workers |= r->has_workers;
    return true;
}

static bool cores_find(struct rank_cores *c, const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const own = kp_rankmatch_row(w, rank);
    *c = (struct rank_cores){0};
    for (size_t i = 0; own && !w->has_jobs && i < w->rank_count; i++) {
        const struct kp_rankwait *const r = &w->ranks[i];
        if (own->host && r->host == own->host && !cores_add(c, r)) return false;
    }
    if (c->cores) c->had = fmin(1, c->had / (double)c->cores);
    return c->ranks > 1;
}

/* "ran 6 threads on 2 cores and had 34 % of their time" */
static void had_text(char *out, size_t bytes, const struct rank_cores *c)
{
    const char *const s = kp_units_s((size_t)c->cores);
    if (c->threads)
        snprintf(out, bytes, "ran %ld threads on %ld core%s and had %.0f %% of %s time", c->threads, c->cores, s,
                 100 * c->had, c->cores == 1 ? "its" : "their");
    else snprintf(out, bytes, "had %.0f %% of the time of the %ld core%s", 100 * c->had, c->cores, s);
}

enum kp_rankcores kp_rankwaits_cores_text(char *out, size_t bytes, const struct kp_rankwaits *w, long rank)
{
    struct rank_cores c;
    char had[128];
    *out = '\0';
    if (!cores_find(&c, w, rank)) return KP_RANKCORES_UNTOLD;
    had_text(had, sizeof had, &c);
    if (c.had < LITTLE_OF_CORES || (c.had < MOST_OF_CORES && c.threads <= c.cores)) {
        snprintf(out, bytes,
                 "Other programs%s or a container limit used the cores: the job's %zu ranks on this machine %s",
                 c.has_workers ? ", DataLoader workers" : "", c.ranks, had);
        return KP_RANKCORES_OTHERS;
    }
    snprintf(out, bytes, "The job's %zu ranks on this machine %s%s%s%s", c.ranks, had,
             c.had < MOST_OF_CORES ? "; other programs" : "",
             c.had < MOST_OF_CORES && c.has_workers ? ", their DataLoader workers" : "",
             c.had < MOST_OF_CORES ? " or a container limit may have had the rest" : "");
    return KP_RANKCORES_RANKS;
}

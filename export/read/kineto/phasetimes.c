// SPDX-License-Identifier: Apache-2.0
/* phasetimes.c - how long each phase took, recorded or not: reads kprof.phase_times, "US;train:RUNS:US;..." */
#include "export/read/kineto/phasetimes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/kineto/kineto_facts.h"
#include "export/show/units.h"

/* Reads NAME:RUNS:US of `bytes` bytes. */
static bool time_read(const char *at, size_t bytes, struct kp_phasetime *out)
{
    const char *const name_end = memchr(at, ':', bytes);
    const size_t n = name_end ? (size_t)(name_end - at) : 0;
    char *end;
    if (!n || n >= sizeof out->name) return false;
    memcpy(out->name, at, n);
    out->name[n] = '\0';
    out->runs = strtol(name_end + 1, &end, 10);
    if (*end != ':' || end >= at + bytes) return false;
    out->ns = 1000 * (int64_t)strtol(end + 1, &end, 10);
    return end == at + bytes && out->runs > 0 && out->ns >= 0;
}

#define FACT_LAST "kprof.phase_times_last"
#define FACT_LAST_TAIL "kprof.phase_tail_last"
#define TAIL_TOLD 0.01   /* of all time */
#define BEFORE_TOLD 0.05 /* of that and all time */

void kp_phasetimes_set_last(struct kp_kineto *trace, const char *text, const char *tail)
{
    kp_fact_put(trace, FACT_LAST, text);
    if (tail) kp_fact_put(trace, FACT_LAST_TAIL, tail);
}

/* Leaves out what came after the last op of the phase that was open when the program ended. */
static void tail_take(struct kp_phasetimes *times, const char *text)
{
    if (!text || !time_read(text, strlen(text), &times->tail)) return;
    for (size_t i = 0; i < times->count; i++) {
        struct kp_phasetime *const of = &times->of[i];
        if (strcmp(of->name, times->tail.name) != 0) continue;
        const int64_t ns = times->tail.ns < of->ns ? times->tail.ns : of->ns;
        of->ns -= ns;
        times->all_ns -= ns;
    }
}

bool kp_phasetimes_of(struct kp_phasetimes *out, const struct kp_kineto *trace)
{
    const char *const last = kp_kineto_fact(trace, FACT_LAST);
    const char *const text = last ? last : kp_kineto_fact(trace, "kprof.phase_times");
    char *end;
    memset(out, 0, sizeof *out);
    if (!text) return false;
    out->is_of_last = last != NULL;
    out->all_ns = 1000 * (int64_t)strtol(text, &end, 10);
    for (const char *at = end; *at == ';' && out->count < KP_PHASETIMES_MAX;) {
        const size_t bytes = strcspn(++at, ";");
        out->count += time_read(at, bytes, &out->of[out->count]);
        at += bytes;
    }
    out->before_steps = kp_kineto_number(trace, "kprof.phase_before_steps");
    out->before_ns = 1000 * (int64_t)kp_kineto_number(trace, "kprof.phase_before_us");
    tail_take(out, kp_kineto_fact(trace, last ? FACT_LAST_TAIL : "kprof.phase_tail"));
    return out->all_ns > 0 && out->count;
}

const struct kp_phasetime *kp_phasetimes_find(const struct kp_phasetimes *times, const char *name)
{
    for (size_t i = 0; i < times->count; i++)
        if (strcmp(times->of[i].name, name) == 0) return &times->of[i];
    return NULL;
}

const char *kp_phasetimes_until(const struct kp_phasetimes *times)
{
    return times->is_of_last ? "from the first phase's begin until the last trace's end"
                             : "from the first phase's begin until this trace's end";
}

size_t kp_phasetimes_text(char *out, size_t bytes, const struct kp_phasetimes *times, const char *own)
{
    size_t n = 0, told = 0;
    *out = '\0';
    for (size_t i = 0; i < times->count && n < bytes; i++) {
        const struct kp_phasetime *const t = &times->of[i];
        const double s = (double)t->ns / 1e9;
        if (own && strcmp(t->name, own) == 0) continue;
        n += (size_t)snprintf(out + n, bytes - n, "%s%s took %.1f %%%s%s (", told ? "; " : "", t->name,
                              100 * (double)t->ns / (double)times->all_ns, told ? "" : " of the time ",
                              told ? "" : kp_phasetimes_until(times));
        if (n < bytes && t->runs == 1) n += (size_t)snprintf(out + n, bytes - n, "once, %.3f s)", s);
        else if (n < bytes)
            n += (size_t)snprintf(out + n, bytes - n, "%ld times, %.3f s each)", t->runs, s / (double)t->runs);
        told++;
    }
    return told;
}

const char *kp_phasetimes_remarks(char *out, size_t bytes, const struct kp_phasetimes *times)
{
    const struct kp_phasetime *const tail = &times->tail;
    const double all_ns = (double)times->all_ns, before_ns = (double)times->before_ns;
    size_t n = 0;
    *out = '\0';
    if (before_ns > BEFORE_TOLD * (all_ns + before_ns))
        n = (size_t)snprintf(out, bytes, "; %ld step%s before the first phase took %.3f s", times->before_steps,
                             kp_units_s((size_t)times->before_steps), before_ns / 1e9);
    if (n < bytes && tail->runs && (double)tail->ns > TAIL_TOLD * all_ns)
        snprintf(out + n, bytes - n, "; %s was open when the program ended: %.3f s after its last op are left out",
                 tail->name, (double)tail->ns / 1e9);
    return out;
}

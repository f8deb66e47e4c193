// SPDX-License-Identifier: Apache-2.0
/*
 * promtext.c - the counts of a run in Prometheus' text format
 *
 * Called by: run/stepnote.c, by the thread kprof-summary
 * Owns:      nothing: the caller has the struct
 * Locks:     none
 */
#include "preload/summary/steplines.h"

#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/kp_sort.h"
#include "collector/base/kp_poison.h"

#define NS_IN_S UINT64_C(1000000000)

void kp_promtext_add(struct kp_promtext *p, const struct kp_stepline *line)
{
    p->steps += line->count;
    p->dur_ns += line->dur_ns;
    p->had_us += line->had_us;
    p->waited_us += line->waited_us;
    p->looked_us += line->looked_us;
    p->faults_minor += line->faults_minor;
    p->faults_major += line->faults_major;
    p->recorded += line->recorded;
    p->last_step = line->step;
    p->last_end_ns = line->end_ns;
    p->resident_kb = line->resident_kb;
    if (line->dur_ns) p->ns[p->count++ % KP_PROMTEXT_STEPS] = line->dur_ns;
}

struct prom_out {
    char *text;
    size_t bytes, used;
    char labels[192];
};

static void out_add(struct prom_out *o, const char *text)
{
    const size_t at = o->used < o->bytes ? o->used : o->bytes;
    o->used += kp_fmt(o->text + at, o->bytes - at, "%s", text);
}

/* A value is whole seconds or counts, and billionths: the formatter knows no doubles. */
static void metric(struct prom_out *o, const char *name, const char *more, uint64_t whole, uint64_t billionths)
{
    char line[512], part[12] = "";
    if (billionths) {
        uint64_t left = billionths;
        part[0] = '.';
        for (int i = 9; i > 0; i--, left /= 10) part[i] = (char)('0' + left % 10);
        part[10] = '\0';
    }
    kp_fmt(line, sizeof line, "%s{%s%s} %lu%s\n", name, o->labels, more, (unsigned long)whole, part);
    out_add(o, line);
}

static void typed(struct prom_out *o, const char *name, const char *type, const char *help)
{
    char line[256];
    kp_fmt(line, sizeof line, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
    out_add(o, line);
}

static void seconds(struct prom_out *o, const char *name, const char *more, uint64_t ns)
{
    metric(o, name, more, ns / NS_IN_S, ns % NS_IN_S);
}

static void counter(struct prom_out *o, const char *name, const char *help, uint64_t value)
{
    typed(o, name, "counter", help);
    metric(o, name, "", value, 0);
}

static void durations(struct prom_out *o, const struct kp_promtext *p)
{
    uint64_t sorted[KP_PROMTEXT_STEPS];
    const size_t n = p->count < KP_PROMTEXT_STEPS ? (size_t)p->count : KP_PROMTEXT_STEPS;
    memcpy(sorted, p->ns, n * sizeof *sorted);
    kp_sort_u64(sorted, n);
    typed(o, "kprof_step_duration_seconds", "summary",
          "Time from one step's end to the next; quantiles of the last 256");
    if (n) seconds(o, "kprof_step_duration_seconds", ",quantile=\"0.5\"", sorted[n / 2]);
    if (n) seconds(o, "kprof_step_duration_seconds", ",quantile=\"0.99\"", sorted[n - 1 - n / 100]);
    seconds(o, "kprof_step_duration_seconds_sum", "", p->dur_ns);
    metric(o, "kprof_step_duration_seconds_count", "", p->steps, 0);
}

size_t kp_promtext_write(const struct kp_promtext *p, const struct kp_stephead *head, char *out, size_t bytes)
{
    struct prom_out o = {.text = out, .bytes = bytes};
    kp_fmt(o.labels, sizeof o.labels, "host=\"%s\",rank=\"%u\",pid=\"%d\"", head->host, head->rank, (int)head->pid);
    counter(&o, "kprof_steps_total", "Steps that have ended", p->steps);
    durations(&o, p);
    typed(&o, "kprof_last_step_timestamp_seconds", "gauge", "When the last step ended, in seconds since 1970");
    seconds(&o, "kprof_last_step_timestamp_seconds", "", p->last_end_ns);
    typed(&o, "kprof_resident_bytes", "gauge", "Memory of the process that is of no file");
    metric(&o, "kprof_resident_bytes", "", p->resident_kb * 1024, 0);
    typed(&o, "kprof_step_thread_cpu_seconds_total", "counter", "Time in which the training thread had a core");
    seconds(&o, "kprof_step_thread_cpu_seconds_total", "", p->had_us * 1000);
    typed(&o, "kprof_step_thread_core_wait_seconds_total", "counter", "Time in which it was ready and had no core");
    seconds(&o, "kprof_step_thread_core_wait_seconds_total", "", p->waited_us * 1000);
    counter(&o, "kprof_major_faults_total", "Page faults of the training thread that read a disk", p->faults_major);
    counter(&o, "kprof_recorded_steps_total", "Steps that were recorded", p->recorded);
    counter(&o, "kprof_traces_total", "Traces that were written", p->traces);
    counter(&o, "kprof_dropped_records_total", "Records that were dropped", p->lost);
    return o.used;
}

void kp_promtext_path(const char *given, const struct kp_stephead *head, char *out, size_t bytes)
{
    const size_t length = strlen(given);
    const char *const base = kp_path_base(given), *dot = strrchr(base, '.');
    if (length && given[length - 1] == '/') {
        kp_fmt(out, bytes, "%skprof_%s_%d.prom", given, head->host, (int)head->pid);
        return;
    }
    if (!dot) dot = given + length;
    char stem[4200];
    kp_fmt(stem, sizeof stem, "%s", given);
    if ((size_t)(dot - given) < sizeof stem) stem[dot - given] = '\0';
    if (head->ranks > 1) kp_fmt(out, bytes, "%s.r%u%s", stem, head->rank, dot);
    else kp_fmt(out, bytes, "%s", given);
}

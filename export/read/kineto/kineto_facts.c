// SPDX-License-Identifier: Apache-2.0
/*
 * kineto_facts.c - keeps what the head of a trace says: host, rank, and the members of libkprof's own key
 *
 * A fact's path joins the names of its objects with dots. Only the first FACTS_MOST facts are kept.
 */
#include "export/read/kineto/kineto.h"
#include "export/read/kineto/kineto_facts.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_config.h"

enum { FACTS_MOST = 256 };

/* Sets the name of the member that is read, at the path's depth. A long name is cut. */
void kp_fact_key(struct kp_fact_path *path, const char *name, size_t bytes)
{
    size_t used = path->depth ? path->ends[path->depth - 1] : 0;
    if (used && used + 1 < sizeof path->text) path->text[used++] = '.';
    if (bytes > sizeof path->text - 1 - used) bytes = sizeof path->text - 1 - used;
    memcpy(path->text + used, name, bytes);
    path->text[used + bytes] = 0;
    path->ends[path->depth] = used + bytes;
}

bool kp_fact_open(struct kp_fact_path *path)
{
    if (path->depth + 1 == sizeof path->ends / sizeof *path->ends) return false;
    path->ends[path->depth + 1] = path->ends[path->depth];
    path->depth++;
    return true;
}

void kp_fact_add(struct kp_kineto *trace, const struct kp_fact_path *path, const char *text, size_t bytes)
{
    static const char step_ends[] = "kprof.step_ends";
    if (strcmp(path->text, step_ends) == 0) trace->has_step_ends = true; /* it comes before the events */
    if (trace->fact_count == FACTS_MOST) return;
    *KP_KINETO_NEXT(trace->facts, trace->fact_count, trace->fact_capacity) =
        (struct kp_kineto_fact){kp_strings_put(trace->strings, path->text, path->ends[path->depth]),
                                kp_strings_put(trace->strings, text, bytes)};
}

void kp_fact_put(struct kp_kineto *trace, const char *path, const char *text)
{
    struct kp_fact_path of = {.depth = 0};
    kp_fact_key(&of, path, strlen(path));
    kp_fact_add(trace, &of, text, strlen(text));
}

const char *kp_kineto_fact(const struct kp_kineto *trace, const char *path)
{
    for (size_t i = 0; i < trace->fact_count; i++)
        if (strcmp(kp_kineto_text(trace, trace->facts[i].path), path) == 0)
            return kp_kineto_text(trace, trace->facts[i].text);
    return NULL;
}

long kp_kineto_number(const struct kp_kineto *trace, const char *path)
{
    const char *const text = kp_kineto_fact(trace, path);
    return text ? strtol(text, NULL, 10) : 0;
}

const char *kp_kineto_gpu_ended(const struct kp_kineto *trace)
{
    static const char head[] = "ended: ";
    const char *const cupti = kp_kineto_fact(trace, "kprof.gpu_cupti");
    return cupti && strncmp(cupti, head, sizeof head - 1) == 0 ? cupti + sizeof head - 1 : NULL;
}

const char *kp_kineto_missed_call(const struct kp_kineto *trace)
{
    const char *const step = kp_kineto_fact(trace, "kprof.step");
    char text[1024];
    const char *const named = step ? strchr(step, ':') : NULL;
    if (!named || kp_kineto_fact(trace, "kprof.step_source")) return NULL;
    if (strncmp(step, "call:", 5) == 0)
        kp_config_missed(text, sizeof text, named + 1, kp_kineto_fact(trace, "kprof.step_near"));
    else kp_config_unmatched(text, sizeof text, strncmp(step, "op:", 3) == 0, named + 1);
    return kp_kineto_text(trace, kp_strings_put(trace->strings, text, strlen(text)));
}

bool kp_kineto_steps_are_calls(const struct kp_kineto *trace)
{
    const char *const source = kp_kineto_fact(trace, "kprof.step_source");
    return source && (strcmp(source, "call") == 0 || strcmp(source, "module") == 0);
}

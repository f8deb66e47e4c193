// SPDX-License-Identifier: Apache-2.0
/* judged.c - what is advised of a trace beyond its own events: by its end, the heap and its workers' traces */
#include "export/answers/runadvice/judged.h"

#include "export/answers/ranks/lastwords.h"
#include "export/answers/ranks/silence.h"
#include "export/read/kineto/ended.h"

/* Nothing lacks in how it was recorded: the program had no time for a step. */
static void early_tell(struct kp_advised *a)
{
    char room[256];
    struct kp_strings *const strings = a->trace->strings;
    const struct kp_chosen *c = &a->chosen;
    char way[KP_ENDED_WAY_BYTES];
    if (!kp_ended_early(a->trace) || c->step_count || c->optimizer_steps || c->parts.has_startup || c->parts.has_cut ||
        !c->spans.count)
        return;
    snprintf(room, sizeof room, "no steps were found: the program ended %s %.1f s in, before its first step%s",
             kp_ended_way(way, sizeof way, a->trace),
             (double)(c->spans.of[c->spans.count - 1].end_ns - c->spans.of[0].start_ns) / 1e9,
             kp_ended_remark(a->trace));
    a->advice.missing = kp_strings_keep(strings, room);
}

static void end_tell(struct kp_advised *a)
{
    char text[KP_LASTWORDS_BYTES + 80];
    if (!*kp_lastwords_ended(text, sizeof text, &a->tree, &a->chosen)) return;
    a->advice.ended = kp_strings_keep(a->trace->strings, text);
    a->advice.ended_word = kp_ended_word(a->trace);
    a->advice.recorded = kp_strings_keep(a->trace->strings, kp_ended_recorded(text, sizeof text, a->trace));
}

static void silence_tell(struct kp_advised *a, const struct kp_trace_source *source)
{
    char text[KP_SILENCE_BYTES];
    const bool is_running = source->is_spool && kp_input_is_running(source->path);
    if (*kp_silence_say(text, sizeof text, &a->tree, &a->chosen, is_running))
        a->advice.silent = kp_strings_keep(a->trace->strings, text);
}

void kp_judged_add(struct kp_advised *a, const struct kp_trace_source *source)
{
    silence_tell(a, source);
    if (source->is_spool) return;
    end_tell(a);
    early_tell(a);
    kp_heapadvice_add(a, source->path);
    kp_workers_tell(a, source->path);
}

void kp_judged_add_at_end(struct kp_advised *a, const char *path)
{
    kp_heapadvice_add(a, path);
    if (!kp_workers_defer(a, path)) kp_workers_tell(a, path);
}

// SPDX-License-Identifier: Apache-2.0
/* cmd_advise.c - `kprof advise`: what is slow, what it costs a step, and what to change */
#include "export/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "export/answers/advise/adviceprint.h"
#include "export/answers/ranks/rankwaits.h"
#include "export/answers/runadvice/advised.h"
#include "export/answers/runadvice/judged.h"
#include "export/answers/runadvice/runadvice.h"
#include "export/answers/jobs/stood.h"
#include "export/answers/jobs/latest.h"
#include "export/read/folder/phasetraces.h"
#include "export/read/folder/trace_source.h"
#include "export/read/parse/kineto_parse.h"
#include "export/show/plain.h"
#include "export/show/units.h"

struct advise_command {
    bool partial, is_several;
    struct kp_runadvice traces;
    struct kp_rankwaits ranks;
    struct kp_stuck stuck;
    struct kp_stuck_told told;
    struct kp_phasetraces phases; /* of several traces those of phases: a block for each phase */
};
#define INTO(member) KP_OPT_INTO(struct advise_command, member)
static const struct kp_opt flags[] = {
    {"json", 0, KP_OPT_FLAG, NULL, "print each trace's findings as a line of JSON", INTO(traces.is_json)},
    {"partial", 0, KP_OPT_FLAG, NULL, "judge what is there of a file that ends early", INTO(partial)},
    {0}};

/* The findings of the traces of one phase together. */
static int phase_print(struct advise_command *command, struct kp_phasetrace *p)
{
    struct kp_advised advised;
    char why[512];
    const int rc = kp_advised_of(&advised, p->trace, p->phase, why, sizeof why);
    p->trace = NULL;
    if (rc == 0) {
        fputs("phase    ", stdout);
        kp_plain_put(stdout, p->phase);
        if (p->rank) printf(" of rank %s", p->rank);
        printf(": %zu step%s in %zu trace%s\n", advised.advice.steps, kp_units_s(advised.advice.steps), p->traces,
               kp_units_s(p->traces));
        command->traces.has_communication |= kp_runadvice_waiting(&advised.advice) != NULL;
        if (p->rank)
            kp_advice_of_rank(&advised.advice, &command->ranks, strtol(p->rank, NULL, 10), advised.trace->strings);
        kp_adviceprint_text(stdout, &advised.advice);
    }
    kp_advised_close(&advised);
    return rc ? kp_cli_fail("advise", "%s", why) : KP_EXIT_DONE;
}

static int phases_print(struct advise_command *command, int worst)
{
    kp_phasetraces_settle(&command->phases);
    for (size_t i = 0; i < command->phases.count; i++)
        if (phase_print(command, &command->phases.of[i]) != KP_EXIT_DONE) worst = KP_EXIT_BAD_INPUT;
    kp_phasetraces_fini(&command->phases);
    return worst;
}

/* Keeps what is said of a trace. */
static void trace_keep(struct advise_command *command, struct kp_advised *a, const struct kp_trace_source *source)
{
    const bool is_other = !command->traces.is_json && kp_otheradvice_is_meant(a);
    char *other = NULL;
    size_t bytes;
    FILE *const out = is_other ? open_memstream(&other, &bytes) : NULL;
    if (out) kp_otheradvice_print(out, a, source), fclose(out);
    kp_runadvice_add(&command->traces, a, source->label, other);
}

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct advise_command *const command = context;
    const struct kp_texts texts = kp_trace_source_texts(source);
    struct kp_advised advised;
    char why[512];
    command->is_several = several;
    const int rc = kp_advised_open(&advised, &texts, source->path, command->partial, why, sizeof why);
    const bool is_torn = rc && advised.trace && advised.trace->torn;
    if (advised.is_part && rc == 0) kp_cli_say(stderr, "kprof: %s", why);
    if (rc == 0) kp_rankwaits_add(&command->ranks, &advised.tree, &advised.chosen);
    if (rc == 0) kp_stood_look(&command->stuck, &advised.tree, &advised.chosen, source->path, source->is_spool);
    if (rc == 0) kp_phasetraces_look(&command->phases, advised.trace);
    if (rc == 0 && several && !command->traces.is_json && kp_phasetraces_take(&command->phases, &advised.trace)) {
        kp_advised_close(&advised);
        return KP_EXIT_DONE;
    }
    if (rc == 0) {
        kp_judged_add(&advised, source);
        trace_keep(command, &advised, source);
    }
    kp_advised_close(&advised);
    return rc ? kp_cli_fail("advise", "%s%s", why, is_torn ? "; --partial judges those" : "") : KP_EXIT_DONE;
}

/* The time that the others spend in collectives is the wait for a late rank: less of it needs no overlap. */
static void ranks_print(const struct advise_command *command)
{
    const struct kp_rankwaits *ranks = &command->ranks;
    kp_rankwaits_print(stdout, ranks);
    if (ranks->rank_count < 2 || kp_rankwaits_lack(ranks) || kp_rankwaits_late(ranks)) return;
    if (!command->traces.has_communication || !ranks->matched) return;
    const struct kp_rankwait *const crowded = kp_rankwaits_without_core(ranks);
    char text[KP_RANKCAUSE_BYTES];
    if (*kp_rankwaits_in_turn(text, sizeof text, ranks)) {
        printf("         %s\n", text);
        return;
    }
    fputs("         no rank is late by its own work: ", stdout);
    if (kp_rankwaits_kind(ranks, crowded->rank) != KP_RANKWAIT_CORE) puts(kp_commkinds_overlap(&ranks->kinds));
    else puts(kp_rankwaits_core_text(text, sizeof text, ranks));
}

static int all_print(struct advise_command *command, int worst)
{
    if (!command->traces.is_json && !command->traces.stands) ranks_print(command);
    kp_runadvice_print(&command->traces, command->is_several);
    if (!command->traces.stands) worst = phases_print(command, worst);
    kp_runadvice_guesses_print(&command->traces, command->is_several);
    return worst;
}

int kp_cmd_advise(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "advise", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct advise_command command = {0};
    const int i = kp_opt_flags(&scan, &command, NULL);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    const int count = kp_latest_take("advise", &argv, scan.count, 0);
    if (!count) return KP_EXIT_USAGE;
    int worst = kp_input_each("advise", argv, count, NULL, trace_take, &command);
    if (worst != KP_EXIT_DONE && !command.stuck.count && !command.traces.is_json) kp_stood_alone_put(argv, count);
    kp_rankwaits_settle(&command.ranks);
    const bool stands = kp_stood_tell(&command.told, &command.stuck);
    kp_runadvice_settle(&command.traces, &command.ranks, stands ? &command.told : NULL);
    worst = all_print(&command, worst);
    kp_runadvice_fini(&command.traces);
    kp_stuck_fini(&command.stuck);
    kp_rankwaits_fini(&command.ranks);
    return worst;
}

// SPDX-License-Identifier: Apache-2.0
/* cmd_advise.c - `kprof advise`: what is slow, what it costs a step, and what to change */
#include "export/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "export/answers/advise/adviceprint.h"
#include "export/answers/runadvice/advised.h"
#include "export/answers/runadvice/guessadvice.h"
#include "export/answers/runadvice/heldout.h"
#include "export/answers/runadvice/judged.h"
#include "export/cli/recover/latest.h"
#include "export/answers/runadvice/otheradvice.h"
#include "export/read/folder/phasetraces.h"
#include "export/read/folder/trace_source.h"
#include "export/read/kineto/ended.h"
#include "export/read/parse/kineto_parse.h"
#include "export/answers/ranks/lastwords.h"
#include "export/show/plain.h"
#include "export/show/units.h"
#include "export/answers/ranks/rankwaits.h"
#include "export/answers/ranks/stuck.h"

static const struct kp_opt flags[] = {{"json", 0, KP_OPT_FLAG, NULL, "print each trace's findings as a line of JSON"},
                                      {"json-schema", 0, KP_OPT_FLAG, NULL, "print the JSON Schema of such a line"},
                                      {"partial", 0, KP_OPT_FLAG, NULL, "of a cut file, judge what is there"},
                                      {0}};
/* What is said of a trace, until the traces of all ranks are read: these tell why its collectives take long. */
struct held_advice {
    char *text;
    size_t bytes;
    long rank;
    bool has_gpu;
    char *what, *change; /* of its finding of communication, in the text; or NULL */
};
struct advise_command {
    bool is_json, partial, has_communication; /* has_communication: some finding is of it */
    struct kp_rankwaits ranks;
    struct kp_stuck stuck;
    char stands[KP_STUCK_BYTES]; /* the job stands: what is said of it first; "": it does not */
    struct held_advice *held;    /* in order; what follows on one waits, too */
    size_t held_count, held_capacity;
    struct kp_guessadvices guesses;
    struct kp_phasetraces phases; /* of several traces those of phases: a block for each phase */
};

static void killed_print(FILE *out, const struct kp_advised *a)
{
    const char *const by = kp_ended_signal(a->trace);
    if (!kp_ended_early(a->trace) || !a->chosen.step_count) return;
    fprintf(out, "%-9s%s", kp_ended_word(a->trace), by ? "by " : "not by itself");
    if (by) kp_plain_put(out, by);
    char words[KP_LASTWORDS_BYTES];
    fprintf(out, "%s%s: what was recorded until then\n", kp_lastwords(words, sizeof words, &a->tree, &a->chosen),
            kp_ended_remark(a->trace));
}

/* The finding of collectives: what they take, or how long they wait for another rank, a trace alone cannot
 * tell. */
static struct kp_finding *waiting_find(struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, KP_FINDING_COMM) == 0) return &a->findings[i];
    return NULL;
}

/* What the traces of one phase say together. */
static int phase_print(struct advise_command *command, struct kp_phasetrace *p)
{
    struct kp_advised advised;
    struct kp_rankwords words;
    char why[512];
    const int rc = kp_advised_of(&advised, p->trace, p->phase, why, sizeof why);
    p->trace = NULL;
    if (rc == 0) {
        fputs("phase    ", stdout);
        kp_plain_put(stdout, p->phase);
        if (p->rank) printf(" of rank %s", p->rank);
        printf(": %zu step%s in %zu trace%s\n", advised.advice.steps, kp_units_s(advised.advice.steps), p->traces,
               kp_units_s(p->traces));
        struct kp_finding *f = waiting_find(&advised.advice);
        command->has_communication |= f != NULL;
        if (f && p->rank && !*command->stands &&
            kp_finding_of_rank(&words, &command->ranks, strtol(p->rank, NULL, 10)) &&
            (words.is_for_gpu || !advised.advice.has_gpu))
            f->what = words.what, f->change = words.change;
        kp_adviceprint_text(stdout, &advised.advice, &advised.chosen);
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

static void trace_print(FILE *out, const struct advise_command *command, struct kp_advised *a,
                        const struct kp_trace_source *source, bool several)
{
    if (several && !command->is_json) kp_cli_say(out, "%s", source->label);
    if (command->is_json) kp_adviceprint_json(out, &a->advice, source->label);
    else if (kp_otheradvice_is_meant(a)) kp_otheradvice_print(out, a, source);
    else {
        if (!source->is_spool) killed_print(out, a);
        kp_adviceprint_text(out, &a->advice, &a->chosen);
        if (a->workers) fputs(a->workers, out);
    }
}

/* Keeps what is said of a trace. Returns whether it does. */
static bool trace_hold(struct advise_command *command, struct kp_advised *a, const struct kp_trace_source *source)
{
    struct held_advice held = {.rank = kp_rankwaits_rank(a->trace), .has_gpu = a->advice.has_gpu};
    const struct kp_finding *f = held.rank >= 0 ? waiting_find(&a->advice) : NULL;
    FILE *out = held.rank >= 0 || command->held_count ? open_memstream(&held.text, &held.bytes) : NULL;
    if (!out) return false;
    trace_print(out, command, a, source, true);
    fclose(out);
    if (f) held.what = strdup(f->what), held.change = strdup(f->change);
    command->held = kp_kineto_grow(command->held, &command->held_capacity, command->held_count + 1, sizeof held);
    command->held[command->held_count++] = held;
    return true;
}

/* Writes `text` up to where `from` begins, and `to`. Returns what follows. */
static const char *replaced_put(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at) return text;
    fwrite(text, 1, (size_t)(at - text), stdout);
    fputs(to, stdout);
    return at + strlen(from);
}

/* Where findings and notes begin; NULL: neither does. */
static const char *judgement_find(const char *text)
{
    static const char *const begins[] = {"\nCRITICAL  ", "\nWARNING  ",       "\nnote     ",
                                         "\nhealthy\n",  "\nnothing found\n", "\nINCOMPLETE  "};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const char *const at = strstr(text, begins[i]);
        if (at && (!first || at < first)) first = at;
    }
    return first;
}

/* Puts the finding of the late rank first, where the trace alone has none or others. Returns what follows. */
static const char *late_put(const struct advise_command *command, const char *text, const struct kp_finding *late)
{
    static const char *const verdicts[] = {"\nhealthy\n", "\nnothing found\n"};
    if (command->is_json) {
        text = replaced_put(text, "\"verdict\":\"healthy\"", "\"verdict\":\"found\"");
        text = replaced_put(text, "\"verdict\":\"nothing found\"", "\"verdict\":\"found\"");
        text = replaced_put(text, ",\"findings\":[", ",\"findings\":[");
        kp_adviceprint_finding_json(stdout, late);
        if (*text != ']') fputs(",", stdout);
        return text;
    }
    const char *const first = judgement_find(text);
    if (!first) return text;
    fwrite(text, 1, (size_t)(first + 1 - text), stdout);
    kp_adviceprint_finding(stdout, late, late->steps);
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        const char *const at = strstr(first, verdicts[i]);
        if (!at) continue;
        fwrite(first + 1, 1, (size_t)(at - first), stdout);
        return at + strlen(verdicts[i]);
    }
    return first + 1;
}

/* A text as it stands in what is held: in JSON without its quotes. The caller frees it. */
static char *as_held(const struct advise_command *command, const char *text)
{
    char *json = NULL;
    size_t bytes = 0;
    FILE *const f = command->is_json ? open_memstream(&json, &bytes) : NULL;
    if (!f) return strdup(text);
    kp_plain_json(f, text);
    fclose(f);
    json[bytes - 1] = 0;
    memmove(json, json + 1, bytes - 1);
    return json;
}

/* Writes the held text up to `from`, and `to` instead of it. Returns what follows. */
static const char *words_put(const struct advise_command *command, const char *text, const char *from, const char *to)
{
    char *const held = as_held(command, from), *const new = as_held(command, to);
    if (held && new) text = replaced_put(text, held, new);
    free(held);
    free(new);
    return text;
}

/* Of a job that stands no rank is told as late: JSON says what the first line of the text does. */
static bool stuck_find(struct kp_finding *out, const struct advise_command *command, long rank)
{
    *out = (struct kp_finding){.id = "stuck",
                               .what = command->stands,
                               .change = "See what the rank does that is in no collective: kprof run --with-stack 1 "
                                         "names its function.",
                               .is_critical = true};
    return *command->stands && command->is_json && rank >= 0;
}

static void held_print(struct advise_command *command)
{
    struct kp_finding late;
    struct kp_rankwords words;
    for (size_t i = 0; i < command->held_count; i++) {
        const struct held_advice *h = &command->held[i];
        const char *text = h->text;
        if (stuck_find(&late, command, h->rank)) text = late_put(command, text, &late);
        else if (!*command->stands && kp_finding_of_late(&late, &words, &command->ranks, h->rank))
            text = late_put(command, text, &late);
        const bool is_told =
            !*command->stands && h->what && h->change && kp_finding_of_rank(&words, &command->ranks, h->rank);
        if (is_told && (words.is_for_gpu || !h->has_gpu)) {
            text = words_put(command, text, h->what, words.what);
            text = words_put(command, text, h->change, words.change);
        }
        fputs(text, stdout);
        free(h->text);
        free(h->what);
        free(h->change);
    }
    free(command->held);
}

/* Keeps what is said of a trace of guessed steps until the others are said. Returns whether it does. */
static bool guess_hold(struct advise_command *command, struct kp_advised *a, const struct kp_trace_source *source)
{
    char *said = NULL;
    size_t bytes;
    FILE *out = kp_guessadvices_look(&command->guesses, a->trace) ? open_memstream(&said, &bytes) : NULL;
    if (!out) return false;
    trace_print(out, command, a, source, true);
    fclose(out);
    kp_guessadvices_take(&command->guesses, a, source->label, said);
    return true;
}

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct advise_command *const command = context;
    const struct kp_texts texts = kp_trace_source_texts(source);
    struct kp_advised advised;
    char why[512];
    const int rc = kp_advised_open(&advised, &texts, source->path, command->partial, why, sizeof why);
    const bool is_torn = rc && advised.trace && advised.trace->torn;
    if (advised.is_part && rc == 0) kp_cli_say(stderr, "kprof: %s", why);
    if (rc == 0) kp_rankwaits_add(&command->ranks, &advised.tree, &advised.chosen);
    if (rc == 0) kp_stuck_add(&command->stuck, &advised.tree, &advised.chosen);
    if (rc == 0) kp_phasetraces_look(&command->phases, advised.trace);
    if (rc == 0 && several && !command->is_json && kp_phasetraces_take(&command->phases, &advised.trace)) {
        kp_advised_close(&advised);
        return KP_EXIT_DONE;
    }
    if (rc == 0) {
        kp_judged_add(&advised, source);
        command->has_communication |= waiting_find(&advised.advice) != NULL;
        if (!several || !(guess_hold(command, &advised, source) || trace_hold(command, &advised, source)))
            trace_print(stdout, command, &advised, source, several);
    }
    kp_advised_close(&advised);
    return rc ? kp_cli_fail("advise", "%s%s", why, is_torn ? "; --partial judges those" : "") : KP_EXIT_DONE;
}

/* What the others spend in collectives is the wait for a late rank: less of it needs no overlap. */
static void ranks_print(const struct advise_command *command)
{
    const struct kp_rankwaits *ranks = &command->ranks;
    kp_rankwaits_print(stdout, ranks);
    if (ranks->rank_count < 2 || kp_rankwaits_lack(ranks) || kp_rankwaits_late(ranks)) return;
    if (command->has_communication && ranks->matched)
        printf("         none of them is late alone: %s\n", kp_commkind_overlap(kp_commkinds_most(&ranks->kinds)));
}

int kp_cmd_advise(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "advise", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct advise_command command = {0};
    struct kp_heldout held = {0};
    char first[KP_STUCK_BYTES + 16];
    const char *value;
    int count = 0, i;
    while ((i = kp_opt_next(&scan, &value)) != KP_OPT_END) {
        switch (i) {
        case 0: command.is_json = true; break;
        case 1: fputs(kp_adviceprint_schema, stdout); return KP_EXIT_DONE;
        case 2: command.partial = true; break;
        case KP_OPT_ARGUMENT: argv[count++] = (char *)value; break; /* that word was read already */
        case KP_OPT_HELP: return kp_cli_help("advise", flags);
        default: return KP_EXIT_USAGE;
        }
    }
    count = kp_latest_take("advise", &argv, count, 0);
    if (!count) return KP_EXIT_USAGE;
    kp_heldout_begin(&held);
    int worst = kp_input_each("advise", argv, count, NULL, trace_take, &command);
    kp_rankwaits_settle(&command.ranks);
    if (!kp_stuck_tell(command.stands, sizeof command.stands, &command.stuck)) *command.stands = 0;
    held_print(&command);
    worst = phases_print(&command, worst);
    kp_guessadvices_print(&command.guesses, command.is_json);
    if (!command.is_json && !*command.stands) ranks_print(&command);
    snprintf(first, sizeof first, "STUCK    %s", command.stands);
    kp_heldout_end(&held, *command.stands && !command.is_json ? first : NULL);
    kp_stuck_fini(&command.stuck);
    kp_rankwaits_fini(&command.ranks);
    return worst;
}

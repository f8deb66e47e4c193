// SPDX-License-Identifier: Apache-2.0
/* cmd_diff.c - `kprof diff`: two runs of a program, and what changed beyond the noise between steps */
#include "export/cli/cli.h"

#include <errno.h>
#include <stdlib.h>

#include "export/read/folder/trace_source.h"
#include "export/answers/diff/diff.h"
#include "export/read/kineto/overlaps.h"

enum { KP_EXIT_SLOWER = 3, ROWS_DEFAULT = 12 };

struct diff_command {
    struct kp_diff diff;
    struct kp_diff_show show;
    struct kp_choice choice;
    int side, first_of_b; /* first_of_b: the index of its file, or -1 */
    long most;
    double fail_above; /* percent, or less than 0 */
    bool json, partial;
};

enum option_id { VS, JSON, ROWS, ALL, STEP, WITHIN, FAIL_ABOVE, PARTIAL };
#define INTO(member) KP_OPT_INTO(struct diff_command, member)
static const struct kp_opt flags[] = {
    [VS] = {"vs", 0, KP_OPT_FLAG, NULL, "ends the files of A; those of B follow. Two paths need no --vs", 0},
    [JSON] = {"json", 0, KP_OPT_FLAG, NULL, "every row as one line of JSON", INTO(json)},
    [ROWS] = {"rows", 'n', KP_OPT_VALUE, "N", "at most N rows of each table; default 12, 0: all", 0},
    [ALL] = {"all", 0, KP_OPT_FLAG, NULL, "also rows that changed less than the noise", INTO(show.has_all)},
    [STEP] = {"step", 0, KP_OPT_VALUE, "A-B", "only ProfilerStep#A to #B of both sides; A alone: one step", 0},
    [WITHIN] = {"within", 0, KP_OPT_VALUE, "NAME",
                "only while a range, op or Python function of that name (or glob) runs", INTO(choice.within)},
    [FAIL_ABOVE] = {"fail-above", 0, KP_OPT_VALUE, "PCT",
                    "exit 3 if a step of B takes more than PCT percent longer, beyond the noise", 0},
    [PARTIAL] = {"partial", 0, KP_OPT_FLAG, NULL, "compare what is there of a file that ends early", INTO(partial)},
    {0}};

static int percent_set(struct diff_command *c, const char *text)
{
    char *end;
    c->fail_above = strtod(text, &end);
    if (end != text && !*end && c->fail_above >= 0) return 0;
    return kp_cli_misuse("diff", "--fail-above is a percentage from 0 on, not %s", text);
}

static int option_take(void *command, const struct kp_opt_scan *scan, int id, const char *value)
{
    struct diff_command *const c = command;
    switch (id) {
    case VS: c->first_of_b = scan->count; return 0;
    case ROWS:
        if (kp_opt_number(value, 0, &c->most)) return 0;
        return kp_cli_misuse("diff", "-n is a number from 0 on, not %s", value);
    case STEP: return kp_opt_steps("diff", value, &c->choice.first_step, &c->choice.last_step);
    default: return percent_set(c, value);
    }
}

static int tree_add(struct diff_command *c, struct kp_tree *tree, const char *label)
{
    struct kp_chosen chosen;
    char why[512];
    kp_tree_fill_calls(tree);
    kp_tree_set_forward_stacks(tree);
    const int rc = kp_chosen_make(&chosen, tree, &c->choice, why, sizeof why);
    if (rc == 0) kp_diff_add(&c->diff, c->side, tree, &chosen, label);
    kp_chosen_fini(&chosen);
    return rc ? kp_cli_fail("diff", "%s: %s", label, why) : KP_EXIT_DONE;
}

/* Reads a trace in pieces, as far as it can be cut. `is_added`: all of it is in the comparison. */
static int pieces_read(struct diff_command *c, const struct kp_trace_source *source, struct kp_kineto **trace,
                       bool *is_added, char *why, size_t why_bytes)
{
    struct kp_diffpieces *pieces = kp_diffpieces_open(c->side);
    struct kp_kineto_pieces *reading = kp_diffpieces_reading(pieces);
    int rc = kp_trace_source_read(source, trace, reading, why, why_bytes);
    const bool is_whole = rc != -ESTALE && !reading->has_given;
    *is_added = rc == 0 && !is_whole && kp_diffpieces_end(pieces, *trace, &c->diff, source->label);
    kp_diffpieces_close(pieces);
    if (is_whole || *is_added || (rc && rc != -ESTALE)) return rc;
    kp_kineto_close(*trace);
    return kp_trace_source_read(source, trace, NULL, why, why_bytes);
}

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct diff_command *c = context;
    struct kp_kineto *trace = NULL;
    struct kp_tree tree;
    char why[512];
    bool is_added = false;
    (void)several;
    const bool is_of_all = c->choice.first_step < 0 && !c->choice.within && !c->partial;
    int rc = is_of_all ? pieces_read(c, source, &trace, &is_added, why, sizeof why)
                       : kp_trace_source_read(source, &trace, NULL, why, sizeof why);
    const bool is_torn = rc && trace && trace->torn;
    if (rc && c->partial && kp_trace_source_take_torn(trace, why, sizeof why))
        rc = 0, kp_cli_say(stderr, "kprof: %s", why);
    if (is_added) {
        kp_kineto_close(trace);
        return KP_EXIT_DONE;
    }
    if (rc == 0) kp_kineto_works_settle(trace);
    if (rc || kp_tree_build(&tree, trace) < 0) {
        kp_kineto_close(trace);
        return kp_cli_fail("diff", "%s%s", rc ? why : source->label,
                           !rc       ? ": too many events"
                           : is_torn ? "; --partial compares those"
                                     : "");
    }
    rc = tree_add(c, &tree, source->label);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
    return rc;
}

/* The exit code that --fail-above asks for. A change that cannot be told from noise fails as well; from the machine,
 * not. */
static int verdict_of(const struct diff_command *c)
{
    const int verdict = c->diff.step.verdict;
    if (c->fail_above < 0 || kp_diff_percent(&c->diff) <= c->fail_above) return KP_EXIT_DONE;
    if (verdict == KP_DIFF_MORE && kp_diff_may_be_the_machine(&c->diff)) {
        kp_cli_say(stderr,
                   "kprof diff: --fail-above did not fail: the change is less than steps differ by, and one run "
                   "a side cannot tell it from a busier machine; give several of each (--vs)");
        return KP_EXIT_DONE;
    }
    if (verdict == KP_DIFF_MORE && kp_diff_is_core_wait(&c->diff, c->fail_above)) {
        kp_cli_say(stderr,
                   "kprof diff: --fail-above did not fail: B's threads waited for cores that others had, and without "
                   "that wait the change is less, or noise");
        return KP_EXIT_DONE;
    }
    return verdict == KP_DIFF_MORE || verdict == KP_DIFF_UNKNOWN ? KP_EXIT_SLOWER : KP_EXIT_DONE;
}

static int diff_run(struct diff_command *c, char **paths, int count)
{
    const int first_of_b = c->first_of_b;
    kp_diff_open(&c->diff);
    int rc = kp_input_each("diff", paths, first_of_b, NULL, trace_take, c);
    c->side = KP_DIFF_B;
    if (rc == KP_EXIT_DONE) rc = kp_input_each("diff", paths + first_of_b, count - first_of_b, NULL, trace_take, c);
    if (rc == KP_EXIT_DONE) {
        kp_diff_settle(&c->diff);
        c->show.most = (size_t)c->most;
        if (c->json) kp_diff_json(stdout, &c->diff);
        else kp_diff_print(stdout, &c->diff, &c->show);
        rc = verdict_of(c);
    }
    kp_diff_close(&c->diff);
    return rc;
}

int kp_cmd_diff(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "diff", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct diff_command c = {.choice = {.first_step = -1, .last_step = -1},
                             .most = ROWS_DEFAULT,
                             .fail_above = -1,
                             .side = KP_DIFF_A,
                             .first_of_b = -1};
    const int i = kp_opt_flags(&scan, &c, option_take);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (c.first_of_b < 0 && scan.count == 2) c.first_of_b = 1;
    if (c.first_of_b < 0) return kp_cli_misuse("diff", "two paths are needed, or the files of A, --vs, and those of B");
    if (!c.first_of_b || c.first_of_b == scan.count)
        return kp_cli_misuse("diff", "name a file %s --vs", c.first_of_b ? "after" : "before");
    return diff_run(&c, argv, scan.count);
}

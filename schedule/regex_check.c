// SPDX-License-Identifier: Apache-2.0
/*
 * regex_check.c - checks the regular expressions of KPROF_STEP and KPROF_PHASES
 *
 * Called by: settings.c and phases.c (constructor), the CLI
 * Memory:    regcomp tests a pattern with libc's malloc, and frees it.
 */
#include <errno.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "schedule/complain.h"

#include "collector/base/kp_poison.h"

enum { DEPTH_MOST = 32, PARTS_MOST = 2048, TIMES_MOST = 4096, CHOICES_MOST = 6 };

/*
 * The parts that regcomp makes of a group or an atom: parts (characters, brackets), and choices between ways that take
 * no character: ? and its like after a part that may be empty, and further branches that may be.
 */
struct made {
    uint64_t parts, choices;
    bool may_be_empty, has_empty_branch; /* the branch up to here; an earlier branch */
};
struct expansion {
    struct made groups[DEPTH_MOST], last;
    unsigned depth;
};

static void atom_add(struct expansion *e, struct made atom)
{
    struct made *const g = &e->groups[e->depth];
    e->last = atom;
    g->parts += atom.parts;
    g->choices += atom.choices;
    g->may_be_empty = g->may_be_empty && atom.may_be_empty;
}

static void branch_end(struct made *g)
{
    g->choices += g->may_be_empty && g->has_empty_branch;
    g->has_empty_branch = g->has_empty_branch || g->may_be_empty;
    g->may_be_empty = true;
}

/* After * or ?, or + and {}, which copy the atom. */
static void atom_repeat(struct expansion *e, uint64_t times, bool may_be_empty)
{
    struct made *const g = &e->groups[e->depth];
    const uint64_t choices = (e->last.choices + e->last.may_be_empty) * times;
    g->parts += e->last.parts * (times - 1) + may_be_empty;
    g->choices += choices - e->last.choices;
    e->last.parts = e->last.parts * times + may_be_empty;
    e->last.choices = choices;
    e->last.may_be_empty = e->last.may_be_empty || may_be_empty;
}

/* Reads "{2,8}" at *p and stops at its last character; returns 0 where a number is too great. */
static uint64_t times_read(const char **p)
{
    uint64_t n = 0, most = 1;
    for (; (p[0][1] >= '0' && p[0][1] <= '9') || p[0][1] == ','; (*p)++) {
        n = p[0][1] == ',' ? 0 : n * 10 + (uint64_t)(p[0][1] - '0');
        if (n > TIMES_MOST) return 0;
        if (n > most) most = n;
    }
    if (p[0][1] == '}') (*p)++;
    return most;
}

/* The latest end of the bracket expression at `p`: a class within it is not looked into. */
static const char *bracket_end(const char *p)
{
    if (p[1] == '^') p++;
    const char *const end = p[1] ? strchr(p + 2, ']') : NULL;
    return end ? end : p;
}

static const struct made character = {.parts = 1}, anchor = {.parts = 1, .may_be_empty = true};

static bool group_move(struct expansion *e, char c)
{
    if (c == '(') {
        if (++e->depth == DEPTH_MOST) return false;
        e->groups[e->depth] = anchor;
    } else if (e->depth) {
        struct made group = e->groups[e->depth--];
        branch_end(&group);
        group.may_be_empty = group.has_empty_branch;
        group.has_empty_branch = false;
        atom_add(e, group);
    } else atom_add(e, character);
    return true;
}

/* Counts what stands at *p, and stops at its last character. False: too much. */
static bool part_take(struct expansion *e, const char **p)
{
    const char c = **p;
    uint64_t times = c == '+' ? 2 : c == '{' ? times_read(p) : 1;
    if (c == '+' || c == '{' || c == '*' || c == '?') {
        if (times) atom_repeat(e, times, c != '+');
        return times != 0;
    }
    if (c == '(' || c == ')') return group_move(e, c);
    atom_add(e, c == '^' || c == '$' || c == '|' ? anchor : character);
    if (c == '|') branch_end(&e->groups[e->depth]);
    if (c == '\\' && p[0][1]) (*p)++;
    if (c == '[') *p = bracket_end(*p);
    return true;
}

/*
 * libc's regcomp copies the operand of + and {n,m}, nested ones again and again, and then needs memory by the square of
 * the parts and stack by their number: "(.*.*.*){4000}" ends the program, "a++++++++++++++++++++++++" takes all memory.
 * Ways that take no character are looked at one by one: "(a??b??c??d??e??f??g??h??i??j??k??l??)+" takes minutes.
 * The count here is never smaller than libc's. Back-references are refused since matching them may take for ever.
 */
static bool is_cheap(const char *pattern)
{
    struct expansion e = {.groups[0].may_be_empty = true};
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && p[1] >= '1' && p[1] <= '9') return false;
        if (!part_take(&e, &p)) return false;
        if (e.groups[e.depth].parts > PARTS_MOST || e.groups[e.depth].choices > CHOICES_MOST) return false;
    }
    return true;
}

int kp_pattern_check(const char *pattern, char *why, unsigned long why_bytes)
{
    regex_t compiled;
    char phrase[96];
    int rc;
    if (!*pattern) return kp_complain(why, why_bytes, "has no regular expression");
    if (strlen(pattern) > 1000) return kp_complain(why, why_bytes, "has too long a regular expression");
    if (!is_cheap(pattern))
        return kp_complain(why, why_bytes, "has a back-reference or repeats too much (+ and {} nested)");
    rc = regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB);
    if (rc == 0) {
        regfree(&compiled);
        return 0;
    }
    regerror(rc, &compiled, phrase, sizeof phrase);
    kp_fmt(why, why_bytes, "is not a regular expression (%s)", phrase);
    return -EINVAL;
}

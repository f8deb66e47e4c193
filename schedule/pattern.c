// SPDX-License-Identifier: Apache-2.0
/*
 * pattern.c - checks the regular expressions of KPROF_STEP and KPROF_PHASES
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

static int complain(char *why, unsigned long why_bytes, const char *phrase)
{
    kp_fmt(why, why_bytes, "%s", phrase);
    return -EINVAL;
}

enum { DEPTH_MOST = 32, PARTS_MOST = 2048, TIMES_MOST = 4096 };

/* What regcomp makes of a pattern: parts (characters, brackets) in each open group, and of the last atom. */
struct expansion {
    uint64_t parts[DEPTH_MOST], last;
    unsigned depth;
};

static void atom_add(struct expansion *e, uint64_t parts)
{
    e->last = parts;
    e->parts[e->depth] += parts;
}

/* After * or ?. */
static void atom_extend(struct expansion *e)
{
    e->parts[e->depth]++;
    e->last++;
}

static void atom_repeat(struct expansion *e, uint64_t times)
{
    e->parts[e->depth] += e->last * (times - 1);
    e->last *= times;
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

/* Where the bracket expression at `p` ends, at the latest: a class within it is not looked into. */
static const char *bracket_end(const char *p)
{
    if (p[1] == '^') p++;
    const char *const end = p[1] ? strchr(p + 2, ']') : NULL;
    return end ? end : p;
}

static bool group_move(struct expansion *e, char c)
{
    if (c == '(') {
        if (++e->depth == DEPTH_MOST) return false;
        e->parts[e->depth] = 1;
    } else if (e->depth) {
        const uint64_t parts = e->parts[e->depth--];
        atom_add(e, parts);
    } else atom_add(e, 1);
    return true;
}

/* Counts what stands at *p, and stops at its last character. False: too much. */
static bool part_take(struct expansion *e, const char **p)
{
    const char c = **p;
    uint64_t times = c == '+' ? 2 : c == '{' ? times_read(p) : 1;
    if (c == '+' || c == '{') {
        if (times) atom_repeat(e, times);
        return times != 0;
    }
    if (c == '(' || c == ')') return group_move(e, c);
    if (c == '*' || c == '?') atom_extend(e);
    else atom_add(e, 1);
    if (c == '\\' && p[0][1]) (*p)++;
    if (c == '[') *p = bracket_end(*p);
    return true;
}

/*
 * libc's regcomp copies the operand of + and {n,m}, nested ones again and again, and then needs memory by the square of
 * the parts and stack by their number: "(.*.*.*){4000}" ends the program, "a++++++++++++++++++++++++" takes all memory.
 * The count here is never smaller than libc's. Back-references are refused since matching them may take for ever.
 */
static bool is_cheap(const char *pattern)
{
    struct expansion e = {.depth = 0};
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && p[1] >= '1' && p[1] <= '9') return false;
        if (!part_take(&e, &p) || e.parts[e.depth] > PARTS_MOST) return false;
    }
    return true;
}

int kp_pattern_check(const char *pattern, char *why, unsigned long why_bytes)
{
    regex_t compiled;
    char phrase[96];
    int rc;
    if (!*pattern) return complain(why, why_bytes, "has no regular expression");
    if (strlen(pattern) > 1000) return complain(why, why_bytes, "has too long a regular expression");
    if (!is_cheap(pattern))
        return complain(why, why_bytes, "has a back-reference or repeats too much (+ and {} nested)");
    rc = regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB);
    if (rc == 0) {
        regfree(&compiled);
        return 0;
    }
    regerror(rc, &compiled, phrase, sizeof phrase);
    kp_fmt(why, why_bytes, "is not a regular expression (%s)", phrase);
    return -EINVAL;
}

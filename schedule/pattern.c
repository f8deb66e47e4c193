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

/*
 * libc's regcomp copies the operand of + and {n,m}, and nested operands multiply: "a++++++++++++++++++++++++" takes all
 * memory. This product is never smaller than the growth. Back-references are refused since matching them may take
 * for ever.
 */
static bool is_cheap(const char *pattern)
{
    uint64_t copies = 1;
    for (const char *p = pattern; *p && copies <= 4096; p++) {
        uint64_t n = 0, most = 1;
        if (*p == '\\' && p[1] >= '1' && p[1] <= '9') return false;
        if (*p == '+') copies *= 2;
        if (*p != '{') continue;
        for (const char *q = p + 1; (*q >= '0' && *q <= '9') || *q == ','; q++) {
            n = *q == ',' ? 0 : n * 10 + (uint64_t)(*q - '0');
            if (n > 4096) return false;
            if (n >= most) most = n + 1;
        }
        copies *= most;
    }
    return copies <= 4096;
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

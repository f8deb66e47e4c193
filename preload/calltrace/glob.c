// SPDX-License-Identifier: Apache-2.0
/*
 * glob.c - matches names against the globs of KPROF_SYMBOLS
 *
 * Called by: calltrace_source.c, for every name that modules call or define: some hundred thousand in a large program
 * Memory:    about 1 KB of stack
 * Safe in:   anywhere; it is pure
 */
#include <string.h>

#include "collector/base/text/kp_glob.h"
#include "preload/calltrace/calltrace.h"
#include "collector/base/kp_poison.h"

bool kp_globs_match(const char *list, const char *name, uint64_t *used)
{
    char plain[KP_CALLTRACE_NAME_MAX];
    int is_cpp = name[0] == '_' && name[1] == 'Z' ? -1 : 0; /* -1: not demangled yet */
    bool is_match = false;
    unsigned number = 0;
    for (const char *glob = list; *glob;) {
        glob += strspn(glob, ", ");
        const size_t bytes = strcspn(glob, ",");
        size_t n = bytes;
        while (n && glob[n - 1] == ' ') n--;
        bool is = n && kp_glob_matches(glob, n, name);
        if (n && !is && is_cpp) {
            if (is_cpp < 0) is_cpp = kp_calltrace_name(name, plain, sizeof plain);
            is = is_cpp && kp_glob_matches(glob, n, plain);
        }
        if (is && used && number < 64) *used |= UINT64_C(1) << number;
        is_match = is_match || is;
        number += n != 0;
        glob += bytes;
        if (is && !used) break;
    }
    return is_match;
}

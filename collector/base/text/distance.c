// SPDX-License-Identifier: Apache-2.0
/*
 * distance.c - how many letters differ between a word and one that may have been meant
 *
 * Safe in: signal handlers yes; after fork yes (touches nothing but its arguments)
 */
#include <string.h>

#include "collector/base/kp_config.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

unsigned kp_config_distance(const char *a, const char *b)
{
    unsigned rows[3][40]; /* this one and two above it */
    const size_t n = strlen(b), m = strlen(a);
    if (n >= 39 || m >= 39) return 9;
    for (unsigned j = 0; j <= n; j++) rows[0][j] = j;
    for (unsigned i = 1; i <= m; i++) {
        unsigned *const row = rows[i % 3], *const above = rows[(i + 2) % 3], *const top = rows[(i + 1) % 3];
        row[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            row[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < row[j]) row[j] = above[j] + 1;
            if (row[j - 1] + 1 < row[j]) row[j] = row[j - 1] + 1;
            if (is_swap && top[j - 2] + 1 < row[j]) row[j] = top[j - 2] + 1;
        }
    }
    return rows[m % 3][n];
}

bool kp_config_is_nearer(const char *word, const char *name, unsigned *best)
{
    const unsigned far = kp_config_distance(word, name);
    if (far >= *best || far * 2 > strlen(word)) return false;
    if (far > 1 && word[0] != name[0]) return false; /* another word: peak and leaks, nofunc and func */
    *best = far;
    return true;
}

void kp_config_missed(char *out, size_t bytes, const char *glob, const char *near)
{
    kp_fmt(out, bytes, "call:%s never came, or did not end; %s%s%s", glob,
           near ? "did you mean call:" : "kprof doctor --steps names what would count", near ? near : "",
           near ? "?" : "");
}

void kp_config_unmatched(char *out, size_t bytes, bool is_op, const char *regex)
{
    kp_fmt(out, bytes, "%s:%s never came: no %s has such a name; kprof events lists the names", is_op ? "op" : "range",
           regex, is_op ? "op" : "record_function range");
}

const char *kp_config_near(const char *list, const char *word, char *out, size_t bytes)
{
    char name[40];
    unsigned best = 3;
    out[0] = 0;
    for (size_t n; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n >= sizeof name) continue;
        memcpy(name, list, n);
        name[n] = 0;
        if (kp_config_is_nearer(word, name, &best)) kp_fmt(out, bytes, "%s", name);
    }
    return out;
}

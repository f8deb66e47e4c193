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
    unsigned row[40];
    const size_t n = strlen(b);
    if (n >= 39 || strlen(a) >= 39) return 9;
    for (unsigned j = 0; j <= n; j++) row[j] = j;
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned corner = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            const unsigned change = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = row[j] + 1 < change ? row[j] + 1 : change;
            if (row[j - 1] + 1 < row[j]) row[j] = row[j - 1] + 1;
        }
    }
    return row[n];
}

/* Are they the same but for two neighbours that changed places: rnu and run? */
static bool is_swapped(const char *a, const char *b)
{
    while (*a && *a == *b) a++, b++;
    return a[0] && a[1] && a[1] == b[0] && a[0] == b[1] && strcmp(a + 2, b + 2) == 0;
}

bool kp_config_is_nearer(const char *word, const char *name, unsigned *best)
{
    const unsigned far = is_swapped(word, name) ? 1 : kp_config_distance(word, name);
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

// SPDX-License-Identifier: Apache-2.0
/*
 * distance.c - how many letters differ between a word and one that may have been meant
 *
 * Safe in: signal handlers yes; after fork yes (touches nothing but its arguments)
 */
#include <string.h>

#include "collector/base/kp_config.h"
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

// SPDX-License-Identifier: Apache-2.0
/* everynth.c - whether some steps are each Nth one, as where a program does something every N steps */
#include "export/read/facts/steps/everynth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/facts/chance.h"
#include "export/read/store/stringtable.h"

enum { LEAST = 3, CLASS_LEAST = 5, DISTANCE_MOST = 1000 };
#define CLASS_SHARE 0.8  /* of each Nth steps: they are marked */
#define CHANCE_MOST 1e-6 /* each distance and each first step is tried */

long kp_everynth_of(const long *numbers, size_t count, long first, long last)
{
    if (count < LEAST) return 0;
    long least = numbers[0], most = numbers[0], sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < least) least = numbers[i];
        if (numbers[i] > most) most = numbers[i];
    }
    const long between = (long)count - 1, distance = (most - least) / between;
    if (distance < 2 || distance * between != most - least) return 0;
    for (size_t i = 0; i < count; i++) {
        if ((numbers[i] - least) % distance) return 0;
        sum += (numbers[i] - least) / distance;
    }
    if (2 * sum != between * (long)count) return 0; /* a number stands there twice */
    return least - first < 2 * distance && last - most < 2 * distance ? distance : 0;
}

static const char *ending_of(long number)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    const long ones = number % 10;
    return number / 10 % 10 == 1 || ones > 3 ? "th" : endings[ones];
}

char *kp_everynth_text(char *out, size_t bytes, long distance)
{
    if (bytes) *out = 0;
    if (distance) snprintf(out, bytes, ", each %ld%s step", distance, ending_of(distance));
    return out;
}

/* How many steps are each Nth one from one of the first N on, by that; of them the marked. */
struct classes {
    size_t *sizes, *hits, marked, count;
    const long *numbers;
};

static void classes_count(struct classes *c, const bool *marks, size_t distance)
{
    memset(c->sizes, 0, distance * sizeof *c->sizes);
    memset(c->hits, 0, distance * sizeof *c->hits);
    for (size_t i = 0; i < c->count; i++) {
        const size_t of = (size_t)(c->numbers[i] - c->numbers[0]) % distance;
        c->sizes[of]++;
        c->hits[of] += marks[i];
    }
}

/* The chance that so many of a class are marked as of the others. One more of these counts: none is no proof. */
static double class_chance(const struct classes *c, size_t of)
{
    const size_t hits = c->hits[of], size = c->sizes[of];
    if (hits < CLASS_LEAST || (double)hits < CLASS_SHARE * (double)size || size == c->count) return 1;
    return kp_chance_of(hits, size, (double)(c->marked - hits + 1) / (double)(c->count - size + 1));
}

/* The distance and the first step that are least by chance; distance 0: none is no chance. */
static size_t classes_find(struct classes *c, const bool *marks, size_t most, size_t *first)
{
    size_t distance = 0;
    double least = CHANCE_MOST;
    for (size_t n = 2; n <= most && c->marked >= CLASS_LEAST; n++) {
        classes_count(c, marks, n);
        for (size_t of = 0; of < n; of++) {
            const double chance = class_chance(c, of);
            if (chance >= least) continue;
            least = chance;
            distance = n;
            *first = of;
        }
    }
    return distance;
}

bool kp_everynth_mark(const long *numbers, bool *marks, size_t count)
{
    const size_t most = count / CLASS_LEAST + 1 < DISTANCE_MOST ? count / CLASS_LEAST + 1 : DISTANCE_MOST;
    struct classes c = {.count = count, .numbers = numbers};
    size_t first = 0;
    c.sizes = kp_kineto_room(most + 1, sizeof *c.sizes);
    c.hits = kp_kineto_room(most + 1, sizeof *c.hits);
    for (size_t i = 0; i < count; i++) c.marked += marks[i];
    const size_t distance = classes_find(&c, marks, most, &first);
    for (size_t i = 0; i < count; i++) marks[i] = distance && (size_t)(numbers[i] - numbers[0]) % distance == first;
    free(c.sizes);
    free(c.hits);
    return distance;
}

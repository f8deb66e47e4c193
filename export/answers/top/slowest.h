// SPDX-License-Identifier: Apache-2.0
/* slowest.h - what the slowest hundredth of many calls, or steps, has more than the others */
#pragma once

#include "export/answers/top/toprows.h"

struct kp_slowest {
    size_t count, of;  /* so many of all. 0: they are too few, or the slowest last hardly longer */
    double least_ns;   /* the shortest of them */
    double more_ns;    /* what one of them lasts longer than the others, in the mean */
    double no_core_ns; /* of that, their thread waited for a core; 0: or the trace does not tell */
    double place_ns;   /* what one place has of that, of the time with and without a core */
    uint32_t name;     /* string id of the place; 0: time in which nothing runs */
    uint32_t shapes;   /* of what it gets, where they were recorded; or 0 */
    uint32_t line;     /* its own line; or 0 */
    bool is_backward;
};
/* Of the calls that are asked for by name, else of the steps. */
void kp_slowest_find(struct kp_slowest *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
enum { KP_SLOWEST_BYTES = 640 };
/* "6 of 600 calls take 38.4 ms or longer, 37.1 ms more than the others; 35.2 ms of that is aten::addmm, at ..."; ""
 * where nothing is found. Returns `out`. */
char *kp_slowest_text(char *out, size_t bytes, const struct kp_slowest *slowest, const struct kp_kineto *trace,
                      const char *each);

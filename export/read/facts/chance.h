// SPDX-License-Identifier: Apache-2.0
/* chance.h - how likely it is that so many of some hit */
#pragma once

#include <stddef.h>

/* The chance that at least `hits` of `count` fall on what is `share` of all. */
double kp_chance_of(size_t hits, size_t count, double share);

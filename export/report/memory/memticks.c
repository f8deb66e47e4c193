// SPDX-License-Identifier: Apache-2.0
/* memticks.c - round ticks for the axes of the memory drawings */
#include "export/report/memory/memticks.h"

#include <stdio.h>

/* The smallest of 1, 2, 5, 10, ... from `least` on that covers the span with `most` pieces. */
static double apart_find(double span, int most, double least)
{
    static const double factors[] = {2, 2.5, 2};
    double apart = least;
    for (int i = 0; apart * most < span && i < 100; i++) apart *= factors[i % 3];
    return apart;
}

static int decimals_of(double apart)
{
    int n = 0;
    for (; apart < 0.999 && n < 6; n++) apart *= 10;
    return n;
}

static struct kp_ticks_axis axis_make(double from, double to, int most, double least)
{
    struct kp_ticks_axis axis = {.apart = apart_find(to - from, most, least)};
    const double begin = (double)(int64_t)(from / axis.apart) * axis.apart;
    axis.first = begin < from - axis.apart * 1e-9 ? begin + axis.apart : begin;
    axis.count = (int)((to - axis.first) / axis.apart + 1e-9) + 1;
    axis.decimals = decimals_of(axis.apart);
    return axis;
}

struct kp_ticks_axis kp_ticks_bytes(int64_t peak, int most)
{
    static const char *const names[] = {"B", "KB", "MB", "GB", "TB"};
    int64_t unit = 1;
    size_t k = 0;
    for (; k + 1 < sizeof names / sizeof *names && peak / unit >= 1024; k++) unit *= 1024;
    const double top = peak > 0 ? (double)peak / (double)unit : 1;
    struct kp_ticks_axis axis = axis_make(0, top, most, k ? 0.01 : 1);
    if ((axis.count - 1) * axis.apart < top) axis.count++;
    axis.unit = (double)unit;
    axis.name = names[k];
    return axis;
}

struct kp_ticks_axis kp_ticks_time(int64_t from_ns, int64_t to_ns, int most)
{
    const bool is_long = to_ns - from_ns >= INT64_C(10000000000);
    const double unit = is_long ? 1e9 : 1e6;
    struct kp_ticks_axis axis = axis_make((double)from_ns / unit, (double)to_ns / unit, most, 1e-6);
    axis.unit = unit;
    axis.name = is_long ? "s" : "ms";
    return axis;
}

double kp_ticks_at(const struct kp_ticks_axis *axis, int i) { return (axis->first + i * axis->apart) * axis->unit; }

char *kp_ticks_text(char *out, size_t bytes, const struct kp_ticks_axis *axis, int i)
{
    snprintf(out, bytes, "%.*f %s", axis->decimals, axis->first + i * axis->apart, axis->name);
    return out;
}

size_t kp_ticks_every(size_t steps, size_t most)
{
    static const size_t factors[][2] = {{2, 1}, {5, 2}, {2, 1}};
    size_t every = 1;
    for (int i = 0; every * most < steps; i++) every = every * factors[i % 3][0] / factors[i % 3][1];
    return every;
}

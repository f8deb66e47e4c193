// SPDX-License-Identifier: Apache-2.0
/*
 * units.c - prints times, shares, bytes and steps, for torch's own table and for our sentences
 */
#include "export/show/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

char *kp_units_time(char *out, size_t bytes, double us, char unit)
{
    if (unit == 's' || (!unit && us >= 1e6)) snprintf(out, bytes, "%.3fs", us / 1e6);
    else if (unit == 'm' || (!unit && us >= 1e3)) snprintf(out, bytes, "%.3fms", us / 1e3);
    else snprintf(out, bytes, "%.3fus", us);
    return out;
}

char *kp_units_scaled(char *out, size_t bytes, double value, unsigned unit)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    const unsigned first = unit;
    for (; fabs(value) >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++) value /= 1000;
    snprintf(out, bytes, "%.*f %s", unit == first ? 0 : 2, value, units[unit]);
    return out;
}

char *kp_units_span(char *out, size_t bytes, int64_t ns)
{
    const double size = fabs((double)ns), unit = size >= 9.995e8 ? 1e9 : size >= 1e6 || !ns ? 1e6 : 1e3;
    const double value = (double)ns / unit, shown = fabs(value);
    snprintf(out, bytes, "%.*f %s",
             !ns || shown >= 99.95 ? 0
             : shown >= 9.995      ? 1
                                   : 2,
             value,
             unit == 1e9   ? "s"
             : unit == 1e6 ? "ms"
                           : "us");
    return out;
}

const char *kp_units_ms(double ns)
{
    static char texts[4][40];
    static unsigned turn;
    turn = (turn + 1) % 4;
    return kp_units_span(texts[turn], sizeof *texts, (int64_t)llround(ns));
}

char *kp_units_share(char *out, size_t bytes, double us, double total_us)
{
    if (total_us == 0) snprintf(out, bytes, "NaN");
    else snprintf(out, bytes, "%.2f%%", us * 100.0 / total_us);
    return out;
}

char *kp_units_torch_bytes(char *out, size_t bytes, int64_t amount)
{
    static const struct {
        double size;
        const char *name;
    } units[] = {{1024.0 * 1024.0 * 1024.0, "GB"}, {1024.0 * 1024.0, "MB"}, {1024.0, "KB"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (fabs((double)amount) >= units[i].size) {
            snprintf(out, bytes, "%.2f %s", (double)amount / units[i].size, units[i].name);
            return out;
        }
    snprintf(out, bytes, "%" PRId64 " B", amount);
    return out;
}

const char *kp_units_size(int64_t amount)
{
    static char texts[4][32];
    static unsigned turn;
    turn = (turn + 1) % 4;
    return kp_units_bytes(texts[turn], sizeof *texts, amount);
}

char *kp_units_steps(char *out, size_t bytes, long first, long last)
{
    if (first == last) snprintf(out, bytes, "step %ld", first);
    else snprintf(out, bytes, "steps %ld to %ld", first, last);
    return out;
}

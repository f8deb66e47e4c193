// SPDX-License-Identifier: Apache-2.0
/* jsonout.c - writes JSON to a stream: it keeps the commas and the brackets, and makes texts and numbers legal */
#include "export/show/jsonout.h"

#include <inttypes.h>
#include <math.h>

#include "export/show/plain.h"

void kp_jsonout_key(struct kp_jsonout *j, const char *key)
{
    if (j->filled & 1) fputc(',', j->out);
    if (j->is_line) fputc('\n', j->out);
    if (key) kp_plain_json(j->out, key), fputc(':', j->out);
    j->filled |= 1;
    j->is_line = false;
}

void kp_jsonout_open(struct kp_jsonout *j, const char *key, char bracket)
{
    kp_jsonout_key(j, key);
    fputc(bracket, j->out);
    j->filled <<= 1;
}

void kp_jsonout_close(struct kp_jsonout *j, char bracket)
{
    fputc(bracket, j->out);
    j->filled >>= 1;
}

void kp_jsonout_line(struct kp_jsonout *j) { j->is_line = true; }

void kp_jsonout_null(struct kp_jsonout *j, const char *key) { kp_jsonout_text(j, key, NULL); }

void kp_jsonout_text(struct kp_jsonout *j, const char *key, const char *text)
{
    kp_jsonout_key(j, key);
    kp_plain_json(j->out, text);
}

void kp_jsonout_some(struct kp_jsonout *j, const char *key, const char *text)
{
    if (text) kp_jsonout_text(j, key, text);
}

void kp_jsonout_bool(struct kp_jsonout *j, const char *key, bool value)
{
    kp_jsonout_key(j, key);
    fputs(value ? "true" : "false", j->out);
}

void kp_jsonout_whole(struct kp_jsonout *j, const char *key, int64_t value)
{
    kp_jsonout_key(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void kp_jsonout_number(struct kp_jsonout *j, const char *key, double value, int decimals)
{
    kp_jsonout_key(j, key);
    if (isnan(value)) fputs("null", j->out);
    else fprintf(j->out, "%.*f", decimals, value);
}

void kp_jsonout_real(struct kp_jsonout *j, const char *key, double value)
{
    kp_jsonout_key(j, key);
    fprintf(j->out, "%.6g", value);
}

void kp_jsonout_id(struct kp_jsonout *j, const char *key, int64_t id)
{
    kp_jsonout_key(j, key);
    fprintf(j->out, "\"%" PRId64 "\"", id);
}

void kp_jsonout_items(struct kp_jsonout *j, const int64_t *of, size_t count)
{
    for (size_t i = 0; i < count; i++) kp_jsonout_whole(j, NULL, of[i]);
}

void kp_jsonout_wholes(struct kp_jsonout *j, const char *key, const int64_t *of, size_t count)
{
    kp_jsonout_open(j, key, '[');
    kp_jsonout_items(j, of, count);
    kp_jsonout_close(j, ']');
}

void kp_jsonout_unit(struct kp_jsonout *j, const char *key, double value, enum kp_unit unit)
{
    static const struct {
        double times, over;
        int decimals;
    } units[] = {
        [KP_UNIT_COUNT] = {1, 1, 0}, [KP_UNIT_MS] = {1, 1e6, 6},      [KP_UNIT_MS_FIT] = {1, 1e6, 6},
        [KP_UNIT_US] = {1, 1e6, 6},  [KP_UNIT_MIB] = {1, 1, 0},       [KP_UNIT_BYTES] = {1, 1, 0},
        [KP_UNIT_SHARE] = {1, 1, 6}, [KP_UNIT_PERCENT] = {100, 1, 4}, [KP_UNIT_TIMES] = {1, 1, 6},
        [KP_UNIT_TRUE] = {1, 1, 0},
    };
    if (unit == KP_UNIT_TRUE) kp_jsonout_bool(j, key, value > 0);
    else kp_jsonout_number(j, key, value * units[unit].times / units[unit].over, units[unit].decimals);
}

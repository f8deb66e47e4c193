// SPDX-License-Identifier: Apache-2.0
/*
 * schedule_text.c - parses KPROF_SCHEDULE: "wait=1,warmup=1,active=3,repeat=1", "10-12" or "none"
 *
 * Called by: settings.c (constructor), phases.c, the CLI (setting_flags.c)
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "collector/base/kp_log.h"
#include "schedule/complain.h"
#include "schedule/kp_schedule.h"

#include "collector/base/kp_poison.h"

#define NUMBER_MAX UINT64_C(1000000000000000)

/* In the order of struct kp_schedule. */
static const char *const field_names[] = {"skip_first", "wait", "warmup", "active", "repeat", "skip_first_wait"};
enum { FIELDS = sizeof field_names / sizeof *field_names, KEY_BYTES = 20 };

/* The field that a key names, or NULL. */
static uint64_t *field_named(struct kp_schedule *s, const char *key, size_t length)
{
    uint64_t *const fields[FIELDS] = {&s->skip_first, &s->wait,   &s->warmup,
                                      &s->active,     &s->repeat, &s->skip_first_wait};
    for (size_t i = 0; i < FIELDS; i++)
        if (strlen(field_names[i]) == length && memcmp(field_names[i], key, length) == 0) return fields[i];
    return NULL;
}

/* The name that a misspelt key of `length` bytes may mean, or NULL. */
static const char *field_guess(const char *key, size_t length)
{
    char word[KEY_BYTES];
    const char *found = NULL;
    unsigned best = 4;
    if (!length || length >= sizeof word) return NULL;
    memcpy(word, key, length);
    word[length] = 0;
    for (size_t i = 0; i < FIELDS; i++)
        if (kp_config_is_nearer(word, field_names[i], &best)) found = field_names[i];
    return found;
}

/* Takes the digits at *p. False: none, or NUMBER_MAX or more. */
static bool number_take(const char **p, uint64_t *out)
{
    const char *const from = *p;
    uint64_t n = 0;
    for (; **p >= '0' && **p <= '9'; ++*p) {
        n = n * 10 + (uint64_t)(**p - '0');
        if (n >= NUMBER_MAX) return false;
    }
    *out = n;
    return *p > from;
}

#define WRITTEN "10-12 or wait=1,warmup=1,active=3,repeat=1"

static int complain(char *why, unsigned long why_bytes, const char *what, const char *at)
{
    return kp_complain_at(why, why_bytes, what, at, ",", WRITTEN);
}

static int unknown_complain(char *why, unsigned long why_bytes, const char *at)
{
    const char *const guess = field_guess(at, strcspn(at, "=,"));
    char written[96];
    kp_fmt(written, sizeof written, "%s%s%s%s", WRITTEN, guess ? "; did you mean " : "", guess ? guess : "",
           guess ? "?" : "");
    return kp_complain_at(why, why_bytes, "has an unknown part", at, ",", written);
}

/*
 * Steps "10-12", the first is 0: these once, after a step of warm-up. False: it is no such text. With `wrong`, it is
 * one that cannot be.
 */
static bool range_parse(const char *text, struct kp_schedule *s, const char **wrong)
{
    uint64_t first, last;
    if (!number_take(&text, &first)) return false;
    if (!*text) *wrong = "needs the last step as well (10-10 is step 10 alone):";
    if (*text++ != '-' || !number_take(&text, &last) || (*text && *text != ',')) return false;
    if (*text) *wrong = "has more than steps, which must be alone:";
    if (last < first) *wrong = "has a last step before the first:";
    if (*wrong) return false;
    s->warmup = first > 0;
    s->skip_first = first - s->warmup;
    s->active = last - first + 1;
    s->repeat = 1;
    return true;
}

int kp_schedule_parse(const char *text, struct kp_schedule *out, char *why, unsigned long why_bytes)
{
    struct kp_schedule s = {.set = true};
    unsigned seen = 0;
    const char *wrong = NULL;
    if (strcmp(text, "none") == 0 || range_parse(text, &s, &wrong)) {
        *out = s;
        return 0;
    }
    if (wrong) return complain(why, why_bytes, wrong, text);
    for (const char *p = text; *p;) {
        const char *const from = p;
        const size_t length = strcspn(p, "=,");
        uint64_t *const field = field_named(&s, p, length);
        if (!field) return unknown_complain(why, why_bytes, from);
        if (seen & 1u << (field - &s.skip_first)) return complain(why, why_bytes, "says twice", from);
        seen |= 1u << (field - &s.skip_first);
        p += length;
        if (*p++ != '=' || !number_take(&p, field))
            return complain(why, why_bytes, "needs a whole number below 10^15 in", from);
        if (*p && *p != ',') return complain(why, why_bytes, "needs a comma behind the number in", from);
        if (*p == ',' && !*++p) return complain(why, why_bytes, "ends with a comma after", from);
    }
    if (!s.active) {
        kp_fmt(why, why_bytes, "needs active=N with N at least 1");
        return -EINVAL;
    }
    *out = s;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * settings.c - parses KPROF_STEP, and takes schedule, steps and phases from the configuration
 *
 * Called by: boot.c (constructor), the CLI
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/kp_log.h"
#include "schedule/complain.h"
#include "schedule/kp_schedule.h"

#include "collector/base/kp_poison.h"

/* Parses "250ms" to ns. */
static bool period_parse(const char *text, uint64_t *out_ns)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}};
    const char *p = text;
    const uint64_t n = kp_digits_read(&p);
    if (!n || p - text > 9) return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(p, units[i].unit) == 0) {
            *out_ns = n * units[i].ns;
            return true;
        }
    return false;
}

/* "module:qualified.name", either with * and ?. */
static int call_check(const char *glob, char *why, unsigned long why_bytes)
{
    const char *const colon = strchr(glob, ':');
    if (!colon || colon == glob || !colon[1] || strchr(colon + 1, ':'))
        return kp_complain(why, why_bytes,
                           "needs MODULE:FUNCTION, such as call:mymodel:serve_one or call:*:CLASS.forward");
    if (strlen(glob) > 1000) return kp_complain(why, why_bytes, "has too long a name");
    return 0;
}

int kp_step_rule_parse(const char *text, struct kp_step_rule *out, char *why, unsigned long why_bytes)
{
    static const struct {
        const char *begin; /* a row that ends in a colon has a pattern or a time behind it */
        int kind;
    } rows[] = {
        {"auto", KP_RULE_AUTO}, {"optimizer", KP_RULE_OPTIMIZER}, {"api", KP_RULE_API},   {"range:", KP_RULE_RANGE},
        {"op:", KP_RULE_OP},    {"call:", KP_RULE_CALL},          {"time:", KP_RULE_TIME}};
    const size_t bytes = text[strcspn(text, ":")] ? strcspn(text, ":") + 1 : strlen(text) + 1; /* with its NUL */
    size_t at = 0;
    while (at < sizeof rows / sizeof *rows && strncmp(text, rows[at].begin, bytes) != 0) at++;
    if (at == sizeof rows / sizeof *rows)
        return kp_complain(why, why_bytes,
                           "is none of auto, optimizer, api, range:REGEX, op:REGEX, call:GLOB, time:250ms");
    struct kp_step_rule rule = {.kind = rows[at].kind};
    if (rule.kind == KP_RULE_TIME && !period_parse(text + bytes, &rule.period_ns))
        return kp_complain(why, why_bytes, "needs a time such as 250ms, 2s or 1m");
    if (rule.kind == KP_RULE_TIME && rule.period_ns < 1000000)
        return kp_complain(why, why_bytes, "asks for steps shorter than 1ms");
    if (text[bytes - 1] && rule.kind != KP_RULE_TIME) rule.pattern = text + bytes;
    if (rule.kind == KP_RULE_CALL && call_check(rule.pattern, why, why_bytes) < 0) return -EINVAL;
    if (rule.pattern && rule.kind != KP_RULE_CALL && kp_pattern_check(rule.pattern, why, why_bytes) < 0) return -EINVAL;
    *out = rule;
    return 0;
}

/* A phase that KPROF_PHASES does not name records nothing, and so does the time outside of phases. */
static void phases_from_config(struct kp_config *config, struct kp_schedule *outside)
{
    struct kp_phases phases = {.count = 0};
    char why[200];
    if (config->phases && kp_phases_parse(config->phases, &phases, why, sizeof why) < 0)
        kp_config_refuse(config, KP_SET_phases, why, "no phases");
    if (phases.count) outside->set = true;
    kp_phases_init(&phases);
}

void kp_schedule_from_config(struct kp_config *config, struct kp_schedule *schedule, struct kp_step_rule *rule)
{
    char why[200];
    memset(schedule, 0, sizeof *schedule);
    memset(rule, 0, sizeof *rule);
    if (config->schedule && kp_schedule_parse(config->schedule, schedule, why, sizeof why) < 0)
        kp_config_refuse(config, KP_SET_schedule, why, "recording everything from start to exit");
    phases_from_config(config, schedule);
    if (kp_step_rule_parse(config->step, rule, why, sizeof why) < 0)
        kp_config_refuse(config, KP_SET_step, why, "using auto");
}

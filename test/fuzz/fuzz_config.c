// SPDX-License-Identifier: Apache-2.0
/* fuzz_config.c - what a user can put into the environment: any bytes into the settings, the JSON check, schedule and
 * step rule */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "collector/base/text/kp_jsonread.h"
#include "schedule/kp_schedule.h"

static void demand(int truth)
{
    if (!truth) abort();
}

/* Lines of the input become the environment; the first character of a line picks the variable. */
static void settings_fuzz(char *text)
{
    static struct kp_config config;
    static char copies[32][600], big[65536];
    char *env[33], *save, *line;
    struct kp_schedule schedule;
    struct kp_step_rule rule;
    size_t n = 0, length;
    for (line = strtok_r(text, "\n", &save); line && n < 32; line = strtok_r(NULL, "\n", &save)) {
        const char *const name = kp_config_rows[(unsigned char)line[0] % KP_SET_COUNT].name;
        if (line[0] == 'K') snprintf(copies[n], sizeof copies[0], "%s", line);
        else snprintf(copies[n], sizeof copies[0], "%s=%s", name, line + 1);
        env[n] = copies[n];
        n++;
    }
    env[n] = NULL;
    demand(kp_config_read_as(&config, env, false) >= 0);
    kp_schedule_from_config(&config, &schedule, &rule);
    demand(config.lines_used <= sizeof config.lines && config.store_used <= sizeof config.store);
    demand(config.dir && config.step && config.max_mb >= 1 && config.exports);
    length = kp_config_text(&config, big, sizeof big);
    demand(length < sizeof big && strlen(big) == length);
    if (schedule.set && !schedule.active) demand(kp_schedule_action(&schedule, 0) == KP_ACTION_NONE);
    if (schedule.set && schedule.active)
        demand(kp_schedule_action(&schedule, kp_schedule_steps_needed(&schedule) - 1) == KP_ACTION_RECORD_AND_SAVE);
}

/* What is accepted stays accepted with white space around it, and no part of it may be read past its end. */
static void json_fuzz(const uint8_t *data, size_t size)
{
    size_t offset = 0;
    const char *why = NULL;
    char *const copy = malloc(size + 2);
    int rc = kp_jsonread_check((const char *)data, size, &offset, &why);
    demand(rc == 0 || (why && offset <= size));
    copy[0] = ' ';
    memcpy(copy + 1, data, size);
    copy[size + 1] = '\n';
    demand(rc != 0 || kp_jsonread_check(copy, size + 2, &offset, &why) == 0);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = malloc(size + 1);
    struct kp_step_rule rule;
    char why[64];
    json_fuzz(data, size);
    memcpy(text, data, size);
    text[size] = 0;
    if (size < 200) kp_step_rule_parse(text, &rule, why, sizeof why);
    settings_fuzz(text);
    free(text);
    return 0;
}

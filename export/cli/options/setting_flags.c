// SPDX-License-Identifier: Apache-2.0
/* setting_flags.c - flags made from config.def: KPROF_RECORD_SHAPES is --record-shapes */
#include "export/cli/options/setting_flags.h"

#include <string.h>
#include <unistd.h>

#include "schedule/kp_schedule.h"
#include "schedule/trigger.h"

const struct kp_opt *kp_setting_flags(void)
{
    static struct kp_opt table[KP_SET_COUNT + 1];
    static char names[KP_SET_COUNT][32];
    for (int i = 0; i < KP_SET_COUNT; i++) {
        const struct kp_config_row *const row = &kp_config_rows[i];
        kp_opt_name_of(row->name, names[i], sizeof names[0]);
        table[i] = (struct kp_opt){names[i],
                                   i == KP_SET_dir ? 'o' : 0,
                                   row->type == KP_TYPE_BOOL ? KP_OPT_SWITCH : KP_OPT_VALUE,
                                   row->meta,
                                   row->doc,
                                   0};
    }
    table[KP_SET_with_stack].kind = KP_OPT_MAYBE;
    table[KP_SET_with_stack].meta = "ops,native,1,0";
    return table;
}

struct kp_config *kp_setting_flags_read(void)
{
    static struct kp_config config;
    struct kp_schedule schedule;
    struct kp_step_rule rule;
    kp_config_read_as(&config, environ, false);
    kp_schedule_from_config(&config, &schedule, &rule);
    return &config;
}

const char *kp_setting_flags_set(struct kp_config *config, enum kp_config_index index, const char *value)
{
    struct kp_schedule schedule;
    struct kp_step_rule rule;
    struct kp_phases phases;
    struct kp_trigger trigger;
    static char why[200];
    const size_t before = config->lines_used;
    int rc = 0;
    if (!*value) return "needs a value";
    if (!kp_config_set(config, index, value)) {
        char *const line = config->lines + before, *const tail = strstr(line, ", using "),
                    *const text = strchr(line, '=');
        if (tail) *tail = 0; /* cuts the default off: the command stops instead */
        return text ? text + 1 : line;
    }
    if (index == KP_SET_schedule) rc = kp_schedule_parse(value, &schedule, why, sizeof why);
    if (index == KP_SET_phases) rc = kp_phases_parse(value, &phases, why, sizeof why);
    if (index == KP_SET_step) rc = kp_step_rule_parse(value, &rule, why, sizeof why);
    if (index == KP_SET_trigger) rc = kp_trigger_parse(value, &trigger, why, sizeof why);
    return rc < 0 ? why : NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* cmd_config.c - kprof config: every setting, its value and where that came from */
#include <stdio.h>
#include <string.h>

#include "export/cli/cli.h"
#include "export/cli/options/setting_flags.h"

enum { MARKDOWN, SCDOC, NAMES, JSON };
static const struct kp_opt flags[] = {
    [MARKDOWN] = {"markdown", 0, KP_OPT_FLAG, NULL, "the rows of docs/reference/settings.md", 0},
    [SCDOC] = {"scdoc", 0, KP_OPT_FLAG, NULL, "the section of libkprof(7)", 0},
    [NAMES] = {"names", 0, KP_OPT_FLAG, NULL, "only the flags of `kprof run`, one a line", 0},
    [JSON] = {"json", 0, KP_OPT_FLAG, NULL, "all of it as one JSON object", 0},
    {0}};

static const char *source_of(const struct kp_config *config, int index)
{
    const uint64_t bit = KP_SET_BIT(index);
    return config->refused & bit ? "refused" : config->from_env & bit ? "environment" : "default";
}

struct setting {
    const struct kp_config *config;
    int index;
};

static const char *value_of(const struct setting *r, char *room, size_t bytes)
{
    kp_config_value(r->config, (enum kp_config_index)r->index, room, bytes);
    return room;
}

static const char *text_or_none(const char *text) { return *text ? text : NULL; }

#define DESCRIBED kp_config_rows[r->index]
/* clang-format off */
#define SETTING(F, IF) \
    F(TEXT, name, DESCRIBED.name) \
    F(OTHER, flag, (KP_TYPE("string"), flag_put, r)) \
    F(MAYBE, value, text_or_none(value_of(r, room, sizeof room))) \
    F(WORD, source, (source_of(r->config, r->index), "refused|environment|default")) \
    F(MAYBE, default, text_or_none(DESCRIBED.fallback)) \
    F(MAYBE, values, text_or_none(DESCRIBED.values)) \
    F(MAYBE, what, text_or_none(DESCRIBED.doc))

static void flag_put(struct kp_jsonout *j, const char *key, const struct setting *r)
{
    char flag[80];
    snprintf(flag, sizeof flag, "--%s", kp_setting_flags()[r->index].name);
    kp_jsonout_text(j, key, flag);
}
KP_FIELDS(setting, struct setting, SETTING)

static void problems_put(struct kp_jsonout *j, const char *key, const struct kp_config *config)
{
    kp_jsonout_open(j, key, '[');
    for (size_t at = 0; at < config->lines_used; at += strlen(config->lines + at) + 1)
        kp_jsonout_text(j, NULL, config->lines + at);
    kp_jsonout_close(j, ']');
}

/* A setting that has no value is null. "refused": the environment's value is bad, and the default holds. */
#define CONFIG(F, IF) \
    F(VERSION, schema, 1) \
    F(LINES, settings, (setting, KP_SET_COUNT, &(struct setting){r, (int)i})) \
    F(LINE, , ) \
    F(OTHER, problems, (KP_TYPE_ARRAY(KP_TYPE("string")), problems_put, r))
KP_FIELDS(config, struct kp_config, CONFIG)
/* clang-format on */

const struct kp_fields *const kp_config_schema = &config_fields;

static void table_print(const struct kp_config *config)
{
    char value[512];
    printf("%-22s %-28s %s\n", "setting", "value", "source");
    for (int i = 0; i < KP_SET_COUNT; i++) {
        const uint64_t bit = KP_SET_BIT(i);
        kp_config_value(config, (enum kp_config_index)i, value, sizeof value);
        printf("%-22s %-28s %s\n", kp_config_rows[i].name, value[0] ? value : "-",
               config->refused & bit    ? "default (the environment's value is bad)"
               : config->from_env & bit ? "environment"
                                        : "default");
    }
}

/* A text with the characters escaped that mean something in the format. */
static void escaped_print(const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text)) putchar('\\');
        putchar(*text);
    }
}

static void markdown_print(void)
{
    printf("| variable | flag of `kprof run` | values | default | torch.profiler's name | what it does "
           "|\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < KP_SET_COUNT; i++) {
        const struct kp_config_row *const row = &kp_config_rows[i];
        const struct kp_opt *const flag = &kp_setting_flags()[i];
        printf("| `%s` | `%s--%s` | ", row->name, flag->letter ? "-o`, `" : "", flag->name);
        escaped_print(row->values, "|");
        printf(" | %s | %s | ", row->fallback[0] ? row->fallback : "not set", row->torch);
        escaped_print(row->doc, "|");
        printf(" |\n");
    }
}

static void scdoc_print(void)
{
    for (int i = 0; i < KP_SET_COUNT; i++) {
        const struct kp_config_row *const row = &kp_config_rows[i];
        printf("*%s*=", row->name);
        escaped_print(row->values, "_*");
        printf(" (default: %s)++\n", row->fallback[0] ? row->fallback : "not set");
        escaped_print(row->doc, "_*");
        printf("\n\n");
    }
}

int kp_cmd_config(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "config", .table = flags, .argc = argc, .argv = argv, .at = 1};
    const struct kp_config *config;
    const char *value;
    bool is_json = false;
    const int id = kp_opt_next(&scan, &value);
    switch (id) {
    case KP_OPT_END: break;
    case MARKDOWN: return markdown_print(), KP_EXIT_DONE;
    case SCDOC: return scdoc_print(), KP_EXIT_DONE;
    case NAMES:
        for (int i = 0; i < KP_SET_COUNT; i++) printf("--%s\n", kp_setting_flags()[i].name);
        return KP_EXIT_DONE;
    case JSON:
        is_json = true;
        if (scan.at < argc) return kp_cli_misuse("config", "'%s' is one word too many", argv[scan.at]);
        break;
    case KP_OPT_ARGUMENT: return kp_cli_misuse("config", "'%s' is one word too many", value);
    default: return kp_opt_ended(&scan, id);
    }
    config = kp_setting_flags_read();
    if (is_json) kp_fields_line(stdout, &config_fields, config);
    else table_print(config);
    fflush(stdout);
    for (size_t at = 0; at < config->lines_used; at += strlen(config->lines + at) + 1)
        fprintf(stderr, "kprof: %s\n", config->lines + at);
    return config->complaints ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
}

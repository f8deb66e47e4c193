// SPDX-License-Identifier: Apache-2.0
/* helppage.c - a command's help as a page of docs/reference/commands, of the rows that kp_cli_help prints */
#include <stdio.h>
#include <string.h>

#include "export/cli/cli.h"

static bool is_wanted;

void kp_help_page_want(void) { is_wanted = true; }
bool kp_help_page_is_wanted(void) { return is_wanted; }

/* A bar would end the cell of a table. */
static void cell_print(const char *text)
{
    for (; *text; text++) printf(*text == '|' ? "\\|" : "%c", *text);
}

const struct kp_opt *kp_opt_schema(const struct kp_opt *row)
{
    static const struct kp_opt schema = {
        "json-schema", 0, KP_OPT_FLAG, NULL, "print the JSON Schema of what --json prints", 0};
    return strcmp(row->name, "json") == 0 ? &schema : NULL;
}

static void flag_print(const struct kp_opt *option)
{
    printf("| `");
    if (option->letter) printf("-%c, ", option->letter);
    printf("--%s%s", option->kind == KP_OPT_SWITCH ? "[no-]" : "", option->name);
    if (option->kind == KP_OPT_MAYBE || option->kind == KP_OPT_VALUE) {
        printf(option->kind == KP_OPT_MAYBE ? " [" : " ");
        cell_print(option->meta ? option->meta : "VALUE");
        if (option->kind == KP_OPT_MAYBE) putchar(']');
    }
    printf("` | ");
    cell_print(option->help);
    printf(" |\n");
}

void kp_help_examples(const char *command, const char *title, const char *indent)
{
    static const char *const rows[][2] = {
#define KP_EXAMPLES(name, lines) {#name, lines},
#include "export/cli/options/examples.def"
#undef KP_EXAMPLES
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i][0], command) != 0) continue;
        printf("\n%s\n", title);
        for (const char *line = rows[i][1]; *line; line += line[0] == '\n') {
            const size_t bytes = strcspn(line, "\n");
            printf("%s%.*s\n", indent, (int)bytes, line);
            line += bytes;
        }
    }
}

int kp_help_page(const char *command, const struct kp_opt *table)
{
#define KP_COMMAND(name, arguments, summary) \
    if (strcmp(command, #name) == 0)         \
        printf("# kprof %s\n\n`kprof %s` %s.\n\n    kprof %s %s\n\n", command, command, summary, command, arguments);
#include "export/cli/commands.def"
#undef KP_COMMAND
    if (table->name) printf("| flag | meaning |\n|---|---|\n");
    for (; table->name; table++) {
        flag_print(table);
        if (kp_opt_schema(table)) flag_print(kp_opt_schema(table));
    }
    kp_help_examples(command, "## Examples\n", "    ");
    return KP_EXIT_DONE;
}

// SPDX-License-Identifier: Apache-2.0
/* cli.h - what the commands of kprof share: the table of commands, options, the way to libkprof.so */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "export/read/files/progress.h"
#include "export/show/fields.h"
#include "export/show/say.h"

/* The commands, argv[0] is the command's own name; each answers --help itself. */
#define KP_COMMAND(name, arguments, summary) int kp_cmd_##name(int argc, char **argv);
#include "export/cli/commands.def"
#undef KP_COMMAND

/* Options. A table ends with a row without a name. */
enum kp_opt_kind {
    KP_OPT_FLAG,
    KP_OPT_VALUE,
    KP_OPT_SWITCH, /* --x is 1, --no-x is 0, --x=VALUE */
    KP_OPT_MAYBE,  /* `meta` lists the values; --x alone is the first of them */
};
struct kp_opt {
    const char *name; /* long name without dashes */
    char letter;      /* 0: none */
    enum kp_opt_kind kind;
    const char *meta; /* the value's name in the help */
    const char *help;
    size_t into; /* KP_OPT_INTO: kp_opt_flags keeps the value there; 0: the command takes it */
};
/* A member of the command's struct: a bool of a flag and a switch, else a text. */
#define KP_OPT_INTO(type, member) (offsetof(type, member) + 1)
enum { KP_OPT_ALONE = 1 }; /* that value in place of a struct */
/* The rows of kp_lines_options, at the end of the table of a command that shows frames. */
/* clang-format off */
#define KP_LINES_OPTIONS(when, lines, debug_path) \
    {"lines", 0, KP_OPT_SWITCH, NULL, "frames of machine code with inlined functions and source lines (" when ")", \
     lines}, \
    {"debuginfo-path", 0, KP_OPT_VALUE, "PATH", \
     "where debug files are looked for, as eu-addr2line has it (default: :.debug:/usr/lib/debug)", debug_path}
/* clang-format on */
/* Or the index in the table: an enum of its rows stands beside it. */
enum { KP_OPT_END = -1, KP_OPT_ARGUMENT = -2, KP_OPT_BAD = -3, KP_OPT_HELP = -4 };
struct kp_opt_scan {
    const char *command;
    const struct kp_opt *table;
    int argc, at; /* at: index of the next word */
    char **argv;
    int count;             /* arguments that kp_opt_flags put to the front of argv */
    bool no_more;          /* after -- */
    bool stop_at_argument; /* the first argument ends the options (kprof run) */
    char alone[16];        /* the value of a KP_OPT_MAYBE without one */
};
/* Next option, or argument (*value). On KP_OPT_BAD the message is out already. */
int kp_opt_next(struct kp_opt_scan *scan, const char **value);
/* Takes a flag that no member keeps. Not 0: the value is bad, the message is out. */
typedef int (*kp_opt_take_fn)(void *command, const struct kp_opt_scan *scan, int id, const char *value);
/* All options. The words of arguments go to the front of argv, which was read already. Returns KP_OPT_END, KP_OPT_BAD
 * or KP_OPT_HELP. take: NULL where members keep all. */
int kp_opt_flags(struct kp_opt_scan *scan, void *command, kp_opt_take_fn take);
/* How a command ends for which kp_opt_flags returned KP_OPT_BAD or KP_OPT_HELP, which it answers. */
int kp_opt_ended(const struct kp_opt_scan *scan, int id);
/* Reads a whole number that is not less than `least`. False: text is something else. */
bool kp_opt_number(const char *text, long least, long *out);
/* Reads steps, A or A-B, into *first and *last. Returns 0, or KP_EXIT_USAGE with a message. */
int kp_opt_steps(const char *command, const char *text, long *first, long *last);
/* all: also first and last -1 */
int kp_opt_steps_or_all(const char *command, const char *text, long *first, long *last, bool *all);
/* Reads microseconds into *ns. Returns as above. */
int kp_opt_time(const char *command, const char *flag, const char *text, int64_t *ns, bool *has);
/* Returns as above where --from and --to were both given and --to is the earlier one. */
int kp_opt_times_check(const char *command, bool are_both, int64_t from_ns, int64_t to_ns);
/* Prints "usage: kprof NAME ..." and each option on stdout, on a terminal through a pager. It prints nothing for a
 * command that is asked for its schema. Returns KP_EXIT_DONE. */
int kp_cli_help(const char *command, const struct kp_opt *table);
void kp_cli_help_short(void); /* from now on help has one line a flag */
/* From here on kp_cli_help prints a page of docs/reference/commands (`kprof help --markdown COMMAND`). */
void kp_help_page_want(void);
bool kp_help_page_is_wanted(void);
int kp_help_page(const char *command, const struct kp_opt *table);
void kp_help_examples(const char *command, const char *title, const char *indent); /* of examples.def */
/* The row of --json-schema, behind --json in the help of a command that has it; NULL: another row. */
const struct kp_opt *kp_opt_schema(const struct kp_opt *row);
bool kp_cli_wants_schema(void); /* the command was asked for the schema of its JSON alone */
/* Flag of a variable: KPROF_RECORD_SHAPES -> record-shapes, KPROF -> kprof. */
void kp_opt_name_of(const char *variable, char *out, size_t size);

/* Finds libkprof.so: KPROF_LIB, beside this program, ../lib. False: not found, and `out` has the places searched. */
bool kp_cli_library(char *out, size_t size);
int kp_cli_version(void); /* prints versions, commit and build id; the exit code */

/* The parts that a trace lacks, in the words of all commands. */
#define KP_NEED_GPU "no work of a GPU in it"
#define KP_NEED_MEMORY "no memory in it; record with --profile-memory"

/* schema.c: the JSON Schema of what a command prints with --json */
void kp_cli_schema(const char *command); /* prints it */
/* For commands that have no header. */
extern const struct kp_fields *const kp_config_schema;
extern const struct kp_fields *const kp_ctl_status_schema, *const kp_ctl_where_schema;
extern const struct kp_fields *const kp_ctl_done_schema, *const kp_ctl_error_schema;
extern const struct kp_fields *const kp_doctor_schema, *const kp_events_schema, *const kp_path_schema;
extern const struct kp_fields *const kp_recovered_schema, *const kp_stacks_schema;

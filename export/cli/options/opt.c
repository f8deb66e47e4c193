// SPDX-License-Identifier: Apache-2.0
/* opt.c - parses command line options, and writes messages about wrong options */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "export/cli/cli.h"
#include "export/cli/options/setting_flags.h"
#include "export/read/parse/kineto_parse.h"
#include "export/show/terminal.h"

void kp_opt_name_of(const char *variable, char *out, size_t size)
{
    const char *from = strncmp(variable, "KPROF_", 6) == 0 ? variable + 6 : variable;
    size_t n = 0;
    for (; from[n] && n + 1 < size; n++) out[n] = from[n] == '_' ? '-' : (char)tolower((unsigned char)from[n]);
    out[n] = 0;
}

/* Prints a command's arguments and summary from commands.def. */
static void usage_print(const char *command)
{
    static const char *const rows[][3] = {
#define KP_COMMAND(name, arguments, summary) {#name, arguments, summary},
#include "export/cli/commands.def"
#undef KP_COMMAND
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i][0], command) == 0)
            printf("usage: kprof %s%s%s\n%s\n\n", rows[i][0], *rows[i][1] ? " " : "", rows[i][1], rows[i][2]);
}

static bool is_short;

void kp_cli_help_short(void) { is_short = true; }

/* Prints the text of a flag: all of it, or what stands before the first mark that ends a thought. */
static void text_print(const char *left, const char *help)
{
    static const char *const ends[] = {"; ", ". ", " ("};
    size_t bytes = strlen(help);
    for (size_t i = 0; is_short && i < sizeof ends / sizeof *ends; i++) {
        const char *const end = strstr(help, ends[i]);
        if (end && end > help && (size_t)(end - help) < bytes) bytes = (size_t)(end - help);
    }
    printf("  %-32s %.*s\n", left, (int)bytes, help);
}

static bool wants_schema; /* --json-schema was given */

static void option_print(const struct kp_opt *option)
{
    char left[64], letter[8] = "    ";
    const char *const meta = option->meta ? option->meta : "VALUE";
    if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    if (option->kind == KP_OPT_MAYBE) snprintf(left, sizeof left, "%s--%s [%s]", letter, option->name, meta);
    else if (option->kind == KP_OPT_VALUE) snprintf(left, sizeof left, "%s--%s %s", letter, option->name, meta);
    else snprintf(left, sizeof left, "%s--%s%s", letter, option->kind == KP_OPT_SWITCH ? "[no-]" : "", option->name);
    text_print(left, option->help);
}

bool kp_cli_wants_schema(void) { return wants_schema; }

int kp_cli_help(const char *command, const struct kp_opt *table)
{
    if (wants_schema) return KP_EXIT_DONE;
    if (kp_help_page_is_wanted()) return kp_help_page(command, table);
    kp_terminal_page();
    usage_print(command);
    for (; table->name; table++) {
        option_print(table);
        if (kp_opt_schema(table)) option_print(kp_opt_schema(table));
    }
    kp_help_examples(command, "examples:", "  ");
    if (is_short) printf("\nEach flag in full: kprof %s --help\n", command);
    return KP_EXIT_DONE;
}

static bool is_word(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

/* A command that takes -o takes both long names that other programs have for it. */
static int option_find(const struct kp_opt *table, const char *name, size_t length)
{
    const bool is_out = is_word("out", name, length) || is_word("output", name, length);
    for (int i = 0; table[i].name; i++)
        if (is_word(table[i].name, name, length) || (is_out && table[i].letter == 'o')) return i;
    return KP_OPT_BAD;
}

/* "memory" of profile-memory, and of memory. */
static const char *last_part(const char *name)
{
    const char *const dash = strrchr(name, '-');
    return dash ? dash + 1 : name;
}

/* "stacks" for stack, and "shape" for shapes. */
static bool is_same_but_s(const char *a, const char *b)
{
    const size_t m = strlen(a), n = strlen(b), less = m < n ? m : n;
    const char *const rest = m < n ? b + less : a + less;
    return memcmp(a, b, less) == 0 && (!rest[0] || (rest[0] == 's' && !rest[1]));
}

/*
 * Returns the flag that a misspelt word may mean: the nearest one, one that begins with it, or one that ends as it does
 * (--memory or --record-memory for --profile-memory). KP_OPT_BAD: none.
 */
static int option_guess(const struct kp_opt *table, const char *word)
{
    const size_t length = strlen(word);
    unsigned best = 4;
    int found = KP_OPT_BAD;
    for (int i = 0; table[i].name; i++)
        if (kp_config_is_nearer(word, table[i].name, &best)) found = i;
    for (int i = 0; found < 0 && length >= 2 && table[i].name; i++)
        if (strncmp(table[i].name, word, length) == 0) found = i;
    for (int i = 0; found < 0 && length >= 4 && strncmp(word, "no-", 3) != 0 && table[i].name; i++)
        if (is_same_but_s(last_part(table[i].name), last_part(word))) found = i;
    return found;
}

/* The setting that a word is a flag of; false: of none. */
static bool setting_guess(const char *word, char *found, size_t bytes)
{
    unsigned best = 4;
    found[0] = 0;
    for (int i = 0; i < KP_SET_COUNT; i++) {
        char name[32];
        kp_opt_name_of(kp_config_rows[i].name, name, sizeof name);
        if (kp_config_is_nearer(word, name, &best)) snprintf(found, bytes, "%s", name);
    }
    return found[0] != 0;
}

/* The commands beside kprof run that have a flag; NULL: it is none of several commands. */
static const char *others_with(const char *name)
{
    static const struct {
        const char *name, *commands;
    } rows[] = {{"step", "report, html, diff, events, stacks, memory and slice"},
                {"within", "report, diff and slice"},
                {"from", "report, events and slice"},
                {"to", "report, events and slice"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0) return rows[i].commands;
    return NULL;
}

/* A letter with two dashes, or a flag of other commands. */
static void elsewhere_tell(const struct kp_opt_scan *scan, const char *name)
{
    char setting[32];
    const char *const others = others_with(name);
    for (int i = 0; name[0] && !name[1] && scan->table[i].name; i++) {
        if (scan->table[i].letter != name[0]) continue;
        kp_cli_misuse(scan->command, "unknown flag --%s, did you mean -%s", name, name);
        return;
    }
    if (others) kp_cli_misuse(scan->command, "unknown flag --%s: kprof %s have it", name, others);
    else if (!setting_guess(name, setting, sizeof setting)) kp_cli_misuse(scan->command, "unknown flag --%s", name);
    else kp_cli_misuse(scan->command, "unknown flag --%s: --%s is a flag of kprof run, which records", name, setting);
}

static int unknown_tell(const struct kp_opt_scan *scan, const char *word, size_t length)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word);
    const bool is_no = strncmp(name, "no-", 3) == 0;
    int near = option_guess(scan->table, name);
    const char *no = "";
    if (near < 0 && is_no) {
        near = option_guess(scan->table, name + 3);
        no = near >= 0 && scan->table[near].kind == KP_OPT_SWITCH ? "no-" : "";
    }
    if (strcmp(scan->command, "run") == 0 && strcmp(name, "steps") == 0)
        kp_cli_misuse("run", "unknown flag --steps; the steps to record: --schedule 10-12");
    else if (near < 0) elsewhere_tell(scan, name);
    else kp_cli_misuse(scan->command, "unknown flag --%s, did you mean --%s%s", name, no, scan->table[near].name);
    return KP_OPT_BAD;
}

/* Is the word, up to a comma, in a list like "0,1,ops"? */
static bool is_listed(const char *list, const char *word)
{
    const size_t bytes = strcspn(word, ",");
    for (; bytes && *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == bytes && memcmp(list, word, bytes) == 0) return true;
    return false;
}

/* The value that follows a flag. NULL: none does, and the flag needs one. */
static const char *value_next(struct kp_opt_scan *scan, const struct kp_opt *option)
{
    const char *next = scan->at < scan->argc ? scan->argv[scan->at] : NULL;
    if (option->kind == KP_OPT_MAYBE && !(next && is_listed(option->meta, next))) {
        snprintf(scan->alone, sizeof scan->alone, "%.*s", (int)strcspn(option->meta, ","), option->meta);
        return scan->alone;
    }
    if (next) scan->at++;
    return next;
}

/* Is the word one of our flags, perhaps with a value behind "="? */
static bool is_ours(const struct kp_opt_scan *scan, const char *word)
{
    return word[0] == '-' && word[1] == '-' && word[2] &&
           option_find(scan->table, word + 2, strcspn(word + 2, "=")) >= 0;
}

/* Does "--" follow the next word, or more of our flags and then "--"? */
static bool is_before_dashes(const struct kp_opt_scan *scan)
{
    int end = scan->at + 1;
    if (end >= scan->argc || (strcmp(scan->argv[end], "--") != 0 && !is_ours(scan, scan->argv[end]))) return false;
    while (end < scan->argc && strcmp(scan->argv[end], "--") != 0) end++;
    return end < scan->argc;
}

/*
 * A flag may stand without its value, and then the program's name follows. True: the word that follows stands
 * before the "--", or is no program and near a value, so it was meant as one. Tells.
 */
static bool is_misspelt(const struct kp_opt_scan *scan, const struct kp_opt *option)
{
    const char *const word = scan->at < scan->argc ? scan->argv[scan->at] : NULL;
    char near[32];
    if (option->kind != KP_OPT_MAYBE || !word || word[0] == '-' || is_listed(option->meta, word)) return false;
    kp_config_near(option->meta, word, near, sizeof near);
    if (!is_before_dashes(scan) && (!near[0] || kp_target_is_program(word))) return false;
    kp_cli_misuse(scan->command, "--%s: %s is not any of %s%s%s%s", option->name, word, option->meta,
                  near[0] ? " (did you mean " : "", near, near[0] ? "?)" : "");
    return true;
}

static bool has_schema(const struct kp_opt_scan *scan)
{
    const int json = option_find(scan->table, "json", 4);
    return json >= 0 && kp_opt_schema(&scan->table[json]);
}

static int long_next(struct kp_opt_scan *scan, const char *word, const char **value)
{
    const size_t length = strcspn(word, "=");
    const bool given = word[length] == '=';
    int i = option_find(scan->table, word, length);
    if (i >= 0) {
        if (!given && is_misspelt(scan, &scan->table[i])) return KP_OPT_BAD;
        *value = given ? word + length + 1 : "1";
        if ((scan->table[i].kind == KP_OPT_VALUE || scan->table[i].kind == KP_OPT_MAYBE) && !given) {
            *value = value_next(scan, &scan->table[i]);
            if (!*value) return kp_cli_misuse(scan->command, "--%s needs a value", word), KP_OPT_BAD;
        }
        if (scan->table[i].kind == KP_OPT_FLAG && given)
            return kp_cli_misuse(scan->command, "--%s takes no value", scan->table[i].name), KP_OPT_BAD;
        return i;
    }
    if (strncmp(word, "no-", 3) == 0 && !given) {
        i = option_find(scan->table, word + 3, length - 3);
        *value = "0";
        if (i >= 0 && scan->table[i].kind == KP_OPT_SWITCH) return i;
    }
    wants_schema = strcmp(word, "json-schema") == 0 && has_schema(scan);
    return wants_schema ? KP_OPT_HELP : unknown_tell(scan, word, length);
}

static int short_next(struct kp_opt_scan *scan, const char *word, const char **value)
{
    for (int i = 0; scan->table[i].name; i++) {
        if (!scan->table[i].letter || scan->table[i].letter != word[1]) continue;
        *value = "1";
        if (scan->table[i].kind != KP_OPT_VALUE && !word[2]) return i;
        if (scan->table[i].kind != KP_OPT_VALUE) break;
        *value = word + 2;
        if (word[2]) return i;
        if (scan->at == scan->argc) return kp_cli_misuse(scan->command, "-%c needs a value", word[1]), KP_OPT_BAD;
        *value = scan->argv[scan->at++];
        return i;
    }
    return kp_cli_misuse(scan->command, "unknown flag %s", word), KP_OPT_BAD;
}

/*
 * A word behind a flag ends the options and is the program: "kprof run --record-shapes yes -- python" ran yes. True: it
 * was meant as the flag's value. Tells.
 */
static bool is_value_meant(const struct kp_opt_scan *scan, const char *word)
{
    const char *const before = scan->at ? scan->argv[scan->at - 1] : "";
    if (scan->no_more || !scan->stop_at_argument || !is_ours(scan, before) || strchr(before, '=')) return false;
    if (!is_before_dashes(scan)) return false;
    kp_cli_misuse(scan->command, "%s takes no value '%s'; if that is the program, put -- before it", before, word);
    return true;
}

int kp_opt_next(struct kp_opt_scan *scan, const char **value)
{
    const char *word;
    if (scan->at >= scan->argc) return KP_OPT_END;
    word = scan->argv[scan->at];
    if (!scan->no_more && strcmp(word, "--") == 0) {
        scan->no_more = true;
        scan->at++;
        return kp_opt_next(scan, value);
    }
    if (scan->no_more || word[0] != '-' || !word[1]) {
        if (is_value_meant(scan, word)) return KP_OPT_BAD;
        *value = word;
        if (scan->stop_at_argument) return KP_OPT_END;
        scan->at++;
        return KP_OPT_ARGUMENT;
    }
    scan->at++;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return KP_OPT_HELP;
    return word[1] == '-' ? long_next(scan, word + 2, value) : short_next(scan, word, value);
}

static int value_keep(void *command, const struct kp_opt_scan *scan, int id, const char *value)
{
    const struct kp_opt *const row = &scan->table[id];
    char *const to = (char *)command + row->into - 1;
    const bool is_on = strcmp(value, "0") != 0;
    if (row->kind == KP_OPT_VALUE) memcpy(to, &value, sizeof value);
    else memcpy(to, &is_on, sizeof is_on);
    return 0;
}

int kp_opt_flags(struct kp_opt_scan *scan, void *command, kp_opt_take_fn take)
{
    const char *value;
    int id;
    while ((id = kp_opt_next(scan, &value)) >= 0 || id == KP_OPT_ARGUMENT) {
        if (id == KP_OPT_ARGUMENT) scan->argv[scan->count++] = (char *)value;
        else if ((scan->table[id].into ? value_keep : take)(command, scan, id, value)) return KP_OPT_BAD;
    }
    return id;
}

int kp_opt_ended(const struct kp_opt_scan *scan, int id)
{
    return id == KP_OPT_HELP ? kp_cli_help(scan->command, scan->table) : KP_EXIT_USAGE;
}

/* ---- values ---- */

static bool number_read(const char *text, long least, long *out, const char **end)
{
    char *stop;
    errno = 0;
    *out = strtol(text, &stop, 10);
    *end = stop;
    return !errno && stop != text && *out >= least;
}

bool kp_opt_number(const char *text, long least, long *out)
{
    const char *end;
    return number_read(text, least, out, &end) && !*end;
}

static bool steps_read(const char *text, long *first, long *last)
{
    const char *end;
    if (!number_read(text, 0, first, &end)) return false;
    *last = *first;
    if (*end == '-' && !number_read(end + 1, 0, last, &end)) return false;
    return !*end && *last >= *first;
}

int kp_opt_steps(const char *command, const char *text, long *first, long *last)
{
    return steps_read(text, first, last) ? 0 : kp_cli_misuse(command, "--step is A or A-B, not %s", text);
}

int kp_opt_steps_or_all(const char *command, const char *text, long *first, long *last, bool *all)
{
    *all = strcmp(text, "all") == 0;
    if (*all) *first = *last = -1;
    return *all || steps_read(text, first, last) ? 0 : kp_cli_misuse(command, "--step is A, A-B or all, not %s", text);
}

int kp_opt_time(const char *command, const char *flag, const char *text, int64_t *ns, bool *has)
{
    char *end;
    (void)strtod(text, &end);
    *has = end != text && !*end;
    if (!*has) return kp_cli_misuse(command, "--%s is a time in microseconds, not %s", flag, text);
    *ns = kp_kineto_ns(text, strlen(text));
    return 0;
}

int kp_opt_times_check(const char *command, bool are_both, int64_t from_ns, int64_t to_ns)
{
    return are_both && from_ns > to_ns ? kp_cli_misuse(command, "--to is before --from") : 0;
}

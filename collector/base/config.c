// SPDX-License-Identifier: Apache-2.0
/*
 * config.c - reads every setting once: from the environment into a checked struct
 *
 * Called by: boot.c (constructor), the CLI
 * Memory:    never allocates; copies the texts into the struct.
 * On fail:   keeps one line for each bad value and uses the default.
 * Safe in:   signal handlers no; after fork yes (only reads its arguments)
 */
#include "collector/base/kp_config.h"

#include <string.h>
#include <sys/auxv.h>

#include "collector/base/text/kp_jsonread.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"

#include "collector/base/kp_poison.h"

const struct kp_config_row kp_config_rows[KP_SET_COUNT] = {
#define KP_SETTING(field, row_name, row_type, row_default, row_low, row_high, row_values, row_torch, row_meta, \
                   row_doc)                                                                                    \
    [KP_SET_##field] = {.name = (row_name),                                                                    \
                        .fallback = (row_default),                                                             \
                        .values = (row_values),                                                                \
                        .torch = (row_torch),                                                                  \
                        .meta = (row_meta),                                                                    \
                        .doc = (row_doc),                                                                      \
                        .type = KP_TYPE_##row_type,                                                            \
                        .low = (row_low),                                                                      \
                        .high = (row_high),                                                                    \
                        .offset = offsetof(struct kp_config, field)},
#include "collector/base/config.def"
#undef KP_SETTING
};

/* Variables that start with KPROF and are no settings. */
static const char *const others[] = {"KPROF_LIB",      "KPROF_PYTHON",     "KPROF_GPU_TRACES", "KPROF_BUILD",
                                     "KPROF_COMMAND",  "KPROF_READ_LIMIT", "KPROF_RUN_PID",    "KPROF_RUN_STAYS",
                                     "KPROF_RUN_TOLD", "KPROF_RUN_FROM",   "KPROF_RUN_BESIDE", "KPROF_BASE_PYTHON"};

static void *field_of(struct kp_config *config, enum kp_config_index index)
{
    return (char *)config + kp_config_rows[index].offset;
}

static const void *field_in(const struct kp_config *config, enum kp_config_index index)
{
    return (const char *)config + kp_config_rows[index].offset;
}

/* --- complaints --- */

static void keep_line(struct kp_config *config, const char *format, ...) __attribute__((format(__printf__, 2, 3)));
static void keep_line(struct kp_config *config, const char *format, ...)
{
    const size_t room = sizeof config->lines - config->lines_used;
    va_list args;
    size_t length;
    if (room < 64) return; /* no room: the first complaints are enough */
    va_start(args, format);
    length = kp_vfmt(config->lines + config->lines_used, room, format, args);
    va_end(args);
    config->lines_used += length < room ? length + 1 : room;
    config->complaints++;
}

/* A value for a log line: cut short, without control characters. */
static const char *shown(const char *value, char out[84])
{
    size_t n = 0;
    for (; value[n] && n < 80; n++) out[n] = (unsigned char)value[n] < 0x20 ? ' ' : value[n];
    memcpy(out + n, value[n] ? "..." : "", value[n] ? 4 : 1);
    return out;
}

/* The text behind "using" in a complaint. */
static const char *instead_of(enum kp_config_index index)
{
    if (index == KP_SET_worker_name) return "HOST_PID";
    if (index == KP_SET_spool_dir) return "KPROF_DIR";
    if (index == KP_SET_ranks) return "all ranks";
    return kp_config_rows[index].fallback[0] ? kp_config_rows[index].fallback : "nothing";
}

static bool refuse(struct kp_config *config, enum kp_config_index index, const char *value, const char *why)
{
    char text[84];
    keep_line(config, "%s=%s %s, using %s", kp_config_rows[index].name, shown(value, text), why, instead_of(index));
    config->refused |= KP_SET_BIT(index);
    return false;
}

/* --- a parser for each type; it does not touch the field of a value that it refuses --- */

/* Copies the text into the struct. NULL: no room. */
static const char *keep_text(struct kp_config *config, const char *value)
{
    const size_t bytes = strlen(value) + 1;
    char *to = config->store + config->store_used;
    if (bytes > sizeof config->store - config->store_used) return NULL;
    memcpy(to, value, bytes);
    config->store_used += bytes;
    return to;
}

static bool set_number(struct kp_config *config, enum kp_config_index index, const char *value)
{
    const struct kp_config_row *row = &kp_config_rows[index];
    char why[96];
    uint64_t n = 0;
    const char *p = value;
    for (; *p >= '0' && *p <= '9' && n < UINT64_MAX / 10 - 1; p++) n = n * 10 + (uint64_t)(*p - '0');
    if (p == value || *p || n < row->low || n > row->high) {
        kp_fmt(why, sizeof why, "is not between %lu and %lu", (unsigned long)row->low, (unsigned long)row->high);
        return refuse(config, index, value, why);
    }
    *(uint64_t *)field_of(config, index) = n;
    return true;
}

static bool set_bool(struct kp_config *config, enum kp_config_index index, const char *value)
{
    if ((value[0] != '0' && value[0] != '1') || value[1]) return refuse(config, index, value, "is neither 0 nor 1");
    *(bool *)field_of(config, index) = value[0] == '1';
    return true;
}

/* Position of the word [from, from + length) in a comma list, or -1. */
static int word_find(const char *list, const char *from, size_t length)
{
    for (int at = 0; *list; at++) {
        const size_t n = strcspn(list, ",");
        if (n == length && memcmp(list, from, n) == 0) return at;
        list += n + (list[n] == ',');
    }
    return -1;
}

/* Writes a question for the word of a comma list that a misspelt one may mean, or nothing. */
static void word_guess(const char *list, const char *from, size_t length, char *out, size_t bytes)
{
    char word[40], near[40];
    out[0] = 0;
    if (length >= sizeof word) return;
    memcpy(word, from, length);
    word[length] = 0;
    const char *const meant = strcmp(word, "gpu") == 0 ? "cuda" : word; /* not cpu */
    if (*kp_config_near(list, meant, near, sizeof near)) kp_fmt(out, bytes, " (did you mean %s?)", near);
}

static bool set_words(struct kp_config *config, enum kp_config_index index, const char *value)
{
    const char *const words = kp_config_rows[index].values;
    uint32_t bits = 0;
    char why[192], guess[64];
    for (const char *p = value; *p;) {
        const size_t n = strcspn(p, ",");
        const int at = word_find(words, p, n);
        if (at < 0) {
            word_guess(words, p, n, guess, sizeof guess);
            kp_fmt(why, sizeof why, "is not any of %s%s", words, guess);
            return refuse(config, index, value, why);
        }
        bits |= 1u << at;
        p += n + (p[n] == ',');
    }
    if (!bits) return refuse(config, index, value, "names nothing");
    if (index == KP_SET_exports && (bits & KP_EXPORTS_NONE) && bits != KP_EXPORTS_NONE)
        return refuse(config, index, value, "asks for none and for something");
    if ((index == KP_SET_cupti || index == KP_SET_with_stack || index == KP_SET_on_oom) && bits & (bits - 1))
        return refuse(config, index, value, "names more than one");
    *(uint32_t *)field_of(config, index) = bits;
    return true;
}

static bool set_text(struct kp_config *config, enum kp_config_index index, const char *value)
{
    const char *const copy = keep_text(config, value);
    if (!copy) return refuse(config, index, value, "is too long");
    *(const char **)field_of(config, index) = copy;
    return true;
}

static bool set_line(struct kp_config *config, enum kp_config_index index, const char *value)
{
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20) return refuse(config, index, value, "has a control character in it");
    return set_text(config, index, value);
}

static bool set_name(struct kp_config *config, enum kp_config_index index, const char *value)
{
    if (strchr(value, '/')) return refuse(config, index, value, "has a slash in it");
    if (strlen(value) > 200) return refuse(config, index, value, "is too long for a file name");
    return set_line(config, index, value);
}

static bool set_json(struct kp_config *config, enum kp_config_index index, const char *value)
{
    char why[128];
    const char *wrong = "";
    size_t offset = 0;
    if (kp_jsonread_check_object(value, strlen(value), &offset, &wrong) < 0) {
        kp_fmt(why, sizeof why, "is not a JSON object (offset %zu: %s)", offset, wrong);
        return refuse(config, index, value, why);
    }
    return set_text(config, index, value);
}

static bool set_ranks(struct kp_config *config, enum kp_config_index index, const char *value)
{
    char why[128];
    if (kp_ranks_check(value, why, sizeof why) < 0) return refuse(config, index, value, why);
    return set_text(config, index, value);
}

uint64_t kp_config_time_ms(const char *text)
{
    uint64_t seconds = 0, unit = 1;
    const char *at = text;
    if (!at) return 0;
    for (; *at >= '0' && *at <= '9' && seconds < 1000000; at++) seconds = seconds * 10 + (uint64_t)(*at - '0');
    if (*at == 'm') unit = 60;
    if (*at == 'h') unit = 3600;
    const bool is_whole = at > text && (!*at || ((*at == 's' || unit > 1) && !at[1]));
    return is_whole && seconds * unit <= 1000000 ? seconds * unit * 1000 : 0;
}

static bool set_time(struct kp_config *config, enum kp_config_index index, const char *value)
{
    const struct kp_config_row *row = &kp_config_rows[index];
    const uint64_t ms = kp_config_time_ms(value);
    char why[96];
    if (ms >= row->low * 1000 && ms <= row->high * 1000) return set_text(config, index, value);
    kp_fmt(why, sizeof why, "is no time from %lus to %lus, such as 30s or 5m", (unsigned long)row->low,
           (unsigned long)row->high);
    return refuse(config, index, value, why);
}

typedef bool (*set_fn)(struct kp_config *config, enum kp_config_index index, const char *value);
static const set_fn setters[] = {
    [KP_TYPE_BOOL] = set_bool,     [KP_TYPE_NUMBER] = set_number, [KP_TYPE_SET] = set_words,
    [KP_TYPE_TEXT] = set_line,     [KP_TYPE_NAME] = set_name,     [KP_TYPE_JSON] = set_json,
    [KP_TYPE_SCHEDULE] = set_line, [KP_TYPE_STEP] = set_line,     [KP_TYPE_RANKS] = set_ranks,
    [KP_TYPE_TIME] = set_time,
};

bool kp_config_is_variable(const char *entry, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

const char *kp_config_variable(const void *environ_like, const char *name)
{
    for (char *const *e = environ_like; e && *e; e++)
        if (kp_config_is_variable(*e, name)) return *e + strlen(name) + 1;
    return NULL;
}

bool kp_config_set(struct kp_config *config, enum kp_config_index index, const char *value)
{
    const bool taken = setters[kp_config_rows[index].type](config, index, value);
    if (taken) config->from_env |= KP_SET_BIT(index);
    return taken;
}

static void set_default(struct kp_config *config, enum kp_config_index index)
{
    const struct kp_config_row *row = &kp_config_rows[index];
    if (row->type >= KP_TYPE_TEXT) *(const char **)field_of(config, index) = row->fallback[0] ? row->fallback : NULL;
    else setters[row->type](config, index, row->fallback);
    config->from_env &= ~KP_SET_BIT(index);
}

void kp_config_refuse(struct kp_config *config, enum kp_config_index index, const char *why, const char *instead)
{
    char value[96], text[84];
    kp_config_value(config, index, value, sizeof value);
    set_default(config, index);
    config->refused |= KP_SET_BIT(index);
    keep_line(config, "%s=%s %s, %s", kp_config_rows[index].name, shown(value, text), why, instead);
}

/* --- the environment --- */

const char *kp_config_nearest(const char *name)
{
    unsigned best = 4;
    const char *found = NULL;
    for (int i = 0; i < KP_SET_COUNT; i++) {
        const unsigned d = kp_config_distance(name, kp_config_rows[i].name);
        if (d < best && d * 3 < strlen(name)) {
            best = d;
            found = kp_config_rows[i].name;
        }
    }
    return found;
}

static bool is_named(const char *entry, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(entry, name, length) == 0;
}

/* `kprof run` has told of it, and left it in this list with commas. */
static bool is_told(const char *list, const char *name, size_t length)
{
    for (; list && *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == length && memcmp(list, name, length) == 0) return true;
    return false;
}

/* The length of the name in a NAME=VALUE that begins as settings do; 0: another. An empty value counts as not set. */
static size_t name_length(const char *entry)
{
    if (strncmp(entry, "KPROF=", 6) != 0 && strncmp(entry, "KPROF_", 6) != 0) return 0;
    const size_t length = strcspn(entry, "=");
    return entry[length] && entry[length + 1] ? length : 0;
}

/* The setting of this name, or KP_SET_COUNT. */
static int setting_find(const char *entry, size_t length)
{
    int i = 0;
    while (i < KP_SET_COUNT && !is_named(entry, length, kp_config_rows[i].name)) i++;
    return i;
}

bool kp_config_is_unknown(const char *entry, const char *told, char *line, size_t bytes)
{
    const size_t length = name_length(entry);
    char name[64];
    if (!length || is_told(told, entry, length) || strncmp(entry, "KPROF_TEST_", 11) == 0) return false;
    if (setting_find(entry, length) < KP_SET_COUNT) return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (is_named(entry, length, others[i])) return false;
    kp_fmt(name, length < sizeof name ? length + 1 : sizeof name, "%s", entry);
    const char *const near = kp_config_nearest(name);
    kp_fmt(line, bytes, "%s is no setting of kprof, ignored; %s%s%s", name, near ? "did you mean " : "`kprof config`",
           near ? near : " lists them", near ? "?" : "");
    return true;
}

/* Takes a NAME=VALUE. As with getenv, the first of two equal names counts. */
static void take_entry(struct kp_config *config, const char *entry, const char *told, uint64_t *seen)
{
    const size_t length = name_length(entry);
    const int i = setting_find(entry, length);
    char line[192];
    if (!length) return;
    if (i < KP_SET_COUNT && !(*seen & KP_SET_BIT(i)))
        kp_config_set(config, (enum kp_config_index)i, entry + length + 1);
    if (i < KP_SET_COUNT) *seen |= KP_SET_BIT(i);
    else if (is_named(entry, length, "KPROF_TEST_FAIL")) config->test_fail = keep_text(config, entry + length + 1);
    else if (kp_config_is_unknown(entry, told, line, sizeof line)) keep_line(config, "%s", line);
}

int kp_config_read_as(struct kp_config *out, char **environ_like, bool secure)
{
    uint64_t seen = 0;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < KP_SET_COUNT; i++) set_default(out, (enum kp_config_index)i);
    out->secure = secure;
    if (secure) out->on = false;
    if (secure || !environ_like) return 0;
    const char *told = NULL;
    for (char **e = environ_like; *e && !told; e++)
        if (strncmp(*e, "KPROF_RUN_TOLD=", 15) == 0) told = *e + 15;
    for (; *environ_like; environ_like++) take_entry(out, *environ_like, told, &seen);
    return out->complaints;
}

int kp_config_read(struct kp_config *out, char **environ_like)
{
    return kp_config_read_as(out, environ_like, getauxval(AT_SECURE) != 0);
}

/* --- output --- */

void kp_config_complain(const struct kp_config *config)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set_explicit(&said, memory_order_relaxed)) return;
    for (size_t at = 0; at < config->lines_used; at += strlen(config->lines + at) + 1)
        kp_log(0, "%s", config->lines + at);
}

static size_t words_value(uint32_t bits, const char *words, char *buf, size_t size)
{
    size_t length = 0;
    if (size) buf[0] = 0;
    for (; *words; bits >>= 1) {
        const size_t n = strcspn(words, ",");
        if (bits & 1) {
            if (length && length + 1 < size) memcpy(buf + length, ",", 2);
            length += length != 0;
            if (length + n < size) {
                memcpy(buf + length, words, n);
                buf[length + n] = 0;
            }
            length += n;
        }
        words += n + (words[n] == ',');
    }
    return length;
}

size_t kp_config_value(const struct kp_config *config, enum kp_config_index index, char *buf, size_t size)
{
    const struct kp_config_row *row = &kp_config_rows[index];
    const void *const field = field_in(config, index);
    const char *text;
    switch (row->type) {
    case KP_TYPE_BOOL: return kp_fmt(buf, size, "%d", (int)*(const bool *)field);
    case KP_TYPE_NUMBER: return kp_fmt(buf, size, "%lu", (unsigned long)*(const uint64_t *)field);
    case KP_TYPE_SET: return words_value(*(const uint32_t *)field, row->values, buf, size);
    default: text = *(const char *const *)field; return kp_fmt(buf, size, "%s", text ? text : "");
    }
}

void kp_config_log(const struct kp_config *config)
{
    char value[256];
    for (int i = 0; i < KP_SET_COUNT; i++) {
        kp_config_value(config, (enum kp_config_index)i, value, sizeof value);
        kp_log(1, "%s=%s (%s)", kp_config_rows[i].name, value,
               config->from_env & KP_SET_BIT(i) ? "environment" : "default");
    }
}

size_t kp_config_text(const struct kp_config *config, char *buf, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < KP_SET_COUNT; i++) {
        const size_t start = used;
        if (kp_config_rows[i].type >= KP_TYPE_TEXT && !*(const char *const *)field_in(config, (enum kp_config_index)i))
            continue;
        used += kp_fmt(buf + (used < size ? used : size), used < size ? size - used : 0, "%s=", kp_config_rows[i].name);
        used += kp_config_value(config, (enum kp_config_index)i, buf + (used < size ? used : size),
                                used < size ? size - used : 0);
        for (size_t p = start; p < used && p + 1 < size;
             p++) /* a line break between two JSON tokens means the same as a space */
            if (buf[p] == '\n' || buf[p] == '\r') buf[p] = ' ';
        used += kp_fmt(buf + (used < size ? used : size), used < size ? size - used : 0, "\n");
    }
    return used;
}

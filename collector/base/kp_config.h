// SPDX-License-Identifier: Apache-2.0
/*
 * kp_config.h - every setting, read once from the environment, then constant
 *
 * Called by: boot.c (constructor, before any thread), the CLI, tests.
 * Memory:    allocates none. The struct holds copies of the texts, since setproctitle overwrites the environment. So
 *            the struct must not be copied by value. Put it into pages of kp_map_alloc, and make those read-only
 *            later.
 * On fail:   a bad value is never an error. The setting gets its default, and kp_config_complain logs a line about
 *            it. That comes later, so a shell or a launcher that records nothing logs nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KP_ACTIVITY_CPU = 1u << 0, KP_ACTIVITY_CUDA = 1u << 1 }; /* activities, in the order of config.def */
enum { KP_CUPTI_TEE = 1u << 0, KP_CUPTI_YIELD = 1u << 1, KP_CUPTI_OFF = 1u << 2 }; /* cupti: a single bit */
enum {                                                                             /* exports */
       KP_EXPORTS_TRACE = 1u << 0,
       KP_EXPORTS_TABLE = 1u << 1,
       KP_EXPORTS_STACKS = 1u << 2,
       KP_EXPORTS_MEMORY = 1u << 3,
       KP_EXPORTS_BESIDE = 7u << 1, /* made of a trace by the command */
       KP_EXPORTS_NONE = 1u << 4,
};

enum {
    KP_STACK_NONE = 1u << 0,
    KP_STACK_CALLS = 1u << 1,
    KP_STACK_OPS = 1u << 2,
    KP_STACK_NATIVE = 1u << 3
}; /* with_stack: a single bit */

enum { KP_OOM_OFF = 1u << 0, KP_OOM_DUMP = 1u << 1 };                             /* on_oom: a single bit */
enum { KP_HEAP_OFF = 1u << 0, KP_HEAP_COUNT = 1u << 1, KP_HEAP_TRACE = 1u << 2 }; /* heap: a single bit */

#define KP_CONFIG_TYPE_BOOL bool
#define KP_CONFIG_TYPE_NUMBER uint64_t
#define KP_CONFIG_TYPE_SET uint32_t
#define KP_CONFIG_TYPE_TEXT const char *
#define KP_CONFIG_TYPE_NAME const char *
#define KP_CONFIG_TYPE_JSON const char *
#define KP_CONFIG_TYPE_SCHEDULE const char *
#define KP_CONFIG_TYPE_STEP const char *
#define KP_CONFIG_TYPE_RANKS const char *
#define KP_CONFIG_TYPE_TIME const char *

/* Index of a setting: KP_SET_on, KP_SET_activities, ... in the order of config.def. */
enum kp_config_index {
#define KP_SETTING(field, ...) KP_SET_##field,
#include "collector/base/config.def"
#undef KP_SETTING
    KP_SET_COUNT
};
_Static_assert(KP_SET_COUNT <= 64, "from_env and refused have a bit for each");
#define KP_SET_BIT(index) (UINT64_C(1) << (index))

struct kp_config {
    /* Each row of config.def makes a field, of the type that its KP_CONFIG_TYPE_ is. A text is NULL when not set. */
#define KP_SETTING(field, name, type, ...) KP_CONFIG_TYPE_##type field;
#include "collector/base/config.def"
#undef KP_SETTING
    const char *test_fail; /* KPROF_TEST_FAIL, for kp_fail_set, or NULL */
    uint64_t from_env;     /* KP_SET_BIT(KP_SET_x): the value came from the environment */
    uint64_t refused;      /* KP_SET_BIT(KP_SET_x): a value was given and refused */
    bool secure;           /* setuid or file capabilities: nothing was read, and `on` is false */
    int complaints;        /* lines kept for kp_config_complain */
    size_t store_used, lines_used;
    char lines[4096];  /* the kept lines, each ends with NUL */
    char store[36864]; /* the texts */
};

/* The rows as text, for the CLI, the documentation and the parser. */
enum kp_config_type {
    KP_TYPE_BOOL,
    KP_TYPE_NUMBER,
    KP_TYPE_SET,
    KP_TYPE_TEXT,
    KP_TYPE_NAME,
    KP_TYPE_JSON,
    KP_TYPE_SCHEDULE,
    KP_TYPE_STEP,
    KP_TYPE_RANKS,
    KP_TYPE_TIME
};
struct kp_config_row {
    const char *name, *fallback, *values, *torch, *meta, *doc;
    enum kp_config_type type;
    uint64_t low, high;
    size_t offset; /* of the field */
};
extern const struct kp_config_row kp_config_rows[KP_SET_COUNT];

/* The range of each outermost call of a model, where nothing counts steps yet. */
#define KP_MODEL_RANGE "call of a model"

/* A variable's value in NAME=VALUE strings (NULL-ended, a `char *const *`; NULL for none), or NULL. */
const char *kp_config_variable(const void *environ_like, const char *name);
bool kp_config_is_variable(const char *entry, const char *name); /* the entry is NAME=VALUE */
/*
 * Reads NAME=VALUE strings (NULL-ended, or NULL for none), unless AT_SECURE is set. Returns the number of complaints.
 */
int kp_config_read(struct kp_config *out, char **environ_like);
/* As kp_config_read, with AT_SECURE's value from the caller. */
int kp_config_read_as(struct kp_config *out, char **environ_like, bool secure);
/*
 * Does a NAME=VALUE begin as settings do, and is none, and is not in `told`, the names that `kprof run` told of? Then
 * `line` gets what to say.
 */
bool kp_config_is_unknown(const char *entry, const char *told, char *line, size_t bytes);
/* Sets a setting from text, as the environment would. False: refused. Then the default stays, and a line is kept. */
bool kp_config_set(struct kp_config *config, enum kp_config_index index, const char *value);
/* Refuses a SCHEDULE or STEP: restores the default, and keeps a line "NAME=value why, using instead". */
void kp_config_refuse(struct kp_config *config, enum kp_config_index index, const char *why, const char *instead);
uint64_t kp_config_time_ms(const char *text); /* of a TIME: "300s", "5m", "90"; 0: no such time, or NULL */
/* Logs the kept lines, in the first call of a process only. Call it when the process proves worth profiling. */
void kp_config_complain(const struct kp_config *config);
/* Logs every value and its origin, at level 1 (KPROF_VERBOSE=1). */
void kp_config_log(const struct kp_config *config);
/* A value as the environment would spell it ("" when not set). Returns the length needed. */
size_t kp_config_value(const struct kp_config *config, enum kp_config_index index, char *buf, size_t size);
/* "KPROF_X=value\n" lines of every setting that has a value, for the spool's header. Returns the length needed. */
size_t kp_config_text(const struct kp_config *config, char *buf, size_t size);
/* The known variable with the spelling nearest to `name`, or NULL when none is near. */
const char *kp_config_nearest(const char *name);
/* Returns the edit distance of two short words, neighbours that changed places being one; 9 or more means far. */
unsigned kp_config_distance(const char *a, const char *b);
/* Is the name nearer to a word than `best`, and near enough to have been meant? Then that is the new best. */
bool kp_config_is_nearer(const char *word, const char *name, unsigned *best);
/* Writes that KPROF_STEP=call:GLOB counted no step, and what to do. `near`: a function that may be meant, or NULL. */
void kp_config_missed(char *out, size_t bytes, const char *glob, const char *near);
/* The same for a step that is an op or a range by a regular expression, op:REGEX or range:REGEX. */
void kp_config_unmatched(char *out, size_t bytes, bool is_op, const char *regex);
/* Is a dump wanted when memory is out? The one place that says so. */
static inline bool kp_config_dumps_oom(const struct kp_config *config) { return config->on_oom == KP_OOM_DUMP; }
/* Writes the word of a comma list that a misspelt one may mean, or "". Returns out. */
const char *kp_config_near(const char *list, const char *word, char *out, size_t bytes);

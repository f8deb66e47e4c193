// SPDX-License-Identifier: Apache-2.0
/*
 * job_text.c - the texts of a start of all ranks: a line of KEY=VALUE with a check sum, filled up with blanks
 *
 * Called by: kprof-control, the CLI
 * Safe in:   everywhere: no state, no clock, no system call
 */
#include "schedule/job/job.h"

#include <stddef.h>
#include <string.h>

#include "collector/base/kp_hash.h"
#include "collector/base/kp_log.h"

#include "collector/base/kp_poison.h"

/* text_bytes 0: a uint64_t; else the size of a text. */
struct job_key {
    const char *name;
    uint32_t offset, text_bytes;
};
#define NUMBER(type, field)                     \
    {                                           \
#field, offsetof(struct type, field), 0 \
    }
#define TEXT(type, field)                                                     \
    {                                                                         \
#field, offsetof(struct type, field), sizeof((struct type *)0)->field \
    }
#define LIST_END   \
    {              \
        NULL, 0, 0 \
    }

static const struct job_key call_keys[] = {
    NUMBER(kp_job_call, id),
    NUMBER(kp_job_call, round),
    NUMBER(kp_job_call, beat),
    NUMBER(kp_job_call, state),
    NUMBER(kp_job_call, steps),
    NUMBER(kp_job_call, target),
    NUMBER(kp_job_call, at_ms),
    NUMBER(kp_job_call, for_ms),
    TEXT(kp_job_call, phase),
    TEXT(kp_job_call, job),
    LIST_END,
};
static const struct job_key answer_keys[] = {
    NUMBER(kp_job_answer, id),      NUMBER(kp_job_answer, round),
    NUMBER(kp_job_answer, beat),    NUMBER(kp_job_answer, state),
    NUMBER(kp_job_answer, err),     NUMBER(kp_job_answer, step),
    NUMBER(kp_job_answer, step_us), NUMBER(kp_job_answer, rank),
    NUMBER(kp_job_answer, size),    NUMBER(kp_job_answer, pid),
    NUMBER(kp_job_answer, start),   NUMBER(kp_job_answer, pidspace),
    TEXT(kp_job_answer, host),      TEXT(kp_job_answer, phase),
    TEXT(kp_job_answer, job),       LIST_END,
};
static const char call_head[] = "kprof job 1", answer_head[] = "kprof rank 1", sum_mark[] = " sum=";
enum { SUM_DIGITS = 16 };

static void print(const char *head, const struct job_key *keys, const void *from, char *out)
{
    char text[KP_JOB_BYTES];
    size_t used = kp_fmt(text, sizeof text, "%s", head);
    for (const struct job_key *k = keys; k->name; k++) {
        const char *const at = (const char *)from + k->offset;
        uint64_t number = 0;
        if (!k->text_bytes) memcpy(&number, at, sizeof number);
        used += k->text_bytes ? kp_fmt(text + used, sizeof text - used, " %s=%s", k->name, at)
                              : kp_fmt(text + used, sizeof text - used, " %s=%lu", k->name, (unsigned long)number);
    }
    const uint64_t sum = kp_hash64(text, used);
    used += kp_fmt(text + used, sizeof text - used, "%s%08x%08x", sum_mark, (unsigned)(sum >> 32), (unsigned)sum);
    memset(out, ' ', KP_JOB_BYTES);
    memcpy(out, text, used);
    out[KP_JOB_BYTES - 1] = '\n';
}

void kp_job_call_print(const struct kp_job_call *call, char out[KP_JOB_BYTES])
{
    print(call_head, call_keys, call, out);
}

void kp_job_answer_print(const struct kp_job_answer *answer, char out[KP_JOB_BYTES])
{
    print(answer_head, answer_keys, answer, out);
}

static bool is_text_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

/* Reads the value up to the blank at `end` into the field of `key`. */
static bool value_read(const struct job_key *key, const char *from, const char *end, char *to)
{
    const size_t bytes = (size_t)(end - from);
    uint64_t number = 0;
    for (const char *p = from; p < end; p++) {
        if (key->text_bytes ? !is_text_letter(*p) : *p < '0' || *p > '9') return false;
        number = number * 10 + (uint64_t)(*p - '0');
    }
    if (key->text_bytes ? bytes >= key->text_bytes : !bytes || bytes > 20) return false;
    if (!key->text_bytes) memcpy(to, &number, sizeof number);
    else memcpy(to, from, bytes);
    return true;
}

/* A word of another version is passed over. */
static bool word_take(const struct job_key *keys, const char *word, const char *end, char *out)
{
    for (const struct job_key *k = keys; k->name; k++) {
        const size_t n = strlen(k->name);
        if ((size_t)(end - word) <= n || memcmp(word, k->name, n) != 0 || word[n] != '=') continue;
        return value_read(k, word + n + 1, end, out + k->offset);
    }
    return true;
}

/* The check sum's mark, NULL when there is none. memmem prepares a table for each text: longer than these take. */
static const char *mark_find(const char *text)
{
    const char *const last = text + KP_JOB_BYTES - (sizeof sum_mark - 1), *at = text;
    while (at <= last && (at = memchr(at, sum_mark[0], (size_t)(last - at) + 1))) {
        if (memcmp(at, sum_mark, sizeof sum_mark - 1) == 0) return at;
        at++;
    }
    return NULL;
}

/* The words end at the check sum. NULL: there is none, or it is wrong. */
static const char *sum_check(const char *text)
{
    char want[SUM_DIGITS + 1];
    const char *const mark = mark_find(text);
    if (!mark || mark + sizeof sum_mark - 1 + SUM_DIGITS > text + KP_JOB_BYTES) return NULL;
    const uint64_t sum = kp_hash64(text, (size_t)(mark - text));
    kp_fmt(want, sizeof want, "%08x%08x", (unsigned)(sum >> 32), (unsigned)sum);
    return memcmp(mark + sizeof sum_mark - 1, want, SUM_DIGITS) == 0 ? mark : NULL;
}

static bool parse(const char *text, const char *head, const struct job_key *keys, char *out)
{
    const size_t n = strlen(head);
    const char *const end = sum_check(text);
    if (!end || (size_t)(end - text) < n || memcmp(text, head, n) != 0) return false;
    for (const char *word = text + n; word < end;) {
        if (*word++ != ' ') return false;
        const char *const blank = memchr(word, ' ', (size_t)(end - word));
        const char *const stop = blank ? blank : end;
        if (!word_take(keys, word, stop, out)) return false;
        word = stop;
    }
    return true;
}

bool kp_job_call_parse(const char text[KP_JOB_BYTES], struct kp_job_call *out)
{
    struct kp_job_call read = {.id = 0};
    if (!parse(text, call_head, call_keys, (char *)&read)) return false;
    *out = read;
    return true;
}

bool kp_job_answer_parse(const char text[KP_JOB_BYTES], struct kp_job_answer *out)
{
    struct kp_job_answer read = {.id = 0};
    if (!parse(text, answer_head, answer_keys, (char *)&read)) return false;
    *out = read;
    return true;
}

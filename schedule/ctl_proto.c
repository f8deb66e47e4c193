// SPDX-License-Identifier: Apache-2.0
/*
 * ctl_proto.c - parses the requests that `kprof ctl` sends to a running process
 *
 * Called by: kprof-control (requests), the CLI (before it sends one)
 * Safe in:   everywhere: no state, no clock, no system call
 */
#include "schedule/ctl_proto.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_log.h"

#include "schedule/complain.h"
#include "collector/base/kp_poison.h"

#define NUMBER_MAX UINT64_C(1000000000000000) /* as in a schedule */

struct words { /* of the line that is left */
    char *at;
};

/* Cuts off the next word; "" at the end of the line. */
static char *word_next(struct words *w)
{
    char *const word = w->at;
    w->at += strcspn(word, " ");
    if (*w->at) *w->at++ = '\0';
    return word;
}

static bool number_parse(const char *text, uint64_t *out)
{
    uint64_t n = 0;
    if (!*text) return false;
    for (; *text >= '0' && *text <= '9' && n < NUMBER_MAX; text++) n = n * 10 + (uint64_t)(*text - '0');
    *out = n;
    return !*text && n < NUMBER_MAX;
}

static int start_parse(struct words *w, struct kp_ctl_request *r, char *why, unsigned long why_bytes)
{
    while (*w->at) {
        const char *const word = word_next(w);
        if (strncmp(word, "steps=", 6) == 0 && !r->steps && number_parse(word + 6, &r->steps) && r->steps) continue;
        const bool is_at = strncmp(word, "at=", 3) == 0 && !r->is_at_step && !r->is_at_next;
        r->is_at_next |= is_at && strcmp(word + 3, "next") == 0;
        r->is_at_step |= is_at && number_parse(word + 3, &r->at);
        if (!is_at || (!r->is_at_next && !r->is_at_step))
            return kp_complain(why, why_bytes, "start takes steps=N (from 1) and at=N or at=next, once each");
    }
    return 0;
}

static int toggle_parse(struct words *w, struct kp_ctl_request *r, char *why, unsigned long why_bytes)
{
    r->activity = word_next(w);
    const char *const word = word_next(w);
    const bool is_known = strcmp(r->activity, "cpu") == 0 || strcmp(r->activity, "cuda") == 0;
    r->on = strcmp(word, "on") == 0;
    if (is_known && (r->on || strcmp(word, "off") == 0)) return 0;
    return kp_complain(why, why_bytes, "toggle takes cpu or cuda, and on or off");
}

static int metadata_parse(struct words *w, struct kp_ctl_request *r, char *why, unsigned long why_bytes)
{
    r->key = word_next(w);
    r->value = w->at;
    w->at += strlen(w->at);
    return *r->key && *r->value ? 0 : kp_complain(why, why_bytes, "metadata takes a key and a value");
}

static int phase_parse(struct words *w, struct kp_ctl_request *r, char *why, unsigned long why_bytes)
{
    (void)why;
    (void)why_bytes;
    r->key = word_next(w);
    return 0;
}

static const struct verb {
    const char *name;
    enum kp_ctl_verb verb;
    int (*parse)(struct words *w, struct kp_ctl_request *r, char *why, unsigned long why_bytes);
} verbs[] = {
    {"status", KP_CTL_STATUS, NULL},      {"start", KP_CTL_START, start_parse},
    {"stop", KP_CTL_STOP, NULL},          {"toggle", KP_CTL_TOGGLE, toggle_parse},
    {"step", KP_CTL_STEP, NULL},          {"metadata", KP_CTL_METADATA, metadata_parse},
    {"phase", KP_CTL_PHASE, phase_parse}, {"where", KP_CTL_WHERE, NULL},
    {"keep", KP_CTL_KEEP, NULL},
};

static bool has_control_letters(const char *line)
{
    for (; *line; line++)
        if ((unsigned char)*line < ' ' || *line == 0x7f) return true;
    return false;
}

int kp_ctl_parse(char *line, struct kp_ctl_request *out, char *why, unsigned long why_bytes)
{
    struct words w = {.at = line};
    const size_t length = strlen(line);
    const bool ends_blank = length && line[length - 1] == ' ';
    memset(out, 0, sizeof *out);
    if (has_control_letters(line)) return kp_complain(why, why_bytes, "a request has no control letters");
    const char *const name = word_next(&w);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(name, verbs[i].name) != 0) continue;
        out->verb = verbs[i].verb;
        const int err = verbs[i].parse ? verbs[i].parse(&w, out, why, why_bytes) : 0;
        if (err) return err;
        return *w.at || (ends_blank && !out->value) ? kp_complain(why, why_bytes, "the request has too many words") : 0;
    }
    return kp_complain(why, why_bytes,
                       "a request is one of status, where, start, stop, keep, toggle, step, phase, "
                       "metadata");
}

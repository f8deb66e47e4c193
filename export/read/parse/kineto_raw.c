// SPDX-License-Identifier: Apache-2.0
/* kineto_raw.c - writes the args of events as they are in the file, without blanks */
#include "export/read/parse/kineto_parse.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/text/kp_utf8.h"

static void raw(struct kp_kineto *t, const char *text, size_t bytes)
{
    if (bytes == 0) return;
    t->args_text = kp_kineto_grow(t->args_text, &t->args_capacity, t->args_bytes + bytes, 1);
    memcpy(t->args_text + t->args_bytes, text, bytes);
    t->args_bytes += bytes;
}

void kp_kineto_raw_value(struct kp_kineto_raw *r, const char *text, size_t bytes)
{
    if (r->comma) raw(r->trace, ",", 1);
    raw(r->trace, text, bytes);
    r->comma = true;
}

void kp_kineto_raw_open(struct kp_kineto_raw *r, char bracket)
{
    kp_kineto_raw_value(r, &bracket, 1);
    r->comma = false;
}

void kp_kineto_raw_close(struct kp_kineto_raw *r, char bracket)
{
    raw(r->trace, &bracket, 1);
    r->comma = true;
}

/* Writes a letter beyond ASCII as kp_plain_json() does. Returns how many bytes of the text it took. */
static size_t raw_letter(struct kp_kineto *t, const unsigned char *text, size_t left)
{
    const size_t n = kp_utf8_length(text, left);
    char code[8];
    if (n == 2 && text[0] == 0xc2 && text[1] < 0xa0)
        raw(t, code, (size_t)snprintf(code, sizeof code, "\\u%04x", text[1]));
    else if (n) raw(t, (const char *)text, n);
    else raw(t, "\xef\xbf\xbd", 3);
    return n ? n : 1;
}

void kp_kineto_raw_string(struct kp_kineto_raw *r, const unsigned char *text, size_t bytes)
{
    struct kp_kineto *const t = r->trace;
    kp_kineto_raw_value(r, "\"", 1);
    for (size_t i = 0, n; i < bytes; i += n) {
        char code[8];
        n = 1;
        if (text[i] == '"' || text[i] == '\\') {
            char pair[2] = {'\\', (char)text[i]};
            raw(t, pair, 2);
        } else if (text[i] < 0x20 || text[i] == 0x7f) {
            raw(t, code, (size_t)snprintf(code, sizeof code, "\\u%04x", text[i]));
        } else if (text[i] < 0x80) {
            raw(t, (const char *)text + i, 1);
        } else {
            n = raw_letter(t, text + i, bytes - i);
        }
    }
    raw(t, "\"", 1);
}

void kp_kineto_raw_key(struct kp_kineto_raw *r, const unsigned char *text, size_t bytes)
{
    kp_kineto_raw_string(r, text, bytes);
    raw(r->trace, ":", 1);
    r->comma = false;
}

// SPDX-License-Identifier: Apache-2.0
/* pywait.c - looks functions of Python up in pywait.def */
#include "export/read/facts/pywait.h"

#include <stddef.h>
#include <string.h>

enum how { C, IO, PY, IN };

static const struct pywait_row {
    enum kp_pywait kind;
    enum how how;
    const char *text;
} rows[] = {
#define KP_PYWAIT(kind, how, text) {KP_PYWAIT_##kind, how, text},
#include "export/read/facts/pywait.def"
#undef KP_PYWAIT
};

/* The text behind "<built-in function ", "<built-in method " or "<method ", in which quotes may lie; NULL: it is
 * none. */
static const char *word_of(const char *name)
{
    static const char *const heads[] = {"<built-in function ", "<built-in method ", "<method "};
    for (size_t h = 0; h < sizeof heads / sizeof *heads; h++)
        if (strncmp(name, heads[h], strlen(heads[h])) == 0) return name + strlen(heads[h]);
    return NULL;
}

/* Compares without quotes. Returns what follows in the name; NULL: it begins otherwise. A word ends with the text. */
static const char *begins(const char *name, const char *text)
{
    for (; *text; text++, name++) {
        while (*name == '\'') name++;
        if (*name != *text) return NULL;
    }
    return name;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool is_c(const char *word, const char *text)
{
    const char *const rest = begins(word, text);
    return rest && (strpbrk(text, " >") || !is_letter(*rest));
}

/* Objects in memory have these methods, too. */
static bool is_io(const char *word, const char *text)
{
    const char *const rest = begins(word, text), *const of = rest ? begins(rest, " of _io.") : NULL;
    return of && !begins(of, "BytesIO") && !begins(of, "StringIO");
}

/* "queue.py:get" of "multiprocessing/../queue.py(154): get". */
static bool is_python(const char *name, const char *text)
{
    const char *const colon = strchr(text, ':'), *const line = strrchr(name, '('), *end = strstr(name, "): ");
    const size_t file = (size_t)(colon - text);
    if (!line || !end || end < line || (size_t)(line - name) < file || strcmp(end + 3, colon + 1) != 0) return false;
    const char *const at = line - file;
    return memcmp(at, text, file) == 0 && (at == name || at[-1] == '/');
}

static bool is_met(const struct pywait_row *row, const char *name, const char *word)
{
    switch (row->how) {
    case C: return word && is_c(word, row->text);
    case IO: return word && is_io(word, row->text);
    case PY: return !word && is_python(name, row->text);
    case IN: return !word && strstr(name, row->text) != NULL && strchr(name, '(') > strstr(name, row->text);
    }
    return false;
}

enum kp_pywait kp_pywait_of(const char *name)
{
    const char *const word = word_of(name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_met(&rows[i], name, word)) return rows[i].kind;
    return KP_PYWAIT_NONE;
}

bool kp_pywait_is_idle(const char *name)
{
    const enum kp_pywait kind = kp_pywait_of(name);
    return kind != KP_PYWAIT_NONE && kind != KP_PYWAIT_FILE && (*name == '<' || kind == KP_PYWAIT_LOCK);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * shorten.c - makes a function's name short enough for a stack
 *
 * Called by: framenames.c
 * Memory:    none
 * On fail:   a name that is not understood stays as it is
 *
 * A name is read once from left to right with the depth of brackets. Parentheses right behind a name are its parameters
 * and are removed, also in the middle ("f(int)::{lambda(int)#1}::operator()(int) const"). Other parentheses belong to
 * the name ("(anonymous namespace)"). The text before the last blank outside all brackets is the return type.
 */
#include "export/write/names/shorten.h"

#include <stdbool.h>
#include <string.h>

#include "collector/base/kp_poison.h"

enum { LONG = 120, LOOKED_MOST = 1 << 18 };

struct shorten_state {
    const char *at;
    char *out;
    size_t used, room, start; /* start: behind the last blank outside of brackets */
    unsigned depth;           /* of < ( { [ together */
    unsigned looked;          /* letters looked at for closing brackets */
    size_t operator_end;      /* behind the signs of an operator */
    bool is_conversion;       /* behind "operator ": a type with blanks */
};

static void put(struct shorten_state *s, char c)
{
    if (s->used + 1 < s->room) s->out[s->used++] = c == ';' ? ',' : c;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/*
 * The text behind the bracket that closes the bracket at s->at, or NULL. s->looked limits the search, since thousands
 * of open brackets would each search all the rest.
 */
static const char *closing(struct shorten_state *s)
{
    unsigned depth = 0;
    for (const char *at = s->at; *at && s->looked < LOOKED_MOST; at++, s->looked++) {
        if (*at == '(' || *at == '{' || *at == '[') depth++;
        if (*at == ')' || *at == '}' || *at == ']')
            if (--depth == 0) return at + 1;
    }
    return NULL;
}

/* Takes "operator" and the signs behind it, which may be brackets. */
static bool operator_take(struct shorten_state *s)
{
    static const char word[] = "operator";
    const char before = s->used ? s->out[s->used - 1] : 0;
    if (strncmp(s->at, word, sizeof word - 1) != 0 || is_word(before) || is_word(s->at[sizeof word - 1])) return false;
    for (size_t i = 0; i < sizeof word - 1; i++) put(s, *s->at++);
    if (strncmp(s->at, "()", 2) == 0 || strncmp(s->at, "[]", 2) == 0) {
        put(s, *s->at++);
        put(s, *s->at++);
    }
    while (*s->at && strchr("<>=!+-*/%^&|~,", *s->at)) put(s, *s->at++);
    s->operator_end = s->used;
    s->is_conversion = s->at[0] == ' ' && s->at[1] != '<';
    if (s->at[0] == ' ' && s->at[1] == '<') s->at++; /* operator<< <int> */
    return true;
}

static bool is_behind_name(const struct shorten_state *s)
{
    const char c = s->used > s->start ? s->out[s->used - 1] : 0;
    return is_word(c) || (s->used && s->used == s->operator_end) || c == '>' || c == '}' || c == ')' || c == ']';
}

static void character_take(struct shorten_state *s)
{
    const char c = *s->at;
    const char *behind = c == '(' && s->depth == 0 && is_behind_name(s) ? closing(s) : NULL;
    if (behind) {
        s->at = behind;
        if (strncmp(s->at, " const", 6) == 0) s->at += 6;
        return;
    }
    if (c == ' ' && s->depth == 0 && !strncmp(s->at, " [clone", 7)) {
        s->at += strlen(s->at);
        return;
    }
    const bool is_arrow = c == '>' && s->used && s->out[s->used - 1] == '-';
    if (c == '<' || c == '(' || c == '{' || c == '[') s->depth++;
    if (((c == '>' && !is_arrow) || c == ')' || c == '}' || c == ']') && s->depth) s->depth--;
    put(s, c);
    s->at++;
    if (c == ' ' && s->depth == 0 && !s->is_conversion) s->start = s->used;
}

/* Replaces the text between < and > of the outermost depth by "...". */
static size_t fold(char *name, size_t n)
{
    size_t used = 0;
    unsigned depth = 0;
    for (size_t i = 0; i < n; i++) {
        const bool is_operator =
            (name[i] == '<' || name[i] == '>') && i >= 8 && memcmp(name + i - 8, "operator", 8) == 0;
        const bool is_arrow = name[i] == '>' && i && name[i - 1] == '-';
        if (name[i] == '>' && depth && !is_arrow && !is_operator && --depth == 0) {
            if (used + 4 <= i) {
                memcpy(name + used, "...", 3);
                used += 3;
            }
        }
        if (!depth) name[used++] = name[i];
        if (name[i] == '<' && !is_operator) depth++;
    }
    name[used] = 0;
    return used;
}

static bool is_rust_hash(const char *at)
{
    if (strncmp(at, "::h", 3) != 0 || strlen(at) != 19) return false;
    return strspn(at + 3, "0123456789abcdef") == 16;
}

static const struct {
    const char *from, *to;
} rust_signs[] = {{"$LT$", "<"},  {"$GT$", ">"},  {"$RF$", "&"},  {"$BP$", "*"},  {"$C$", ","},
                  {"$LP$", "("},  {"$RP$", ")"},  {"$u20$", " "}, {"$u7b$", "{"}, {"$u7d$", "}"},
                  {"$u5b$", "["}, {"$u5d$", "]"}, {"$u27$", "'"}, {"..", "::"}};

static size_t rust_take(const char *name, size_t n, char *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0, next; i < n && used + 4 < room; i = next) {
        next = i + 1;
        for (size_t k = 0; k < sizeof rust_signs / sizeof *rust_signs && next == i + 1; k++) {
            const size_t bytes = strlen(rust_signs[k].from);
            if (strncmp(name + i, rust_signs[k].from, bytes) != 0) continue;
            next = i + bytes;
            for (const char *to = rust_signs[k].to; *to; to++) out[used++] = *to;
        }
        const bool is_first = i == 0 || (i >= 2 && name[i - 1] == ':');
        if (next == i + 1 && !(name[i] == '_' && is_first && name[i + 1] == '$')) out[used++] = name[i];
    }
    out[used] = 0;
    return used;
}

size_t kp_symbol_short(const char *name, char *out, size_t bytes)
{
    struct shorten_state s = {.at = name, .out = out, .room = bytes};
    const size_t n = strlen(name);
    if (n > 19 && is_rust_hash(name + n - 19)) return rust_take(name, n - 19, out, bytes);
    while (*s.at)
        if (s.depth || !operator_take(&s)) character_take(&s);
    out[s.used] = 0;
    while (s.used > s.start && s.out[s.used - 1] == ' ') s.out[--s.used] = 0;
    if (s.start && s.start < s.used) memmove(out, out + s.start, s.used - s.start + 1), s.used -= s.start;
    return s.used > LONG ? fold(out, s.used) : s.used;
}

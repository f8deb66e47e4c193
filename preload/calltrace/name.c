// SPDX-License-Identifier: Apache-2.0
/*
 * name.c - demangles the name of a C++ or Rust function, without its arguments
 *
 * Called by: glob.c
 * Memory:    none but the caller's
 * On fail:   false: the name has a form that is not known here (local functions, lambdas, conversions). Globs then
 *            match its mangled form only.
 * Safe in:   anywhere; it is pure
 *
 * A mangled name begins with the function's name (Itanium C++ ABI, 5.1): one name, or N, the names of the scopes and of
 * the function, and E. The argument types behind it are not read. Template arguments are skipped and become "<...>".
 * The C++ library demangles the full name when a trace is written.
 */
#include <string.h>

#include "preload/calltrace/calltrace.h"
#include "collector/base/kp_poison.h"

enum { NESTING_MAX = 64 };

struct reader {
    const char *at;
    char *out;
    size_t bytes, used;
    size_t last, last_end; /* begin and end in `out` of the last name, without template arguments */
    int nesting;
};

static void put(struct reader *r, const char *text, size_t n)
{
    if (n > r->bytes - 1 - r->used) n = r->bytes - 1 - r->used;
    memcpy(r->out + r->used, text, n);
    r->used += n;
    r->out[r->used] = 0;
}

static bool number_read(struct reader *r, size_t *n)
{
    size_t value = 0;
    if (*r->at < '1' || *r->at > '9') return false;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++)
        if ((value = value * 10 + (size_t)(*r->at - '0')) > 65536) return false;
    *n = value;
    return true;
}

static bool source_name_read(struct reader *r, const char **text, size_t *n)
{
    if (!number_read(r, n) || strnlen(r->at, *n) < *n) return false;
    *text = r->at;
    r->at += *n;
    return true;
}

/* ---- skipping template arguments ---- */

static bool skip_to_end(struct reader *r);

/* S_, S12_, T_, T0_: up to the underscore; St, Sa and so on: two letters. */
static bool skip_back(struct reader *r)
{
    const bool is_substitution = *r->at++ == 'S';
    if (is_substitution && *r->at >= 'a' && *r->at <= 'z') {
        r->at++;
        return true;
    }
    while ((*r->at >= '0' && *r->at <= '9') || (is_substitution && *r->at >= 'A' && *r->at <= 'Z')) r->at++;
    return *r->at++ == '_';
}

/* L type value E. */
static bool skip_literal(struct reader *r)
{
    const char *text;
    size_t n;
    r->at++;
    if (r->at[0] == '_' && r->at[1] == 'Z') return skip_to_end(r);
    if (*r->at == 'N') {
        r->at++;
        if (!skip_to_end(r)) return false;
    } else if (*r->at == 'S' || *r->at == 'T') {
        if (!skip_back(r)) return false;
        if (*r->at >= '1' && *r->at <= '9' && r->at[-1] == 't' && !source_name_read(r, &text, &n)) return false;
    } else if (*r->at >= '1' && *r->at <= '9') {
        if (!source_name_read(r, &text, &n)) return false;
    }
    while (*r->at && *r->at != 'E') r->at++;
    return *r->at++ == 'E';
}

static bool skip_one(struct reader *r)
{
    const char *text;
    size_t n;
    const char c = *r->at;
    if (!c) return false;
    if (c >= '1' && c <= '9') return source_name_read(r, &text, &n);
    if (c == 'S' || c == 'T') return skip_back(r);
    if (c == 'L' && r->at[1] >= '1' && r->at[1] <= '9') r->at++; /* a name with internal linkage */
    else if (c == 'L') return skip_literal(r);
    else if (c == 'D' && (r->at[1] == 'T' || r->at[1] == 't' || r->at[1] == 'O')) r->at += 2, r->nesting++;
    else if (c == 'D' && r->at[1]) r->at += 2;
    else if (c == 'A' || (c == 'U' && r->at[1] == 't')) { /* dimensions; an unnamed type */
        while (*r->at && *r->at != '_') r->at++;
        if (!*r->at++) return false;
    } else if (c == 'U' && r->at[1] == 'l') {
        r->at += 2;
        if (!skip_to_end(r)) return false;
        while (*r->at >= '0' && *r->at <= '9') r->at++;
        if (*r->at++ != '_') return false;
    } else if (strchr("INXFJZ", c)) {
        r->at++;
        return skip_to_end(r);
    } else {
        r->at++;
    }
    return true;
}

/* Skips to behind the matching E. */
static bool skip_to_end(struct reader *r)
{
    if (++r->nesting > NESTING_MAX) return false;
    for (const int depth = r->nesting; r->nesting >= depth;) {
        if (*r->at != 'E') {
            if (!skip_one(r)) return false;
            continue;
        }
        r->at++;
        r->nesting--;
    }
    return true;
}

/* ---- names ---- */

static const char *const operators[][2] = {
    {"nw", " new"}, {"na", " new[]"}, {"dl", " delete"}, {"da", " delete[]"}, {"aw", " co_await"}, {"ps", "+"},
    {"ng", "-"},    {"ad", "&"},      {"de", "*"},       {"co", "~"},         {"pl", "+"},         {"mi", "-"},
    {"ml", "*"},    {"dv", "/"},      {"rm", "%"},       {"an", "&"},         {"or", "|"},         {"eo", "^"},
    {"aS", "="},    {"pL", "+="},     {"mI", "-="},      {"mL", "*="},        {"dV", "/="},        {"rM", "%="},
    {"aN", "&="},   {"oR", "|="},     {"eO", "^="},      {"ls", "<<"},        {"rs", ">>"},        {"lS", "<<="},
    {"rS", ">>="},  {"eq", "=="},     {"ne", "!="},      {"lt", "<"},         {"gt", ">"},         {"le", "<="},
    {"ge", ">="},   {"ss", "<=>"},    {"nt", "!"},       {"aa", "&&"},        {"oo", "||"},        {"pp", "++"},
    {"mm", "--"},   {"cm", ","},      {"pm", "->*"},     {"pt", "->"},        {"cl", "()"},        {"ix", "[]"},
};
static const char *const standards[][2] = {
    {"St", "std"},          {"Sa", "std::allocator"}, {"Sb", "std::basic_string"}, {"Ss", "std::string"},
    {"Si", "std::istream"}, {"So", "std::ostream"},   {"Sd", "std::iostream"},
};

static void join(struct reader *r)
{
    if (r->used) put(r, "::", 2);
    r->last = r->used;
}

/* Reads an abbreviation of two letters, and puts what it stands for behind `prefix`. */
static bool short_read(struct reader *r, const char *const rows[][2], size_t count, const char *prefix)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(r->at, rows[i][0], 2) != 0) continue;
        join(r);
        put(r, prefix, strlen(prefix));
        put(r, rows[i][1], strlen(rows[i][1]));
        r->last_end = r->used;
        r->at += 2;
        return true;
    }
    return false;
}

static bool operator_read(struct reader *r)
{
    return short_read(r, operators, sizeof operators / sizeof *operators, "operator");
}

/* A constructor or destructor has the name of its scope. */
static bool structor_read(struct reader *r)
{
    char name[KP_CALLTRACE_NAME_MAX];
    const size_t n = r->last_end - r->last;
    const bool is_destructor = r->at[0] == 'D';
    if (r->at[1] < '0' || r->at[1] > '5' || r->last_end <= r->last) return false;
    memcpy(name, r->out + r->last, n);
    join(r);
    if (is_destructor) put(r, "~", 1);
    put(r, name, n);
    r->at += 2;
    r->last_end = r->used;
    return true;
}

static bool standard_read(struct reader *r)
{
    if (!short_read(r, standards, sizeof standards / sizeof *standards, "")) return false;
    const char *colon = strrchr(r->out + r->last, ':');
    if (colon) r->last = (size_t)(colon + 1 - r->out);
    return true;
}

static bool name_read(struct reader *r)
{
    const char *text;
    size_t n;
    if (*r->at == 'L') r->at++;
    if (*r->at >= '1' && *r->at <= '9') {
        if (!source_name_read(r, &text, &n)) return false;
        join(r);
        if (n >= 10 && memcmp(text, "_GLOBAL__N", 10) == 0) put(r, "(anonymous namespace)", 21);
        else put(r, text, n);
        r->last_end = r->used;
        return true;
    }
    if (*r->at == 'S') return standard_read(r);
    if (*r->at == 'C' || *r->at == 'D') return structor_read(r);
    return *r->at >= 'a' && *r->at <= 'z' && operator_read(r);
}

/* Reads what follows a name: ABI tags, template arguments. */
static bool behind_read(struct reader *r)
{
    const char *text;
    size_t n;
    while (*r->at == 'B') {
        r->at++;
        if (!source_name_read(r, &text, &n)) return false;
        put(r, "[abi:", 5);
        put(r, text, n);
        put(r, "]", 1);
    }
    if (*r->at != 'I') return true;
    r->at++;
    put(r, "<...>", 5);
    return skip_to_end(r);
}

bool kp_calltrace_name(const char *mangled, char *out, size_t bytes)
{
    struct reader r = {.at = mangled + 2, .out = out, .bytes = bytes};
    out[0] = 0;
    if (mangled[0] != '_' || mangled[1] != 'Z') return false;
    if (*r.at != 'N') {
        const bool is_std = r.at[0] == 'S' && r.at[1] == 't';
        return (!is_std || standard_read(&r)) && name_read(&r) && behind_read(&r) && r.used < bytes - 1;
    }
    r.at++;
    r.at += strspn(r.at, "rVK");
    if (*r.at == 'R' || *r.at == 'O') r.at++;
    while (*r.at && *r.at != 'E')
        if (!name_read(&r) || !behind_read(&r)) return false;
    return *r.at == 'E' && r.used && r.used < bytes - 1;
}

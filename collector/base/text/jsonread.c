// SPDX-License-Identifier: Apache-2.0
/*
 * jsonread.c - reads JSON: the one reader of the library and of the command
 *
 * Called by: config.c (constructor), preload/control/api.c (kprof_metadata_json), the exporter, the CLI
 * Memory:    a check allocates nothing. A reading in pieces asks `grow` for a buffer.
 * Safe in:   signal handlers yes (a check); after fork yes
 *
 * A string is passed by words of eight bytes. A bit a level tells an object from a list, so a hostile text cannot use
 * up a small stack. See decisions/136.
 */
#include "collector/base/text/kp_jsonread.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "collector/base/text/kp_utf8.h"

#include "collector/base/kp_poison.h"

enum { HELD_LEAST = 64 << 10 }; /* a longer part of a value is read again only once it is twice as long */
/* The token that the reader expects next. BEHIND: what stands behind a value in a list or an object. */
enum state { VALUE, FIRST_VALUE, FIRST_KEY, KEY, COLON, BEHIND, DONE };

/*
 * Each taker takes where it stands, and returns where it ends. NULL: the text is cut here (why is NULL), or wrong.
 */

static const char *stop(struct kp_jsonread *r, const char *at, const char *why)
{
    r->at = at;
    r->why = why;
    return NULL;
}

/* The text ends at `at`, inside of a value. */
static const char *cut(struct kp_jsonread *r, const char *at, const char *why)
{
    return stop(r, at, r->is_whole ? why : NULL);
}

/* ---- words of eight bytes ---- */

#define INLINE static inline __attribute__((always_inline)) /* a call a value costs a tenth of the reading */
#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* Eight bytes, the first of them lowest. */
static uint64_t word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

/* The number of the lowest byte that is not zero. */
static unsigned first_byte(uint64_t word) { return (unsigned)__builtin_ctzll(word) / 8; }

#define SPACES (UINT64_C(1) << ' ' | 1 << '\n' | 1 << '\r' | 1 << '\t')
static bool is_space(char c) { return (unsigned char)c <= ' ' && SPACES >> c & 1; }

/*
 * Most of a text is read without a look for its end. `end` is then a quote in the text, and FAR bytes are behind it:
 * blanks, digits and the plain part of a string stop there. `is_far` is a constant in each call.
 */
enum { FAR = 16 };
#define IS_IN(at, end) (is_far || (at) < (end))

/*
 * One blank is the common case. Else a blank and the eight that follow it are a step: a line's end with its indent.
 */
INLINE const char *space_skip(const char *at, const char *end, const bool is_far)
{
    if ((is_far || end - at > 1) && *at == ' ' && (unsigned char)at[1] > ' ') return at + 1;
    while (IS_IN(at, end) && is_space(*at)) {
        ++at;
        if (!is_far && end - at < 8) continue;
        const uint64_t others = word_at(at) ^ ONES * ' ';
        at += others ? first_byte(others) : 8;
    }
    return at;
}

/*
 * Marks the first quote, backslash or control letter of eight bytes by its highest bit; maybe others behind it.
 * Subtracting borrows only from bytes behind one that is marked. A quote and the control letters are those below 0x21
 * once bit 1 is turned over: 0x22 becomes 0x20.
 */
static uint64_t special_mark(uint64_t word)
{
    const uint64_t quotes = (word ^ ONES * 2) - ONES * 0x21, backslashes = (word ^ ONES * '\\') - ONES;
    return (quotes | backslashes) & ~word & HIGHS;
}

/* The end of a string's plain part. `also`: HIGHS, or 0 where letters beyond ASCII are plain. */
INLINE const char *plain_end(const char *at, const char *end, const uint64_t also, const bool is_far)
{
    for (; is_far || end - at >= 8; at += 8) {
        const uint64_t word = word_at(at), mark = special_mark(word) | (word & also);
        if (mark) return at + first_byte(mark);
    }
    for (; at < end; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\' || c < 0x20 || (c & also)) break;
    }
    return at;
}

/* ---- strings ---- */

/* Reads four hexadecimal digits. UINT32_MAX: they are none. */
static uint32_t hex_read(const char *at, const char *end)
{
    uint32_t code = 0;
    if (end - at < 4) return UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        const char c = at[i], low = (char)(c | 0x20);
        const int digit = c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
        if (digit < 0) return UINT32_MAX;
        code = code << 4 | (uint32_t)digit;
    }
    return code;
}

/* Reads what follows \u, the second half of a pair as well. */
static const char *unicode_read(const char *at, const char *end, uint32_t *code)
{
    *code = hex_read(at, end);
    if (*code == UINT32_MAX) return *code = 0xfffd, at;
    at += 4;
    if (*code < 0xd800 || *code > 0xdfff) return at;
    if (*code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        const uint32_t low = hex_read(at + 2, end);
        if (low >= 0xdc00 && low <= 0xdfff) return *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00), at + 6;
    }
    return *code = 0xfffd, at;
}

static const char escape_names[] = "\"\\/bfnrt", escape_letters[] = "\"\\/\b\f\n\r\t";

size_t kp_jsonread_plain(char *out, size_t room, const char *text, size_t bytes)
{
    const char *const end = text + bytes;
    char *to = out;
    while (text < end && (size_t)(to - out) + 4 <= room) {
        if (*text != '\\' || end - text < 2) {
            *to++ = *text++;
            continue;
        }
        const char *name = memchr(escape_names, text[1], sizeof escape_names - 1);
        uint32_t code = name ? (unsigned char)escape_letters[name - escape_names] : (unsigned char)text[1];
        const bool is_code = text[1] == 'u';
        text += 2;
        if (is_code) text = unicode_read(text, end, &code);
        to += kp_utf8_put(to, code);
    }
    return (size_t)(to - out);
}

static const char *escape_take(struct kp_jsonread *r, const char *at, const char *end)
{
    r->has_escapes = true;
    if (end - at < 2) return cut(r, end, "unknown escape");
    if (memchr(escape_names, at[1], sizeof escape_names - 1)) return at + 2;
    if (at[1] != 'u') return stop(r, at + 1, "unknown escape");
    for (int i = 2; i < 6; i++) {
        if (at + i == end) return cut(r, end, "expected four hex digits after \\u");
        const char c = at[i], low = (char)(c | 0x20);
        if (!((c >= '0' && c <= '9') || (low >= 'a' && low <= 'f')))
            return stop(r, at + i, "expected four hex digits after \\u");
    }
    return at + 6;
}

/* Takes what is not plain in a string. */
static __attribute__((noinline)) const char *special_take(struct kp_jsonread *r, const char *at, const char *end)
{
    if (*at == '\\') return escape_take(r, at, end);
    if (!((unsigned char)*at & 0x80)) return stop(r, at, "control character in a string");
    const size_t bytes = kp_utf8_length((const unsigned char *)at, (size_t)(end - at));
    if (!bytes && end - at < 4) return cut(r, at, "not UTF-8");
    return bytes ? at + bytes : stop(r, at, "not UTF-8");
}

static void room_make(struct kp_jsonread *r, struct kp_json_buffer *b, size_t bytes)
{
    if (bytes <= b->room) return;
    b->room = bytes < 2048 ? 4096 : 2 * bytes;
    b->data = r->grow(b->data, b->room);
}

/* Passes the rest of a string. Returns where its last quote stands. */
static __attribute__((noinline)) const char *string_pass(struct kp_jsonread *r, const char *at)
{
    for (;;) {
        at = plain_end(at, r->end, r->is_utf8 ? HIGHS : 0, false);
        if (at == r->end) return cut(r, at, "string without an end");
        if (*at == '"') return at;
        at = special_take(r, at, r->end);
        if (!at) return NULL;
    }
}

/* Stands on the opening quote, and ends behind the closing one. */
INLINE const char *string_take(struct kp_jsonread *r, const char *at, const char *end, const char **text, size_t *bytes,
                               const bool is_far)
{
    const char *const from = *text = at + 1;
    at = plain_end(from, end, HIGHS, is_far);
    *bytes = (size_t)(at - from);
    if (IS_IN(at, end) && *at == '"') return at + 1;
    r->has_escapes = false;
    at = string_pass(r, at);
    if (!at) return NULL;
    *bytes = (size_t)(at - from);
    if (r->has_escapes && r->calls) {
        room_make(r, &r->plain, *bytes + 4);
        *bytes = kp_jsonread_plain(r->plain.data, r->plain.room, from, *bytes);
        *text = r->plain.data;
    }
    return at + 1;
}

/* ---- numbers and words ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Takes one digit or more, and adds them to `sum`, which may overflow. */
INLINE const char *digits_take(struct kp_jsonread *r, const char *at, const char *end, uint64_t *sum, const bool is_far)
{
    if (!IS_IN(at, end)) return cut(r, at, "expected a digit");
    if (!is_digit(*at)) return stop(r, at, "expected a digit");
    do *sum = *sum * 10 + (uint64_t)(*at++ - '0');
    while (IS_IN(at, end) && is_digit(*at));
    return at;
}

static __attribute__((noinline)) const char *exponent_take(struct kp_jsonread *r, const char *at)
{
    uint64_t sum = 0;
    r->decimals = -1;
    if (at < r->end && (*at == '+' || *at == '-')) at++;
    return digits_take(r, at, r->end, &sum, false);
}

INLINE const char *number_take(struct kp_jsonread *r, const char *at, const char *end, const bool is_far)
{
    const char *const from = at + (*at == '-');
    uint64_t sum = 0;
    at = IS_IN(from, end) && *from == '0' ? from + 1 : digits_take(r, from, end, &sum, is_far);
    if (!at) return NULL;
    r->decimals = at - from > KP_JSON_DIGITS ? -1 : 0;
    if (IS_IN(at, end) && *at == '.') {
        const char *const point = at;
        at = digits_take(r, at + 1, end, &sum, is_far);
        if (!at) return NULL;
        r->decimals = at - from > KP_JSON_DIGITS + 1 ? -1 : (int8_t)(at - point - 1);
    }
    r->digits = sum;
    if (IS_IN(at, end) && (*at | 0x20) == 'e') at = exponent_take(r, at + 1);
    return at == r->end && !r->is_whole ? cut(r, at, NULL) : at; /* another digit may follow */
}

static const char *word_take(struct kp_jsonread *r, const char *at, const char *end, const char *word)
{
    const size_t bytes = strlen(word), left = (size_t)(end - at);
    if (memcmp(at, word, left < bytes ? left : bytes) != 0) return stop(r, at, "expected a value");
    return left < bytes ? cut(r, at, "expected a value") : at + bytes;
}

/*
 * The value at `at` is wrong, and the reader has said why. Python's json writes NaN, Infinity and -Infinity, C inf, nan
 * and -nan: JSON has none.
 */
static const char *value_refuse(struct kp_jsonread *r, const char *at, const char *end)
{
    const char *const word = *at == '-' ? at + 1 : at;
    char low[4] = "";
    for (int i = 0; i < 3 && word + i < end; i++) low[i] = (char)(word[i] | 0x20);
    if (strcmp(low, "nan") == 0 || strcmp(low, "inf") == 0) return stop(r, at, "NaN or Infinity in place of a number");
    return NULL;
}

/* ---- values ---- */

/* `call` is a call of r->calls, which may stop the reading. Returns `behind` or NULL. */
#define CALL(r, behind, call) \
    ((r)->at = (behind), !(r)->calls || (r)->calls->call ? (behind) : stop((r), (behind), "stopped"))

static bool is_in_object(const struct kp_jsonread *r) { return r->inner & 1; }

INLINE const char *comma_take(struct kp_jsonread *r, const char *at)
{
    r->state = is_in_object(r) ? KEY : VALUE;
    return at + 1;
}

/* Behind a value. Takes the comma that mostly follows. */
INLINE const char *value_end(struct kp_jsonread *r, const char *at, const char *end)
{
    if (!at) return NULL;
    if (at < end && *at == ',' && r->depth) return comma_take(r, at);
    r->state = r->depth ? BEHIND : DONE;
    return at;
}

static bool levels_grow(struct kp_jsonread *r)
{
    if (!r->grow) return false;
    uint64_t *more = r->grow(r->levels == r->few ? NULL : r->levels, r->most / 4);
    if (r->levels == r->few) memcpy(more, r->few, sizeof r->few);
    r->levels = more;
    r->most *= 2;
    return true;
}

/* `inner` is full: its levels go to `levels`. */
static bool inner_keep(struct kp_jsonread *r)
{
    if (r->depth == r->most && !levels_grow(r)) return false;
    r->levels[r->depth / 64 - 1] = r->inner;
    return true;
}

INLINE const char *bracket_open(struct kp_jsonread *r, const char *at, const bool is_object)
{
    if (r->depth % 64 == 0 && r->depth && !inner_keep(r)) return stop(r, at, "nested too deep");
    r->depth++;
    r->inner = r->inner << 1 | is_object;
    r->state = is_object ? FIRST_KEY : FIRST_VALUE;
    return is_object ? CALL(r, at + 1, map_start(r->context)) : CALL(r, at + 1, array_start(r->context));
}

static const char *bracket_close(struct kp_jsonread *r, const char *at, const char *end)
{
    const bool is_object = *at++ == '}';
    r->inner >>= 1;
    if (--r->depth % 64 == 0 && r->depth) r->inner = r->levels[r->depth / 64 - 1];
    at = is_object ? CALL(r, at, map_end(r->context)) : CALL(r, at, array_end(r->context));
    return value_end(r, at, end);
}

static __attribute__((noinline)) const char *word_value_take(struct kp_jsonread *r, const char *at)
{
    static const char *const words[] = {"null", "false", "true"};
    int i = 2;
    while (i && *at != words[i][0]) i--;
    const char *to = word_take(r, at, r->end, words[i]);
    if (!to) return r->why ? value_refuse(r, at, r->end) : NULL;
    r->decimals = -1;
    to = i ? CALL(r, to, boolean(r->context, i - 1)) : CALL(r, to, null(r->context));
    return value_end(r, to, r->end);
}

INLINE const char *value_take(struct kp_jsonread *r, const char *at, const char *end, const bool is_far)
{
    const char *text;
    size_t bytes;
    if (*at == '"') {
        at = string_take(r, at, end, &text, &bytes, is_far);
        if (!at) return NULL;
        r->decimals = -1;
        at = CALL(r, at, string(r->context, (const unsigned char *)text, bytes));
        return value_end(r, at, end);
    }
    if (*at == '{') return bracket_open(r, at, true);
    if (*at == '[') return bracket_open(r, at, false);
    if (*at != '-' && !is_digit(*at)) return word_value_take(r, at);
    const char *const to = number_take(r, at, end, is_far);
    if (!to) return r->why ? value_refuse(r, at, r->end) : NULL;
    return value_end(r, CALL(r, to, number(r->context, at, (size_t)(to - at))), end);
}

/* Takes a name, and its value where that stands near. */
INLINE const char *member_take(struct kp_jsonread *r, const char *at, const char *end, const bool is_far)
{
    const char *text;
    size_t bytes;
    if (*at != '"') return stop(r, at, "expected a member name in double quotes");
    at = string_take(r, at, end, &text, &bytes, is_far);
    if (!at) return NULL;
    at = CALL(r, at, map_key(r->context, (const unsigned char *)text, bytes));
    if (!at) return NULL;
    r->state = COLON;
    if (at >= end || *at != ':') return at;
    r->state = VALUE;
    at++;
    if (IS_IN(at, end) && *at == ' ') at++;
    if (at >= end || (unsigned char)*at <= ' ') return at;
    const char *const to = value_take(r, at, end, is_far);
    return to || r->why ? to : at;
}

INLINE const char *behind_take(struct kp_jsonread *r, const char *at, const char *end)
{
    if (*at == ',') return comma_take(r, at);
    if (*at == (is_in_object(r) ? '}' : ']')) return bracket_close(r, at, end);
    return stop(r, at, is_in_object(r) ? "expected ',' or '}'" : "expected ',' or ']'");
}

/* Takes what stands at `at`, which is no blank. */
INLINE const char *item_take(struct kp_jsonread *r, const char *at, const char *end, const bool is_far)
{
    switch (r->state) {
    case FIRST_VALUE:
        if (*at == ']') return bracket_close(r, at, end);
        /* fall through */
    case VALUE: return value_take(r, at, end, is_far);
    case FIRST_KEY:
        if (*at == '}') return bracket_close(r, at, end);
        /* fall through */
    case KEY: return member_take(r, at, end, is_far);
    case COLON:
        if (*at != ':') return stop(r, at, "expected ':'");
        r->state = VALUE;
        return at + 1;
    case BEHIND: return behind_take(r, at, end);
    default: return stop(r, at, "text after the end");
    }
}

/* Why a text must not end in this state. NULL: it may. */
static const char *end_why(const struct kp_jsonread *r)
{
    switch (r->state) {
    case DONE: return NULL;
    case FIRST_KEY:
    case KEY: return "expected a member name in double quotes";
    case COLON: return "expected ':'";
    case BEHIND: return is_in_object(r) ? "expected ',' or '}'" : "expected ',' or ']'";
    default: return "ends too early";
    }
}

/* ---- feeding ---- */

/* Reads up to the end, or to a value that is cut. Returns the end of what was taken; NULL: wrong. */
INLINE const char *part_read(struct kp_jsonread *r, const char *at, const char *end, const bool is_far)
{
    while (at < end) {
        const char *const from = space_skip(at, end, is_far);
        const char *const to = from == end ? NULL : item_take(r, from, end, is_far);
        if (!to) return r->why ? NULL : at;
        at = to;
    }
    return at;
}

static const char *text_read(struct kp_jsonread *r, const char *at, size_t bytes)
{
    const char *const far = bytes > FAR ? memrchr(at, '"', bytes - FAR) : NULL;
    r->end = at + bytes;
    if (far) at = part_read(r, at, far, true);
    return at ? part_read(r, at, r->end, false) : NULL;
}

void kp_jsonread_open(struct kp_jsonread *r)
{
    r->levels = r->few;
    r->most = KP_JSON_FEW;
}

void kp_jsonread_close(struct kp_jsonread *r)
{
    if (!r->grow) return;
    if (r->levels != r->few) r->grow(r->levels, 0);
    if (r->held.data) r->grow(r->held.data, 0);
    if (r->plain.data) r->grow(r->plain.data, 0);
}

void kp_jsonread_enter_list(struct kp_jsonread *r)
{
    r->depth = 1;
    r->state = BEHIND;
}

static void held_add(struct kp_jsonread *r, const char *text, size_t bytes)
{
    room_make(r, &r->held, r->held.used + bytes);
    memcpy(r->held.data + r->held.used, text, bytes);
    r->held.used += bytes;
}

bool kp_jsonread_feed(struct kp_jsonread *r, const char *text, size_t bytes)
{
    if (r->why) return false;
    const size_t joined = r->held.used;
    r->fed += bytes;
    if (joined) {
        held_add(r, text, bytes);
        if (!r->is_whole && joined > HELD_LEAST && r->held.used < 2 * r->tried) return true;
        text = r->held.data;
        bytes = r->held.used;
    }
    r->from = text;
    r->before = r->fed - bytes;
    const char *const at = text_read(r, text, bytes);
    if (!at) return false;
    const size_t left = bytes - (size_t)(at - text);
    if (joined && at != text) memmove(r->held.data, at, left);
    else if (!joined && left && r->grow) held_add(r, at, left);
    r->held.used = r->tried = r->grow ? left : 0;
    r->from = NULL;
    return true;
}

bool kp_jsonread_end(struct kp_jsonread *r)
{
    r->is_whole = true;
    if (!kp_jsonread_feed(r, "", 0)) return false;
    r->why = end_why(r);
    return !r->why;
}

uint64_t kp_jsonread_offset(const struct kp_jsonread *r)
{
    return r->from ? r->before + (uint64_t)(r->at - r->from) : r->fed;
}

/* ---- checks ---- */

int kp_jsonread_check(const char *text, size_t bytes, size_t *offset, const char **why)
{
    struct kp_jsonread r = {.is_utf8 = true, .is_whole = true};
    kp_jsonread_open(&r);
    if (kp_jsonread_feed(&r, text, bytes) && kp_jsonread_end(&r)) return 0;
    *offset = (size_t)kp_jsonread_offset(&r);
    *why = r.why;
    return -EINVAL;
}

int kp_jsonread_check_object(const char *text, size_t bytes, size_t *offset, const char **why)
{
    size_t at = 0;
    const int rc = kp_jsonread_check(text, bytes, offset, why);
    if (rc < 0) return rc;
    while (at < bytes && is_space(text[at])) at++;
    if (text[at] == '{') return 0;
    *offset = at;
    *why = "expected an object { }";
    return -EINVAL;
}

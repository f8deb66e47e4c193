// SPDX-License-Identifier: Apache-2.0
/*
 * fields.h - an object of JSON as data: a row for each member, of which the object and its schema are written
 *
 * A file lists the members of an item, which they see as `r`, and gets step_fields of it:
 *
 *     #define STEP(F, IF)                           \
 *         F(WHOLE, step, r->number)                 \
 *         IF(r->is_slow, MS, above_ms, r->above_ns) \
 *         F(LIST, ops, (op, r->op_count, &r->ops[i]))
 *     KP_FIELDS(step, struct step, STEP)
 *
 * F(kind, key, value) is a member of every such object, IF(condition, kind, key, value) of those of which it is true. A
 * text may be written to `room`, of KP_FIELD_ROOM bytes. The kinds, and what stands in brackets for a value:
 *   TEXT; MAYBE: NULL null; SOME: NULL left out; WORD (text, "one|two"); TEXTS (count, text at i)
 *   BOOL; ID: a number as text; WHOLE; MAYBE_WHOLE: below 0 null; REAL: six digits; FIXED (decimals, number)
 *   MAYBE_FIXED: NAN null
 *   MS, SHARE, PERCENT, TIMES, BYTES, COUNT: units of columns; MAYBE_MS: NAN null; MAYBE_SHARE: below 0 null
 *   WHOLES, MS_BY (count, key at i, value at i): an object of numbers
 *   OBJECT (fields, item); MAYBE_OBJECT: null where the item is NULL; LIST (fields, count, item at i); LINES: likewise,
 *   each item on a line of its own; EACH_OF (fields, function, item): likewise, by function(j, key, item)
 *   VERSION: a constant; PART (fields, item): the members of other fields
 *   COLUMNS (columns, table, row): a member for each column; OTHER (schema, function, item): function(j, key, item);
 *   MORE (schema, function, item): members whose keys are not known before; LINE: the next member begins a line
 */
#pragma once

#include <math.h>
#include <stddef.h>

#include "export/show/columns.h"
#include "export/show/jsonout.h"

enum { KP_FIELD_ROOM = 4096 };
enum kp_field_kind {
    KP_FIELD_LINE,
    KP_FIELD_TYPE, /* `of` is the schema */
    KP_FIELD_SOME, /* likewise, and may be left out */
    KP_FIELD_WORD, /* `of`: the words */
    KP_FIELD_OBJECT,
    KP_FIELD_MAYBE, /* an object or null */
    KP_FIELD_LIST,
    KP_FIELD_PART, /* the members of other fields */
    KP_FIELD_COLUMNS,
    KP_FIELD_MORE
};
struct kp_field {
    const char *key;
    bool is_always;
    enum kp_field_kind kind;
    const void *of; /* fields, or columns, or text */
    size_t count;   /* of columns */
};
struct kp_fields {
    void (*put)(struct kp_jsonout *j, const void *item);
    const struct kp_field *of;
    size_t count;
};

/* Writes an item as an object; NULL: null, or nothing in an array. */
void kp_fields_put(struct kp_jsonout *j, const char *key, const struct kp_fields *fields, const void *item);
void kp_fields_line(FILE *out, const struct kp_fields *fields, const void *item); /* an object on a line */
/* Writes the JSON Schema of a command's output, each value of which is an object of one of these, up to NULL. */
void kp_fields_schema(FILE *out, const struct kp_fields *const *each);

#define KP_TYPE(name) "{\"type\":\"" name "\"}"
#define KP_TYPE_MAYBE(name) "{\"type\":[\"" name "\",\"null\"]}"
#define KP_TYPE_OF_EACH(name) "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"" name "\"}}"
#define KP_TYPE_ARRAY(item) "{\"type\":\"array\",\"items\":" item "}"

#define KP_FIELDS(name, ITEM, ROWS)                                                     \
    static void name##_put(struct kp_jsonout *j, const void *item)                      \
    {                                                                                   \
        const ITEM *const r = item;                                                     \
        char room[KP_FIELD_ROOM];                                                       \
        (void)r, (void)room;                                                            \
        ROWS(KP_FIELD_PUT, KP_FIELD_PUT_IF)                                             \
    }                                                                                   \
    static const struct kp_field name##_rows[] = {ROWS(KP_FIELD_ROW, KP_FIELD_ROW_IF)}; \
    static const struct kp_fields name##_fields = {name##_put, name##_rows, sizeof name##_rows / sizeof *name##_rows};

#define KP_FIELD_PUT(kind, key, value) KP_PUT_##kind(#key, value);
#define KP_FIELD_PUT_IF(condition, kind, key, value) \
    if (condition) KP_PUT_##kind(#key, value);
#define KP_FIELD_ROW(kind, key, value) {#key, true, KP_KIND_##kind(value)},
#define KP_FIELD_ROW_IF(condition, kind, key, value) {#key, false, KP_KIND_##kind(value)},
#define KP_FIELD_CALL(macro, ...) macro(__VA_ARGS__)
#define KP_FIELD_BARE(...) __VA_ARGS__
#define KP_FIELD_WITH(macro, key, value) KP_FIELD_CALL(macro, key, KP_FIELD_BARE value)

/* ---- what each kind writes ---- */
#define KP_PUT_LINE(key, value) kp_jsonout_line(j)
#define KP_PUT_TEXT(key, value) kp_jsonout_text(j, key, value)
#define KP_PUT_MAYBE(key, value) kp_jsonout_text(j, key, value)
#define KP_PUT_SOME(key, value) kp_jsonout_some(j, key, value)
#define KP_PUT_WORD(key, value) KP_FIELD_WITH(KP_PUT_WORD_, key, value)
#define KP_PUT_WORD_(key, text, words) kp_jsonout_text(j, key, text)
#define KP_PUT_TEXTS(key, value) KP_FIELD_WITH(KP_PUT_TEXTS_, key, value)
#define KP_PUT_TEXTS_(key, count, ...) KP_PUT_EACH(key, '[', ']', count, kp_jsonout_text(j, NULL, __VA_ARGS__))
#define KP_PUT_BOOL(key, value) kp_jsonout_bool(j, key, value)
#define KP_PUT_ID(key, value) kp_jsonout_id(j, key, value)
#define KP_PUT_WHOLE(key, value) kp_jsonout_whole(j, key, (int64_t)(value))
#define KP_PUT_MAYBE_WHOLE(key, value) kp_jsonout_number(j, key, (value) < 0 ? NAN : (double)(value), 0)
#define KP_PUT_REAL(key, value) kp_jsonout_real(j, key, value)
#define KP_PUT_FIXED(key, value) KP_FIELD_WITH(KP_PUT_FIXED_, key, value)
#define KP_PUT_FIXED_(key, decimals, value) kp_jsonout_number(j, key, (double)(value), decimals)
#define KP_PUT_MAYBE_FIXED(key, value) KP_FIELD_WITH(KP_PUT_FIXED_, key, value)
#define KP_PUT_UNIT(key, value, unit) kp_jsonout_unit(j, key, (double)(value), KP_UNIT_##unit)
#define KP_PUT_MS(key, value) KP_PUT_UNIT(key, value, MS)
#define KP_PUT_MAYBE_MS(key, value) KP_PUT_UNIT(key, value, MS)
#define KP_PUT_SHARE(key, value) KP_PUT_UNIT(key, value, SHARE)
#define KP_PUT_MAYBE_SHARE(key, value) KP_PUT_UNIT(key, (value) < 0 ? NAN : (value), SHARE)
#define KP_PUT_VERSION(key, value) kp_jsonout_whole(j, key, value)
#define KP_PUT_PART(key, value) KP_FIELD_WITH(KP_PUT_PART_, key, value)
#define KP_PUT_PART_(key, name, ...) name##_put(j, __VA_ARGS__)
#define KP_PUT_PERCENT(key, value) KP_PUT_UNIT(key, value, PERCENT)
#define KP_PUT_TIMES(key, value) KP_PUT_UNIT(key, value, TIMES)
#define KP_PUT_BYTES(key, value) KP_PUT_UNIT(key, value, BYTES)
#define KP_PUT_COUNT(key, value) KP_PUT_UNIT(key, value, COUNT)
#define KP_PUT_WHOLES(key, value) KP_FIELD_WITH(KP_PUT_WHOLES_, key, value)
#define KP_PUT_WHOLES_(key, count, its_key, value) \
    KP_PUT_EACH(key, '{', '}', count, kp_jsonout_whole(j, its_key, value))
#define KP_PUT_MS_BY(key, value) KP_FIELD_WITH(KP_PUT_MS_BY_, key, value)
#define KP_PUT_MS_BY_(key, count, its_key, value) KP_PUT_EACH(key, '{', '}', count, KP_PUT_UNIT(its_key, value, MS))
#define KP_PUT_OBJECT(key, value) KP_FIELD_WITH(KP_PUT_OBJECT_, key, value)
#define KP_PUT_OBJECT_(key, name, ...) kp_fields_put(j, key, &name##_fields, __VA_ARGS__)
#define KP_PUT_MAYBE_OBJECT(key, value) KP_FIELD_WITH(KP_PUT_OBJECT_, key, value)
#define KP_PUT_LIST(key, value) KP_FIELD_WITH(KP_PUT_LIST_, key, value)
#define KP_PUT_LIST_(key, name, count, ...) KP_PUT_EACH(key, '[', ']', count, KP_PUT_OBJECT_(NULL, name, __VA_ARGS__))
#define KP_PUT_LINES(key, value) KP_FIELD_WITH(KP_PUT_LINES_, key, value)
#define KP_PUT_LINES_(key, name, count, ...) \
    KP_PUT_EACH(key, '[', ']', count, (kp_jsonout_line(j), KP_PUT_OBJECT_(NULL, name, __VA_ARGS__)))
#define KP_PUT_EACH(key, from, to, count, put)            \
    do {                                                  \
        kp_jsonout_open(j, key, from);                    \
        for (size_t i = 0; i < (size_t)(count); i++) put; \
        kp_jsonout_close(j, to);                          \
    } while (0)
#define KP_PUT_COLUMNS(key, value) KP_FIELD_WITH(KP_PUT_COLUMNS_, key, value)
#define KP_PUT_COLUMNS_(key, columns, table, row) kp_columns_json(j, KP_COLUMNS_OF(columns, table, row, 1), row)
#define KP_PUT_EACH_OF(key, value) KP_FIELD_WITH(KP_PUT_OTHER_, key, value)
#define KP_PUT_OTHER(key, value) KP_FIELD_WITH(KP_PUT_OTHER_, key, value)
#define KP_PUT_OTHER_(key, schema, function, ...) function(j, key, __VA_ARGS__)
#define KP_PUT_MORE(key, value) KP_FIELD_WITH(KP_PUT_MORE_, key, value)
#define KP_PUT_MORE_(key, schema, function, ...) function(j, __VA_ARGS__)

/* ---- what each kind is in a schema ---- */
#define KP_KIND_LINE(value) KP_FIELD_LINE, NULL, 0
#define KP_KIND_TEXT(value) KP_FIELD_TYPE, KP_TYPE("string"), 0
#define KP_KIND_MAYBE(value) KP_FIELD_TYPE, KP_TYPE_MAYBE("string"), 0
#define KP_KIND_SOME(value) KP_FIELD_SOME, KP_TYPE("string"), 0
#define KP_KIND_WORD(value) KP_FIELD_WITH(KP_KIND_WORD_, , value)
#define KP_KIND_WORD_(key, text, words) KP_FIELD_WORD, words, 0
#define KP_KIND_TEXTS(value) KP_FIELD_TYPE, KP_TYPE_ARRAY(KP_TYPE("string")), 0
#define KP_KIND_BOOL(value) KP_FIELD_TYPE, KP_TYPE("boolean"), 0
#define KP_KIND_ID(value) KP_FIELD_TYPE, KP_TYPE("string"), 0
#define KP_KIND_WHOLE(value) KP_FIELD_TYPE, KP_TYPE("integer"), 0
#define KP_KIND_MAYBE_WHOLE(value) KP_FIELD_TYPE, KP_TYPE_MAYBE("integer"), 0
#define KP_KIND_NUMBER KP_FIELD_TYPE, KP_TYPE("number"), 0
#define KP_KIND_REAL(value) KP_KIND_NUMBER
#define KP_KIND_FIXED(value) KP_KIND_NUMBER
#define KP_KIND_MS(value) KP_KIND_NUMBER
#define KP_KIND_SHARE(value) KP_KIND_NUMBER
#define KP_KIND_PERCENT(value) KP_KIND_NUMBER
#define KP_KIND_TIMES(value) KP_KIND_NUMBER
#define KP_KIND_BYTES(value) KP_KIND_NUMBER
#define KP_KIND_COUNT(value) KP_KIND_NUMBER
#define KP_KIND_MAYBE_MS(value) KP_FIELD_TYPE, KP_TYPE_MAYBE("number"), 0
#define KP_KIND_MAYBE_FIXED(value) KP_FIELD_TYPE, KP_TYPE_MAYBE("number"), 0
#define KP_KIND_MAYBE_SHARE(value) KP_FIELD_TYPE, KP_TYPE_MAYBE("number"), 0
#define KP_KIND_WHOLES(value) KP_FIELD_TYPE, KP_TYPE_OF_EACH("integer"), 0
#define KP_KIND_MS_BY(value) KP_FIELD_TYPE, KP_TYPE_OF_EACH("number"), 0
#define KP_KIND_VERSION(value) KP_FIELD_TYPE, "{\"const\":" #value "}", 0
#define KP_KIND_PART(value) KP_FIELD_PART, KP_KIND_FIELDS(value), 0
#define KP_KIND_OBJECT(value) KP_FIELD_OBJECT, KP_KIND_FIELDS(value), 0
#define KP_KIND_MAYBE_OBJECT(value) KP_FIELD_MAYBE, KP_KIND_FIELDS(value), 0
#define KP_KIND_LIST(value) KP_FIELD_LIST, KP_KIND_FIELDS(value), 0
#define KP_KIND_LINES(value) KP_FIELD_LIST, KP_KIND_FIELDS(value), 0
#define KP_KIND_EACH_OF(value) KP_FIELD_LIST, KP_KIND_FIELDS(value), 0
#define KP_KIND_FIELDS(value) KP_FIELD_WITH(KP_KIND_FIELDS_, , value)
#define KP_KIND_FIELDS_(key, name, ...) &name##_fields
#define KP_KIND_COLUMNS(value) KP_FIELD_COLUMNS, KP_FIELD_WITH(KP_KIND_COLUMNS_, , value)
#define KP_KIND_COLUMNS_(key, columns, ...) columns, sizeof columns / sizeof *columns
#define KP_KIND_OTHER(value) KP_FIELD_TYPE, KP_FIELD_WITH(KP_KIND_SCHEMA_, , value), 0
#define KP_KIND_MORE(value) KP_FIELD_MORE, KP_FIELD_WITH(KP_KIND_SCHEMA_, , value), 0
#define KP_KIND_SCHEMA_(key, schema, ...) schema

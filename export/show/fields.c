// SPDX-License-Identifier: Apache-2.0
/* fields.c - writes an object of JSON and its schema, of the rows of its members */
#include "export/show/fields.h"

#include <string.h>

void kp_fields_put(struct kp_jsonout *j, const char *key, const struct kp_fields *fields, const void *item)
{
    if (!item && key) kp_jsonout_null(j, key);
    if (!item) return;
    kp_jsonout_open(j, key, '{');
    fields->put(j, item);
    kp_jsonout_close(j, '}');
}

void kp_fields_line(FILE *out, const struct kp_fields *fields, const void *item)
{
    kp_fields_put(KP_JSONOUT(out), NULL, fields, item);
    fputc('\n', out);
}

/* ---- the schema ---- */

static void object_schema(struct kp_jsonout *j, const char *key, const struct kp_fields *fields);

static void raw(struct kp_jsonout *j, const char *key, const char *schema)
{
    kp_jsonout_key(j, key);
    fputs(schema, j->out);
}

static void words_schema(struct kp_jsonout *j, const char *key, const char *words)
{
    kp_jsonout_open(j, key, '{');
    kp_jsonout_open(j, "enum", '[');
    for (size_t n; *words; words += n + (words[n] == '|')) {
        char word[64];
        n = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, words);
        kp_jsonout_text(j, NULL, word);
    }
    kp_jsonout_close(j, ']');
    kp_jsonout_close(j, '}');
}

static void columns_schema(struct kp_jsonout *j, const struct kp_field *field)
{
    const struct kp_column *const columns = field->of;
    for (size_t i = 0; i < field->count; i++)
        if (columns[i].key)
            raw(j, columns[i].key,
                columns[i].text                   ? KP_TYPE("string")
                : columns[i].unit == KP_UNIT_TRUE ? KP_TYPE("boolean")
                                                  : KP_TYPE("number"));
}

static void member_schema(struct kp_jsonout *j, const struct kp_field *field)
{
    kp_jsonout_line(j);
    switch (field->kind) {
    case KP_FIELD_SOME:
    case KP_FIELD_TYPE: raw(j, field->key, field->of); break;
    case KP_FIELD_WORD: words_schema(j, field->key, field->of); break;
    case KP_FIELD_OBJECT: object_schema(j, field->key, field->of); break;
    case KP_FIELD_MAYBE:
        kp_jsonout_open(j, field->key, '{');
        kp_jsonout_open(j, "anyOf", '[');
        raw(j, NULL, KP_TYPE("null"));
        object_schema(j, NULL, field->of);
        kp_jsonout_close(j, ']');
        kp_jsonout_close(j, '}');
        break;
    case KP_FIELD_LIST:
        kp_jsonout_open(j, field->key, '{');
        kp_jsonout_text(j, "type", "array");
        object_schema(j, "items", field->of);
        kp_jsonout_close(j, '}');
        break;
    case KP_FIELD_COLUMNS: columns_schema(j, field); break;
    default: break;
    }
}

/* Returns the schema of members whose keys are not known before. */
static const char *required_put(struct kp_jsonout *j, const struct kp_fields *fields, bool is_always)
{
    const char *more = "false";
    for (const struct kp_field *f = fields->of; f < fields->of + fields->count; f++) {
        if (f->kind == KP_FIELD_PART) more = required_put(j, f->of, is_always && f->is_always);
        else if (f->kind == KP_FIELD_MORE) more = f->of;
        else if (*f->key && is_always && f->is_always && f->kind != KP_FIELD_SOME) kp_jsonout_text(j, NULL, f->key);
    }
    return more;
}

static void properties_put(struct kp_jsonout *j, const struct kp_fields *fields)
{
    for (const struct kp_field *f = fields->of; f < fields->of + fields->count; f++)
        if (f->kind == KP_FIELD_PART) properties_put(j, f->of);
        else member_schema(j, f);
}

static void object_members(struct kp_jsonout *j, const struct kp_fields *fields)
{
    kp_jsonout_text(j, "type", "object");
    kp_jsonout_open(j, "required", '[');
    const char *const more = required_put(j, fields, true);
    kp_jsonout_close(j, ']');
    raw(j, "additionalProperties", more);
    kp_jsonout_open(j, "properties", '{');
    properties_put(j, fields);
    kp_jsonout_close(j, '}');
}

static void object_schema(struct kp_jsonout *j, const char *key, const struct kp_fields *fields)
{
    kp_jsonout_open(j, key, '{');
    object_members(j, fields);
    kp_jsonout_close(j, '}');
}

void kp_fields_schema(FILE *out, const struct kp_fields *const *each)
{
    struct kp_jsonout *const j = KP_JSONOUT(out);
    kp_jsonout_open(j, NULL, '{');
    kp_jsonout_text(j, "$schema", "https://json-schema.org/draft/2020-12/schema");
    if (each[1]) {
        kp_jsonout_open(j, "anyOf", '[');
        for (; *each; each++) object_schema(j, NULL, *each);
        kp_jsonout_close(j, ']');
    } else object_members(j, *each);
    kp_jsonout_close(j, '}');
    fputc('\n', out);
}

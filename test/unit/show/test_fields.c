// SPDX-License-Identifier: Apache-2.0
/* test_fields.c - an object of JSON and its schema, both of the rows of its members */
#include "export/show/fields.h"

#include <stdlib.h>

#include "test/support/support.h"

struct leaf {
    const char *name;
    double width_ns;
};
struct tree {
    const char *kind, *nick;
    const struct leaf *leaves, *first;
    size_t count;
    long age;
    bool is_old;
};

#define LEAF(F, IF) F(TEXT, name, r->name) IF(r->width_ns > 0, MS, width_ms, r->width_ns)
KP_FIELDS(leaf, struct leaf, LEAF)

static void more_put(struct kp_jsonout *j, const struct tree *tree) { kp_jsonout_whole(j, "rings", tree->age); }

#define AGE(F, IF) F(MAYBE_WHOLE, age, r->age) IF(r->is_old, BOOL, old, true)
KP_FIELDS(age, struct tree, AGE)

#define TREE(F, IF)                                                                   \
    F(VERSION, schema, 1)                                                             \
    F(WORD, kind, (r->kind, "oak|fir tree"))                                          \
    F(SOME, nick, r->nick)                                                            \
    F(PART, , (age, r))                                                               \
    F(MAYBE_OBJECT, first, (leaf, r->first))                                          \
    F(LINES, leaves, (leaf, r->count, &r->leaves[i]))                                 \
    F(LIST, wide, (leaf, r->count, r->leaves[i].width_ns > 0 ? &r->leaves[i] : NULL)) \
    F(TEXTS, names, (r->count, r->leaves[i].name))                                    \
    F(WHOLES, sizes, (r->count, r->leaves[i].name, (int64_t)r->leaves[i].width_ns))   \
    F(MORE, , (KP_TYPE("integer"), more_put, r))
KP_FIELDS(tree, struct tree, TREE)

static const struct leaf leaves[] = {{"a", 2e6}, {"b", 0}};

static void assert_tree(const struct tree *tree, const char *expected)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    kp_fields_put(KP_JSONOUT(out), NULL, &tree_fields, tree);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void an_object_has_a_member_for_each_row(void **state)
{
    (void)state;
    assert_tree(&(struct tree){"oak", "Tim", leaves, leaves, 2, 7, true},
                "{\"schema\":1,\"kind\":\"oak\",\"nick\":\"Tim\",\"age\":7,\"old\":true,"
                "\"first\":{\"name\":\"a\",\"width_ms\":2.000000},"
                "\"leaves\":[\n{\"name\":\"a\",\"width_ms\":2.000000},\n{\"name\":\"b\"}],"
                "\"wide\":[{\"name\":\"a\",\"width_ms\":2.000000}],"
                "\"names\":[\"a\",\"b\"],\"sizes\":{\"a\":2000000,\"b\":0},\"rings\":7}");
}

static void what_an_item_has_not_is_null_or_left_out(void **state)
{
    (void)state;
    assert_tree(&(struct tree){.kind = "fir tree", .age = -1},
                "{\"schema\":1,\"kind\":\"fir tree\",\"age\":null,\"first\":null,\"leaves\":[],\"wide\":[],"
                "\"names\":[],\"sizes\":{},\"rings\":-1}");
}

static void assert_schema(const struct kp_fields *const *each, const char *expected)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    kp_fields_schema(out, each);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

#define DRAFT "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
#define LEAF_SCHEMA                                                                                \
    "{\"type\":\"object\",\"required\":[\"name\"],\"additionalProperties\":false,\"properties\":{" \
    "\n\"name\":{\"type\":\"string\"},\n\"width_ms\":{\"type\":\"number\"}}}"

static void a_schema_asks_for_what_is_always_there(void **state)
{
    (void)state;
    assert_schema((const struct kp_fields *[]){&tree_fields, NULL},
                  DRAFT "\"type\":\"object\",\"required\":[\"schema\",\"kind\",\"age\",\"first\",\"leaves\",\"wide\","
                        "\"names\",\"sizes\"],\"additionalProperties\":{\"type\":\"integer\"},\"properties\":{"
                        "\n\"schema\":{\"const\":1},\n\"kind\":{\"enum\":[\"oak\",\"fir tree\"]},"
                        "\n\"nick\":{\"type\":\"string\"},\n\"age\":{\"type\":[\"integer\",\"null\"]},"
                        "\n\"old\":{\"type\":\"boolean\"},\n\"first\":{\"anyOf\":[{\"type\":\"null\"}," LEAF_SCHEMA
                        "]},\n\"leaves\":{\"type\":\"array\",\"items\":" LEAF_SCHEMA
                        "},\n\"wide\":{\"type\":\"array\",\"items\":" LEAF_SCHEMA
                        "},\n\"names\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
                        "\n\"sizes\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}}}\n");
}

static void a_schema_of_several_lines_allows_each(void **state)
{
    (void)state;
    assert_schema((const struct kp_fields *[]){&leaf_fields, &leaf_fields, NULL},
                  DRAFT "\"anyOf\":[" LEAF_SCHEMA "," LEAF_SCHEMA "]}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_has_a_member_for_each_row),
        cmocka_unit_test(what_an_item_has_not_is_null_or_left_out),
        cmocka_unit_test(a_schema_asks_for_what_is_always_there),
        cmocka_unit_test(a_schema_of_several_lines_allows_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_modulekeys.c - the key of a module in the module around it; Python's objects are played by this file */
#include "preload/python/api/modulekeys.h"

#include <string.h>

#include "preload/python/pycalls.h"
#include "test/support/support.h"

/* --- a Python of one layout, where frame objects are frames --- */

enum { BACK = 0, CODE = 8, LOCALS = 16 };
static struct kp_python python = {
    .layout = {.version = 308, .frame_back = BACK, .frame_code = CODE, .frame_locals = LOCALS}};
struct kp_python_api kp_python_api;
const struct kp_python *kp_python_get(void) { return &python; }

struct type {
    const char *name;
};
static const struct type text = {"str"}, dict = {"dict"}, ordered = {"OrderedDict"}, module = {"Module"},
                         other_dict = {"of the program"}, other_module = {"of no kind"};
struct text {
    uint64_t count;
    const struct type *type;
    intptr_t length;
    const char *letters;
};
struct pair {
    void *key, *value;
};
enum { PAIRS = 6 };
struct dict {
    uint64_t count;
    const struct type *type;
    struct pair pairs[PAIRS];
};
struct module {
    uint64_t count;
    const struct type *type;
    struct dict own, members;
};
struct frame {
    struct frame *back;
    const void *code;
    const void *self;
};

static struct text texts[64];
static unsigned texts_n, looked, taken, dropped, forgotten;

static struct text *text_make(const char *letters)
{
    texts[texts_n] = (struct text){1, &text, (intptr_t)strlen(letters), letters};
    return &texts[texts_n++];
}

static void put(struct dict *d, const char *key, void *value)
{
    unsigned n = 0;
    while (d->pairs[n].key) n++;
    assert_true(n < PAIRS);
    d->pairs[n] = (struct pair){text_make(key), value};
}

static void module_make(struct module *m)
{
    *m = (struct module){.type = &module, .own = {.type = &dict}, .members = {.type = &ordered}};
    put(&m->own, "training", &texts[0]);
    put(&m->own, "_modules", &m->members);
}

static int dict_next(void *of, intptr_t *at, void **key, void **value)
{
    struct dict *d = of;
    looked++;
    if (*at >= PAIRS || !d->pairs[*at].key) return 0;
    *key = d->pairs[*at].key;
    *value = d->pairs[(*at)++].value;
    return 1;
}
static void *dict_of(void *object, void *unused)
{
    struct module *m = object;
    (void)unused;
    taken += m->own.type != NULL;
    return m->own.type ? &m->own : NULL;
}
static void drop(void *object)
{
    assert_non_null(object);
    dropped++;
}
static const char *letters_of(void *of) { return ((struct text *)of)->letters; }
static int is_subtype(const void *type, const void *of) { return type == of; }
static void forget(void) { forgotten++; }

static int setup(void **state)
{
    (void)state;
    static const char code[] = "code";
    kp_python_api = (struct kp_python_api){.dict_next = dict_next,
                                           .dict_of = dict_of,
                                           .drop = drop,
                                           .text_of = letters_of,
                                           .is_subtype = is_subtype,
                                           .forget_error = forget,
                                           .text_type = &text,
                                           .dict_type = &dict,
                                           .ordered_dict_type = &ordered};
    kp_modulekey_type = &module;
    kp_modulekey_code = code;
    texts_n = looked = taken = dropped = forgotten = 0;
    return 0;
}

static char room[64];

/* The key of `self`, called by a function that `around` calls. */
static const char *key_of(const void *self, const void *around)
{
    static const char function[] = "forward";
    struct frame call = {NULL, kp_modulekey_code, around}, forward = {&call, function, &looked},
                 own = {&forward, kp_modulekey_code, self};
    const char *key = kp_modulekey_find(&own, self, room, sizeof room);
    assert_int_equal(taken, dropped);
    return key;
}

/* --- the tests --- */

static void a_module_has_its_key_in_the_module_around(void **state)
{
    struct module net, head;
    (void)state;
    module_make(&net);
    module_make(&head);
    put(&net.members, "absent", &texts[0]); /* register_module(.., None) */
    put(&net.members, "head", &head);
    put(&net.members, "tied", &head);
    assert_string_equal(key_of(&head, &net), "head");
    assert_string_equal(key_of(&net, &head), "");
    assert_string_equal(key_of(&head, &head), ""); /* it calls itself */
}

static void modules_that_are_not_called_are_gone_through(void **state)
{
    struct module net, list, layer, deep[4];
    (void)state;
    module_make(&net);
    module_make(&list);
    module_make(&layer);
    put(&net.members, "layers", &list);
    put(&list.members, "3", &layer);
    assert_string_equal(key_of(&layer, &net), "layers.3");
    put(&net.members, "last", &layer); /* the shorter one counts, though it comes later */
    assert_string_equal(key_of(&layer, &net), "last");
    for (unsigned i = 0; i < 4; i++) module_make(&deep[i]);
    put(&layer.members, "a", &deep[0]);
    for (unsigned i = 0; i < 3; i++) put(&deep[i].members, "b", &deep[i + 1]);
    assert_string_equal(key_of(&deep[2], &net), "last.a.b.b");
    assert_string_equal(key_of(&deep[3], &net), ""); /* too deep */
}

static void modules_that_hold_each_other_end(void **state)
{
    struct module a, b;
    (void)state;
    module_make(&a);
    module_make(&b);
    put(&a.members, "b", &b);
    put(&b.members, "a", &a);
    put(&b.members, "b", &b);
    assert_string_equal(key_of(&texts, &a), "");
    assert_true(looked < 200);
}

static void what_is_no_dict_of_pythons_is_not_read(void **state)
{
    struct module net, head;
    (void)state;
    module_make(&net);
    module_make(&head);
    put(&net.members, "head", &head);
    net.members.type = &other_dict;
    assert_string_equal(key_of(&head, &net), "");
    net.members.type = &dict;
    assert_string_equal(key_of(&head, &net), "head");
    net.own.type = &other_dict;
    assert_string_equal(key_of(&head, &net), "");
    net.own.type = NULL; /* it has none */
    assert_string_equal(key_of(&head, &net), "");
    assert_int_equal(forgotten, 4); /* once a depth */
    net.own.type = &dict;
    net.type = &other_module;
    assert_string_equal(key_of(&head, &net), "");
}

static void keys_that_are_no_name_are_none(void **state)
{
    struct module net, head;
    (void)state;
    module_make(&net);
    module_make(&head);
    put(&net.members, "head\t1\n", &head);
    assert_string_equal(key_of(&head, &net), "head?1?");
    struct text *key = net.members.pairs[0].key;
    key->letters = NULL; /* PyUnicode_AsUTF8 fails */
    assert_string_equal(key_of(&head, &net), "");
    assert_int_equal(forgotten, 1);
    char longer[200];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    key->letters = longer;
    assert_string_equal(key_of(&head, &net), "");
    key->type = &other_dict; /* an int */
    assert_string_equal(key_of(&head, &net), "");
}

static void without_a_module_around_or_torch_there_is_none(void **state)
{
    struct module net, head;
    (void)state;
    module_make(&net);
    module_make(&head);
    put(&net.members, "head", &head);
    struct frame alone = {NULL, kp_modulekey_code, &head};
    assert_string_equal(kp_modulekey_find(&alone, &head, room, sizeof room), "");
    assert_string_equal(key_of(&head, NULL), ""); /* its `self` is gone */
    kp_modulekey_type = NULL;
    assert_string_equal(key_of(&head, &net), "");
    assert_int_equal(taken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_module_has_its_key_in_the_module_around, setup),
        cmocka_unit_test_setup(modules_that_are_not_called_are_gone_through, setup),
        cmocka_unit_test_setup(modules_that_hold_each_other_end, setup),
        cmocka_unit_test_setup(what_is_no_dict_of_pythons_is_not_read, setup),
        cmocka_unit_test_setup(keys_that_are_no_name_are_none, setup),
        cmocka_unit_test_setup(without_a_module_around_or_torch_there_is_none, setup),
    };
    return cmocka_run_group_tests_name("keys of modules", tests, NULL, NULL);
}

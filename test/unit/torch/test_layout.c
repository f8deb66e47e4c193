// SPDX-License-Identifier: Apache-2.0
/* test_layout.c - the layout formula against what compilers said of 17 torch releases */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/torch/torch.h"
#include "preload/source.h"
#include "test/support/support.h"

enum { VERSIONS = 17 };
static const uint32_t versions[VERSIONS] = {113, 200, 201, 202, 203, 204, 205, 206, 207,
                                            208, 209, 210, 211, 212, 213, 214, 215};

/* item of the csv -> what the formula says of it; -1 when the item is absent in that version */
static int formula(const char *item, const struct kp_torch_layout *l)
{
#define ROW(text, value) \
    if (strcmp(item, text) == 0) return (int)(value)
    ROW("RF", l->rf_bytes);
    ROW("RF.fn_", l->rf_fn);
    ROW("FD.index", l->rf_schema - l->rf_fn);
    ROW("RF.sequence_nr_", l->rf_seq);
    ROW("RF.inputs_", l->rf_inputs);
    ROW("RF.fwd_thread_id_", l->rf_fwd);
    ROW("RF.handle_", l->rf_handle);
    ROW("RF.is_async_", l->rf_async);
    ROW("SC.thread_id_", l->rf_thread - 8);
    ROW("SC.scope_", l->rf_scope - 8);
    ROW("LI.list", l->list_items);
    ROW("LI.elementType", l->list_type);
    ROW("CS.str_", l->string_text);
    ROW("ON.overload_name", l->schema_overload);
    ROW("TI.sizes_and_strides_", l->ti_ndim);
    ROW("TI.data_type_", l->ti_dtype);
    ROW("TagE.Tensor", l->tag_tensor);
    ROW("TagE.Double", l->tag_double);
    ROW("TagE.ComplexDouble", l->tag_complex);
    ROW("TagE.Int", l->tag_int);
    ROW("TagE.SymInt", l->tag_symint);
    ROW("TagE.SymFloat", l->tag_symfloat);
    ROW("TagE.SymBool", l->tag_symbool);
    ROW("TagE.Bool", l->tag_bool);
    ROW("TagE.String", l->tag_string);
    ROW("TagE.GenericList", l->tag_list);
#undef ROW
    return -1;
}

static int check_row(char *line)
{
    char *save = NULL, *kind = strtok_r(line, ",", &save), *item = strtok_r(NULL, ",", &save);
    int checked = 0;
    if (!kind || !item || (strcmp(kind, "off") && strcmp(kind, "enum") && strcmp(kind, "size"))) return 0;
    for (int i = 0; i < VERSIONS; i++) {
        const char *cell = strtok_r(NULL, ",\n", &save);
        struct kp_torch_layout l;
        kp_torch_layout_make(&l, versions[i], versions[i] <= 206 ? 8 : 32); /* as PyPI builds them */
        int value = formula(item, &l);
        if (!cell || cell[0] == '-' || value < 0) continue;
        if (value != atoi(cell)) print_error("%s of %u: %d, not %s\n", item, versions[i], value, cell);
        assert_int_equal(value, atoi(cell));
        checked++;
    }
    return checked;
}

static void every_release_is_laid_out_as_its_headers_say(void **state)
{
    (void)state;
    char line[4096];
    int checked = 0;
    FILE *file = fopen("test/data/torch_offsets.csv", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) checked += check_row(line);
    fclose(file);
    assert_true(checked > 400);
}

static void debian_s_string_moves_what_follows_it(void **state)
{
    (void)state;
    struct kp_torch_layout l;
    kp_torch_layout_make(&l, 113, 32);
    assert_int_equal(l.rf_seq, 200);
    assert_int_equal(l.rf_inputs, 208);
    assert_int_equal(l.rf_fwd, 248);
    assert_int_equal(l.rf_bytes, 288);
    kp_torch_layout_make(&l, 205, 32);
    assert_int_equal(l.rf_handle, 312);
    assert_int_equal(l.rf_bytes, 344);
}

static void unread_memory_is_refused_not_fatal(void **state)
{
    (void)state;
    uint64_t out = 0, in = 42;
    assert_true(kp_torch_peek(&in, &out, sizeof out));
    assert_int_equal(out, 42);
    assert_false(kp_torch_peek((void *)8, &out, sizeof out));
    assert_false(kp_torch_peek((void *)(uintptr_t)0x7fffffffffff0000, &out, sizeof out));
}

static void without_torch_nothing_is_found_or_installed(void **state)
{
    (void)state;
    assert_false(kp_torch_source.attach());
    kp_torch_source.set_mode(KP_SOURCE_FULL);
    assert_false(kp_torch_source.attach());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_release_is_laid_out_as_its_headers_say),
        cmocka_unit_test(debian_s_string_moves_what_follows_it),
        cmocka_unit_test(unread_memory_is_refused_not_fatal),
        cmocka_unit_test(without_torch_nothing_is_found_or_installed),
    };
    return cmocka_run_group_tests_name("torch_layout", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_selfcheck.c - the self-check proves what is right, finds what moved, drops what it cannot prove */
#include <errno.h>

#include "preload/hook/hook.h"
#include "test/doubles/torch_fields.h"
#include "test/support/support.h"

int kp_hook_add_taps_own(const struct kp_tap *taps, uint32_t tap_count) /* as boot.c, left out */
{
    (void)taps, (void)tap_count;
    return -EBUSY;
}

static struct kp_torch_layout check(const struct kp_torch_api *api, uint32_t version, uint32_t string_bytes)
{
    struct kp_torch_layout l;
    kp_torch_layout_make(&l, version, string_bytes);
    kp_torch_selfcheck(api, &l);
    assert_int_equal(mini.alive, 0);
    assert_true(mini.enabled);
    assert_int_equal(mini.ran_enabled, 0);
    assert_int_equal(mini.asked_nonsense, 0);
    return l;
}

static void a_right_layout_is_proved_in_every_version_and_flavour(void **state)
{
    static const uint32_t versions[] = {113, 200, 201, 202, 203, 204, 206, 207, 209, 213, 215};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof versions / sizeof *versions; i++) {
        uint32_t version = versions[i / 2], string_bytes = i % 2 ? 8 : 32;
        struct kp_torch_api api = torch_fields(version, string_bytes);
        struct kp_torch_layout l = check(&api, version, string_bytes), expected;
        kp_torch_layout_make(&expected, version, string_bytes);
        assert_int_equal(l.dropped, 0);
        expected.undefined_tensor = l.undefined_tensor;
        expected.tensor_type = l.tensor_type;
        expected.unstrided = 7ull << 20; /* 15 backends; kinds 6, 7 and 8 */
        assert_memory_equal(&l, &expected, sizeof l);
        assert_ptr_equal(l.tensor_type, *mini_tensor_type());
    }
}

static void fields_that_moved_are_found(void **state)
{
    (void)state;
    struct kp_torch_api api = torch_fields(217, 32);
    mini.at.rf_thread = 96, mini.at.rf_scope = 104, mini.at.rf_fn = 176, mini.at.rf_schema = 208;
    mini.at.rf_seq = 224, mini.at.rf_inputs = 240, mini.at.rf_fwd = 360, mini.at.rf_handle = 368;
    mini.at.rf_async = 376, mini.at.rf_bytes = 400, mini.at.ti_ndim = 48, mini.at.ti_dtype = 152;
    mini.at.list_items = 24, mini.at.list_type = 8, mini.at.string_text = 24, mini.at.tag_string++, mini.at.tag_list++,
    mini.at.tag_bool++;
    struct kp_torch_layout l = check(&api, 217, 32);
    assert_int_equal(l.dropped, 0);
    assert_int_equal(l.rf_thread, 96);
    assert_int_equal(l.rf_scope, 104);
    assert_int_equal(l.rf_fn, 176);
    assert_int_equal(l.rf_schema, 208);
    assert_int_equal(l.rf_seq, 224);
    assert_int_equal(l.rf_inputs, 240);
    assert_int_equal(l.rf_fwd, 360);
    assert_int_equal(l.rf_handle, 368);
    assert_int_equal(l.rf_async, 376);
    assert_int_equal(l.ti_ndim, 48);
    assert_int_equal(l.ti_dtype, 152);
    assert_int_equal(l.ti_policy, 158);
    assert_int_equal(l.ti_keys, 160);
    assert_int_equal(l.list_items, 24);
    assert_int_equal(l.list_type, 8);
    assert_int_equal(l.string_text, 24);
    assert_int_equal(l.tag_string, 13);
    assert_int_equal(l.tag_bool, 11);
    assert_int_equal(l.tag_list, 15);
    assert_int_equal(l.tag_symint, 0xff);
}

static void what_cannot_be_proved_is_dropped_alone(void **state)
{
    (void)state;
    struct kp_torch_api api = torch_fields(216, 32);
    mini.lies_about_inputs = true;
    assert_int_equal(check(&api, 216, 32).dropped, KP_TORCH_NO_INPUTS);
    api = torch_fields(216, 32);
    mini.lies_about_names = true;
    assert_int_equal(check(&api, 216, 32).dropped, KP_TORCH_NO_SCHEMA | KP_TORCH_NO_INPUTS);
    api = torch_fields(216, 32);
    mini.has_no_tensors = true;
    assert_int_equal(check(&api, 216, 32).dropped, KP_TORCH_NO_TENSORS);
    api = torch_fields(216, 32);
    mini.has_no_lists = true;
    assert_int_equal(check(&api, 216, 32).dropped, KP_TORCH_NO_LISTS);
    api = torch_fields(216, 32);
    api.set_async = NULL;
    assert_int_equal(check(&api, 216, 32).dropped, KP_TORCH_NO_ASYNC | KP_TORCH_NO_FWD);
    api = torch_fields(216, 32);
    api.from_int = NULL;
    assert_int_equal(check(&api, 216, 32).dropped, KP_TORCH_NO_SCALARS | KP_TORCH_NO_LISTS);
}

static void an_unknown_version_may_have_either_string(void **state)
{
    (void)state;
    struct kp_torch_api api = torch_fields(299, 8);
    struct kp_torch_layout l = check(&api, 299, 8);
    assert_int_equal(l.dropped, 0);
    assert_int_equal(l.rf_seq, l.rf_fn + 16);
    api = torch_fields(299, 8); /* taken for the other: fast names and what rests on them cannot be proved */
    assert_int_equal(check(&api, 299, 32).dropped, KP_TORCH_NO_SCHEMA | KP_TORCH_NO_INPUTS);
    api = torch_fields(299, 32);
    assert_int_equal(check(&api, 299, 8).dropped, KP_TORCH_NO_SCHEMA | KP_TORCH_NO_INPUTS);
}

static void versions_from_before_the_c_shim_rest_on_the_table(void **state)
{
    (void)state;
    struct kp_torch_api api = torch_fields(201, 8);
    api.from_blob = NULL, api.from_int = NULL, api.from_text = NULL, api.from_texts = NULL;
    assert_int_equal(check(&api, 201, 8).dropped, 0);
}

static void without_constructors_only_names_are_left(void **state)
{
    (void)state;
    struct kp_torch_api api = torch_fields(216, 32);
    api.make = NULL;
    assert_int_equal(check(&api, 216, 32).dropped, ~0u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_layout_is_proved_in_every_version_and_flavour),
        cmocka_unit_test(fields_that_moved_are_found),
        cmocka_unit_test(what_cannot_be_proved_is_dropped_alone),
        cmocka_unit_test(an_unknown_version_may_have_either_string),
        cmocka_unit_test(versions_from_before_the_c_shim_rest_on_the_table),
        cmocka_unit_test(without_constructors_only_names_are_left),
    };
    return cmocka_run_group_tests_name("torch_selfcheck", tests, NULL, NULL);
}

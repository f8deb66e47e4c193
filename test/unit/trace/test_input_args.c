// SPDX-License-Identifier: Apache-2.0
/* test_input_args.c - encoded inputs come out as the four arrays of a Kineto trace */
#include "export/write/trace/parts.h"

#include <math.h>
#include <string.h>

#include "collector/format/kp_inputs.h"
#include "test/support/support.h"

static char out[65536];
static size_t out_bytes;

static int take(void *context, const void *data, size_t bytes)
{
    (void)context;
    assert_true(out_bytes + bytes < sizeof out);
    memcpy(out + out_bytes, data, bytes);
    out_bytes += bytes;
    out[out_bytes] = 0;
    return 0;
}

static uint8_t bytes[8192];
static uint32_t used, inputs;

static void put(const void *data, size_t n)
{
    memcpy(bytes + used, data, n);
    used += (uint32_t)n;
}

static void put8(uint8_t v) { put(&v, 1); }

static void put_tensor(uint8_t dtype, uint8_t flags, uint8_t ndim, const int64_t *dims)
{
    put8(KP_IN_TENSOR), put8(dtype), put8(flags), put8(ndim);
    for (unsigned i = 0; i < ndim * (flags & KP_IN_TENSOR_NO_STRIDES ? 1u : 2u); i++)
        put(&dims[i], flags & KP_IN_TENSOR_NARROW ? 4 : 8);
}

static void put_int(int64_t v) { put8(KP_IN_INT), put(&v, 8); }

static void put_double(double v) { put8(KP_IN_DOUBLE), put(&v, 8); }

static void put_list(uint8_t tag, uint16_t count) { put8(tag), put(&count, 2); }

static const char *shown(uint32_t count, uint32_t size)
{
    struct kp_json j;
    struct kp_event event = {.inputs = bytes, .inputs_bytes = size, .inputs_count = count};
    out_bytes = 0, out[0] = 0;
    assert_int_equal(kp_json_init(&j, take, NULL), 0);
    kp_inputs_write(&j, &event);
    assert_int_equal(kp_json_flush(&j), 0);
    kp_json_fini(&j);
    return out;
}

static int begin(void **state)
{
    (void)state;
    used = inputs = 0;
    return 0;
}

static void tensors_scalars_and_none_have_an_entry_each(void **state)
{
    static const int64_t dims[] = {2, 3, 3, 1};
    (void)state;
    put_tensor(6, 0, 2, dims), put_int(-5), put8(KP_IN_NONE), put8(KP_IN_BOOL), put8(1), put_tensor(4, 0, 0, dims);
    assert_string_equal(shown(5, used), ",\"Concrete Inputs\":[\"\",\"-5\",\"\",\"True\",\"\"]"
                                        ",\"Input type\":[\"float\",\"Scalar\",\"\",\"Scalar\",\"long int\"]"
                                        ",\"Input Strides\":[[3,1],[],[],[],[]]"
                                        ",\"Input Dims\":[[2,3],[],[],[],[]]");
}

static void doubles_are_printed_as_torch_prints_them(void **state)
{
    static const double complex_value[] = {1.5, -2};
    (void)state;
    put_double(1), put_double(0.1), put_double(-0.0), put_double(1e10), put_double(123456789), put_double(INFINITY);
    put8(KP_IN_COMPLEX), put(complex_value, 16), put_double(5e-324), put_double(1e17), put_double(1e19);
    const char *text = shown(10, used);
    assert_non_null(strstr(text, "[\"1.\",\"0.10000000000000001\",\"0.\",\"10000000000.\",\"123456789.\",\"inf\","
                                 "\"1.5-2.j\",\"4.9406564584124654e-324\",\"100000000000000000.\",\"1e+19\"]"));
}

static void lists_keep_their_items_and_long_ones_none(void **state)
{
    static const int64_t dims[] = {2, 1};
    (void)state;
    put_list(KP_IN_SCALAR_LIST, 3), put_int(1), put8(KP_IN_NONE), put_int(2);
    put_list(KP_IN_SCALAR_LIST, 0);
    put_list(KP_IN_TENSOR_LIST, 2), put_tensor(6, 0, 1, dims), put_tensor(5, 0, 0, dims);
    put_list(KP_IN_TENSOR_LIST, 31);
    put_list(KP_IN_TENSOR_LIST, 0);
    assert_string_equal(shown(5, used),
                        ",\"Concrete Inputs\":[\"[1, None, 2]\",\"[]\",\"\",\"\",\"\"]"
                        ",\"Input type\":[\"ScalarList\",\"ScalarList\",\"TensorList\",\"TensorList\",\"TensorList\"]"
                        ",\"Input Strides\":[[],[],[[1],[]],[],[]]"
                        ",\"Input Dims\":[[],[],[[2],[]],[],[]]");
}

static void tensors_without_strides_or_sizes_show_what_they_have(void **state)
{
    static const int64_t dims[] = {4, 5};
    (void)state;
    put_tensor(6, KP_IN_TENSOR_NO_STRIDES | KP_IN_TENSOR_NARROW, 2, dims);
    put_tensor(6, KP_IN_TENSOR_UNDEFINED, 0, dims);
    assert_string_equal(shown(2, used), ",\"Concrete Inputs\":[\"\",\"\"],\"Input type\":[\"float\",\"\"]"
                                        ",\"Input Strides\":[[],[]],\"Input Dims\":[[4,5],[]]");
}

static void torn_inputs_still_give_four_arrays_of_one_length(void **state)
{
    static const int64_t dims[] = {2, 3, 3, 1};
    (void)state;
    put_tensor(6, 0, 2, dims), put_list(KP_IN_SCALAR_LIST, 2), put_int(1), put_int(2), put8(77);
    for (uint32_t size = 3; size <= used; size++) {
        const char *text = shown(3, size);
        assert_non_null(strstr(text, "\"Input Dims\":["));
        unsigned brackets = 0;
        for (const char *p = strstr(text, "\"Input Dims\":["); *p; p++) brackets += *p == '[';
        assert_int_equal(brackets, 4);
    }
    assert_string_equal(shown(9, 3), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tensors_scalars_and_none_have_an_entry_each, begin),
        cmocka_unit_test_setup(doubles_are_printed_as_torch_prints_them, begin),
        cmocka_unit_test_setup(lists_keep_their_items_and_long_ones_none, begin),
        cmocka_unit_test_setup(tensors_without_strides_or_sizes_show_what_they_have, begin),
        cmocka_unit_test_setup(torn_inputs_still_give_four_arrays_of_one_length, begin),
    };
    return cmocka_run_group_tests_name("inputs", tests, NULL, NULL);
}

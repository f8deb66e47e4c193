// SPDX-License-Identifier: Apache-2.0
/* test_protobuf.c - the bytes that protocol buffers' own documentation shows */
#include "export/read/store/protobuf.h"

#include <string.h>

#include "test/support/support.h"

static void is(const struct kp_proto *p, const char *bytes, size_t count)
{
    assert_int_equal(p->bytes, count);
    assert_memory_equal(p->data, bytes, count);
}

static void numbers_are_varints(void **state)
{
    struct kp_proto p = {0};
    (void)state;
    kp_proto_number(&p, 1, 150);
    is(&p, "\x08\x96\x01", 3);
    p.bytes = 0;
    kp_proto_number(&p, 60, UINT64_MAX);
    is(&p, "\xe0\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
    kp_proto_fini(&p);
}

static void texts_and_messages_have_their_length_before_them(void **state)
{
    struct kp_proto p = {0}, outer = {0};
    (void)state;
    kp_proto_bytes(&p, 2, "testing", 7);
    is(&p, "\x12\x07testing", 9);
    p.bytes = 0;
    kp_proto_number(&p, 1, 150);
    kp_proto_message(&outer, 3, &p);
    is(&outer, "\x1a\x03\x08\x96\x01", 5);
    kp_proto_fini(&p);
    kp_proto_fini(&outer);
}

static void fixed_numbers_have_eight_bytes(void **state)
{
    struct kp_proto p = {0};
    (void)state;
    kp_proto_fixed(&p, 1, 0x0102030405060708);
    is(&p, "\x09\x08\x07\x06\x05\x04\x03\x02\x01", 9);
    kp_proto_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_varints),
        cmocka_unit_test(texts_and_messages_have_their_length_before_them),
        cmocka_unit_test(fixed_numbers_have_eight_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

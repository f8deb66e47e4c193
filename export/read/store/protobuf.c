// SPDX-License-Identifier: Apache-2.0
/* protobuf.c - varints, fixed numbers and lengths */
#include "export/read/store/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/store/stringtable.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, VARINT_MOST = 10 };

void kp_proto_varint(struct kp_proto *p, uint64_t value)
{
    p->data = kp_kineto_grow(p->data, &p->capacity, p->bytes + VARINT_MOST, 1);
    while (value >= 0x80) {
        p->data[p->bytes++] = (char)(value | 0x80);
        value >>= 7;
    }
    p->data[p->bytes++] = (char)value;
}

void kp_proto_number(struct kp_proto *p, unsigned field, uint64_t value)
{
    kp_proto_varint(p, field << 3 | WIRE_VARINT);
    kp_proto_varint(p, value);
}

void kp_proto_fixed(struct kp_proto *p, unsigned field, uint64_t value)
{
    kp_proto_varint(p, field << 3 | WIRE_FIXED64);
    p->data = kp_kineto_grow(p->data, &p->capacity, p->bytes + 8, 1);
    for (int i = 0; i < 8; i++) p->data[p->bytes++] = (char)(value >> 8 * i);
}

void kp_proto_bytes(struct kp_proto *p, unsigned field, const char *data, size_t bytes)
{
    kp_proto_varint(p, field << 3 | WIRE_BYTES);
    kp_proto_varint(p, bytes);
    if (!bytes) return;
    p->data = kp_kineto_grow(p->data, &p->capacity, p->bytes + bytes, 1);
    memcpy(p->data + p->bytes, data, bytes);
    p->bytes += bytes;
}

void kp_proto_fini(struct kp_proto *p)
{
    free(p->data);
    *p = (struct kp_proto){0};
}

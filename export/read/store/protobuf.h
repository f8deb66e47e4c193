// SPDX-License-Identifier: Apache-2.0
/* protobuf.h - the wire format of protocol buffers: varints, fixed numbers and lengths */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kp_proto { /* all zero: empty */
    char *data;
    size_t bytes, capacity;
};
void kp_proto_varint(struct kp_proto *p, uint64_t value); /* a number without a field, as packed ones are */
void kp_proto_number(struct kp_proto *p, unsigned field, uint64_t value); /* uint64, int64, enum, bool */
void kp_proto_fixed(struct kp_proto *p, unsigned field, uint64_t value);  /* fixed64 */
void kp_proto_bytes(struct kp_proto *p, unsigned field, const char *data, size_t bytes);
static inline void kp_proto_message(struct kp_proto *p, unsigned field, const struct kp_proto *inner)
{
    kp_proto_bytes(p, field, inner->data, inner->bytes);
}
void kp_proto_fini(struct kp_proto *p);

// SPDX-License-Identifier: Apache-2.0
/* vendor.h - what a call, kernel or range is by its name, of all vendors (vendor.def) */
#pragma once

#include <stdbool.h>

bool kp_vendor_is_wait(const char *call); /* of the host: returns when a device has done its work */
enum kp_vendor_call {
    KP_VENDOR_OTHER,
    KP_VENDOR_LAUNCH,
    KP_VENDOR_LAUNCH_GRAPH,
    KP_VENDOR_CAPTURE_BEGIN,
    KP_VENDOR_CAPTURE_END
};
enum kp_vendor_call kp_vendor_call(const char *call); /* of the host; "": of another kind */
bool kp_vendor_is_comm(const char *kernel);           /* of a device: moves data between ranks */
/* The range that a backend of torch.distributed puts around a collective on the host: "gloo:all_reduce". */
bool kp_vendor_is_collective(const char *range);
bool kp_vendor_is_beside(const char *range); /* such a one of a backend whose threads run beside the steps */
bool kp_vendor_is_comm_op(const char *op);   /* torch's, which starts a collective or waits for one */
/* A kernel that multiplies by tensor cores, or AMD's matrix cores, as far as its name tells. */
bool kp_vendor_is_matrix(const char *kernel);

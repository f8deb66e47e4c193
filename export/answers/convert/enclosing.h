// SPDX-License-Identifier: Apache-2.0
/* enclosing.h - which slice of its thread an event lies in; for events that come by start, the longer first */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kp_open_slice {
    int64_t start_ns, end_ns, id;
};
struct kp_enclosing_thread {
    struct kp_open_slice *open;
    size_t count, capacity;
};
struct kp_enclosing {
    struct kp_enclosing_thread *threads;
    size_t count, capacity;
};

/* The innermost slice of the thread around start to end, or 0. One that ends where another starts is not around it. */
int64_t kp_enclosing_slice(struct kp_enclosing *n, size_t thread, int64_t start_ns, int64_t end_ns);
/* Opens a slice, after it was asked what is around it. `id` is not 0. */
void kp_enclosing_open(struct kp_enclosing *n, size_t thread, int64_t start_ns, int64_t end_ns, int64_t id);
void kp_enclosing_free(struct kp_enclosing *n);

// SPDX-License-Identifier: Apache-2.0
// ops.cpp - the ATen work of both hosts: on the calling thread and on one of its own
#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <thread>

extern "C" int run_ops(int rounds) {
    double total = 0;
    std::thread other([rounds] {
        for (int i = 0; i < rounds; i++)
            at::arange(12).cumsum(0);
    });
    for (int i = 0; i < rounds; i++)
        total += at::mm(at::ones({2, 3}), at::ones({3, 4})).sum().item<double>();
    other.join();
    return total == 24.0 * rounds ? 0 : 1;
}

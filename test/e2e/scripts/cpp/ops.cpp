// SPDX-License-Identifier: Apache-2.0
// ops.cpp - the work of all hosts, as torch's headers take 6 s to read: ATen's on the calling thread and on one of its
// own, and that of a server in C++, which answers requests with a module of TorchScript
#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <torch/csrc/jit/api/module.h>

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

extern "C" int serve(int requests) {
    c10::InferenceMode guard;
    torch::jit::Module inner("inner"), model("model");
    inner.define("def forward(self, x):\n    return x.relu()\n");
    model.register_module("inner", inner);
    model.define("def forward(self, x):\n    return self.inner.forward(x) + self.inner.forward(x)\n");
    for (int i = 0; i < requests; i++) {
        RECORD_USER_SCOPE("request");
        if (model.forward({at::ones({2, 3})}).toTensor().sum().item<double>() != 12)
            return 1;
    }
    return 0;
}

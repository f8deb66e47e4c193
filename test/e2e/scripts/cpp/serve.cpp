// SPDX-License-Identifier: Apache-2.0
// serve.cpp - answers requests with a module of TorchScript, as a server in C++ does
#include <ATen/ops/ones.h>
#include <torch/csrc/jit/api/module.h>
#include <ATen/record_function.h>

extern "C" int run_ops(int requests) {
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

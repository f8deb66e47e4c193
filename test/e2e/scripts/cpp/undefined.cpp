// SPDX-License-Identifier: Apache-2.0
/* undefined.cpp - a program of torch's headers, which has a copy of torch's undefined tensor of its own */
#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <cstdio>

int main()
{
    for (int i = 0; i < 3; i++) {
        RECORD_FUNCTION("given_nothing", std::vector<c10::IValue>({at::ones({2}), at::Tensor()}));
    }
    puts("done");
    return 0;
}

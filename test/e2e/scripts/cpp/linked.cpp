// SPDX-License-Identifier: Apache-2.0
// linked.cpp - a C++ program with libtorch among its own libraries
#include <cstdio>
#include <cstdlib>

extern "C" int run_ops(int rounds);

int main(int argc, char **argv) {
    int code = run_ops(argc > 1 ? std::atoi(argv[1]) : 5);
    std::puts("done");
    return code;
}

// SPDX-License-Identifier: Apache-2.0
// linked.cpp - a C++ program with libtorch among its own libraries; WORK is what it calls of ops.cpp
#include <cstdio>
#include <cstdlib>

extern "C" int WORK(int rounds);

int main(int argc, char **argv) {
    int code = WORK(argc > 1 ? std::atoi(argv[1]) : 5);
    std::puts("done");
    return code;
}

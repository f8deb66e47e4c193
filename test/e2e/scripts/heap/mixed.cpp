// SPDX-License-Identifier: Apache-2.0
// mixed.cpp - new and delete in their forms, containers, a thread, exceptions
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

struct big {
    alignas(64) char bytes[128];
};

int main()
{
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < 500; i++) m["a key that is too long for the small buffer " + std::to_string(i)].resize(i);
    std::vector<std::unique_ptr<big>> v;
    for (int i = 0; i < 100; i++) v.push_back(std::make_unique<big>());
    std::thread t([&] {
        for (int i = 0; i < 50; i++) delete[] new (std::nothrow) int[10 + m.size()];
    });
    t.join();
    try {
        throw std::string("thrown from far away, too long for the small buffer");
    } catch (const std::string &s) {
        std::printf("%s %zu\n", s.c_str(), m.size());
    }
    try {
        volatile size_t n = (size_t)1 << 60;
        delete[] new char[n];
    } catch (const std::bad_alloc &) {
        std::printf("bad_alloc\n");
    }
}

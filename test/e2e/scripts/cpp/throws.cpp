// SPDX-License-Identifier: Apache-2.0
/* throws.cpp - leaves by an exception that nothing catches, by a thread that is destroyed while it runs, or by a stack
 * that is overwritten */
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

namespace c10 /* as torch has it */
{
struct Error : std::exception {
    std::string text;
    explicit Error(const char *said) : text(said) {}
};
struct IndexError : Error {
    using Error::Error;
};
} // namespace c10

struct Both : std::string, std::runtime_error { // its text lies elsewhere
    Both() : std::string("first"), std::runtime_error("second") {}
};

static void again()
{
    try {
        throw std::out_of_range("once more");
    } catch (...) {
        std::rethrow_exception(std::current_exception());
    }
}

extern "C" __attribute__((noinline)) void smash(volatile char *from, size_t count)
{
    volatile char room[8];
    for (size_t i = 0; i < count; i++) room[i] = from[i % 8];
}

extern "C" void throw_by(const char *how)
{
    if (!strcmp(how, "runtime")) throw std::runtime_error("no space\nmore");
    if (!strcmp(how, "index")) throw c10::IndexError("index 7 is out of bounds");
    if (!strcmp(how, "alloc")) throw std::bad_alloc();
    if (!strcmp(how, "number")) throw 7;
    if (!strcmp(how, "both")) throw Both();
    if (!strcmp(how, "again")) again();
    if (!strcmp(how, "thread")) std::thread([] { throw std::runtime_error("in a thread"); }).join();
    if (!strcmp(how, "joinable")) std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); });
    char from[8] = "1234567";
    if (!strcmp(how, "smash")) smash(from, 64);
}

// SPDX-License-Identifier: Apache-2.0
/* inlined.h - a template that is inlined from a file of its own */
#pragma once
#include <cstdlib>
namespace shapes
{
template <class T> struct Box {
    T *of;
    __attribute__((always_inline)) explicit Box(int n) : of(take(n)) {}
    static __attribute__((always_inline)) inline T *take(int n) { return static_cast<T *>(malloc(sizeof(T) * n)); }
};
} // namespace shapes

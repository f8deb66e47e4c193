// SPDX-License-Identifier: Apache-2.0
/* params.h - the arguments of a call as a plain struct in their order, as CUPTI's callbacks see them */
#pragma once

#define SIM_FIELD(a) __typeof__(a) a##_;
#define SIM_F1(a) SIM_FIELD(a)
#define SIM_F2(a, ...) SIM_FIELD(a) SIM_F1(__VA_ARGS__)
#define SIM_F3(a, ...) SIM_FIELD(a) SIM_F2(__VA_ARGS__)
#define SIM_F4(a, ...) SIM_FIELD(a) SIM_F3(__VA_ARGS__)
#define SIM_F5(a, ...) SIM_FIELD(a) SIM_F4(__VA_ARGS__)
#define SIM_F6(a, ...) SIM_FIELD(a) SIM_F5(__VA_ARGS__)
#define SIM_F7(a, ...) SIM_FIELD(a) SIM_F6(__VA_ARGS__)
#define SIM_F8(a, ...) SIM_FIELD(a) SIM_F7(__VA_ARGS__)
#define SIM_F9(a, ...) SIM_FIELD(a) SIM_F8(__VA_ARGS__)
#define SIM_F10(a, ...) SIM_FIELD(a) SIM_F9(__VA_ARGS__)
#define SIM_F11(a, ...) SIM_FIELD(a) SIM_F10(__VA_ARGS__)
#define SIM_PICK(a, b, c, d, e, f, g, h, i, j, k, macro, ...) macro
#define SIM_FIELDS(...)                                                                                                \
    SIM_PICK(__VA_ARGS__, SIM_F11, SIM_F10, SIM_F9, SIM_F8, SIM_F7, SIM_F6, SIM_F5, SIM_F4, SIM_F3, SIM_F2, SIM_F1, 0) \
    (__VA_ARGS__)

/* In a function: SIM_PARAMS(a, b) declares params_ with the values of a and b. */
#define SIM_PARAMS(...)         \
    struct {                    \
        SIM_FIELDS(__VA_ARGS__) \
    } params_ = {__VA_ARGS__}

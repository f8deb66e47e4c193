// SPDX-License-Identifier: Apache-2.0
/* kineto_words.c - reads numbers and categories of a trace */
#include "export/report/kineto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exact without an exponent. Kineto never writes one; it is read by long double. */
int64_t kp_kineto_ns(const char *text, size_t bytes)
{
    const char *end = text + bytes;
    const char *p = text;
    bool minus = p < end && *p == '-';
    if (minus) p++;
    int64_t value = 0;
    int decimals = -1;
    bool up = false;
    for (; p < end; p++) {
        if (*p == '.' && decimals < 0) {
            decimals = 0;
        } else if (*p == 'e' || *p == 'E') {
            char copy[64];
            snprintf(copy, sizeof copy, "%.*s", (int)(bytes < 63 ? bytes : 63), text);
            long double us = strtold(copy, NULL) * 1000.0L;
            if (us > 9.2e18L || us < -9.2e18L) return 0;
            return (int64_t)(us + (us < 0 ? -0.5L : 0.5L));
        } else if (*p < '0' || *p > '9') {
            break;
        } else if (decimals >= 3) {
            if (decimals++ == 3) up = *p >= '5';
        } else if (value <= (INT64_MAX - 9) / 10) {
            value = value * 10 + (*p - '0');
            decimals += decimals >= 0;
        }
    }
    for (int i = decimals < 0 ? 0 : decimals; i < 3; i++) value = value <= INT64_MAX / 10 ? value * 10 : 0;
    value += up;
    return minus ? -value : value;
}

/* Most numbers are a few digits: those need no copy. */
static bool is_short(const char *text, size_t bytes, uint64_t *value)
{
    uint64_t sum = 0;
    if (bytes == 0 || bytes > 18) return false;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        sum = sum * 10 + (uint64_t)(text[i] - '0');
    }
    *value = sum;
    return true;
}

int64_t kp_kineto_whole(const char *text, size_t bytes)
{
    uint64_t value;
    if (is_short(text, bytes, &value)) return (int64_t)value;
    char copy[32];
    snprintf(copy, sizeof copy, "%.*s", (int)(bytes < 31 ? bytes : 31), text);
    return strtoll(copy, NULL, 10);
}

uint64_t kp_kineto_address(const char *text, size_t bytes)
{
    uint64_t value;
    if (is_short(text, bytes, &value)) return value;
    char copy[32];
    snprintf(copy, sizeof copy, "%.*s", (int)(bytes < 31 ? bytes : 31), text);
    return strtoull(copy, NULL, 10);
}

static const struct {
    const char *cat;
    uint8_t kind;
} kind_rows[] = {
    {"cpu_op", KP_KINETO_OP},
    {"Operator", KP_KINETO_OP},
    {"operator", KP_KINETO_OP},
    {"symbol", KP_KINETO_OP}, /* libkprof's, of KPROF_SYMBOLS */
    {"user_annotation", KP_KINETO_ANNOTATION},
    {"python_function", KP_KINETO_PYTHON},
    {"cuda_runtime", KP_KINETO_RUNTIME},
    {"cuda_driver", KP_KINETO_RUNTIME},
    {"Runtime", KP_KINETO_RUNTIME},
    {"runtime", KP_KINETO_RUNTIME},
    {"xpu_runtime", KP_KINETO_RUNTIME},
    {"xpu_driver", KP_KINETO_RUNTIME},
    {"mtia_runtime", KP_KINETO_RUNTIME},
    {"privateuse1_runtime", KP_KINETO_RUNTIME},
    {"privateuse1_driver", KP_KINETO_RUNTIME},
    {"hip_runtime", KP_KINETO_RUNTIME},
    {"overhead", KP_KINETO_OVERHEAD},
    {"cpu_instant_event", KP_KINETO_MEMORY},
    {"kernel", KP_KINETO_GPU},
    {"Kernel", KP_KINETO_GPU},
    {"gpu_memcpy", KP_KINETO_GPU},
    {"gpu_memset", KP_KINETO_GPU},
    {"Memcpy", KP_KINETO_GPU},
    {"Memset", KP_KINETO_GPU},
    {"cuda_sync", KP_KINETO_GPU},
    {"concurrent_kernel", KP_KINETO_GPU},
    {"gpu_user_annotation", KP_KINETO_GPU_ANNOTATION},
};

uint8_t kp_kineto_kind(const char *cat)
{
    for (size_t i = 0; i < sizeof kind_rows / sizeof *kind_rows; i++)
        if (strcmp(kind_rows[i].cat, cat) == 0) return kind_rows[i].kind;
    return KP_KINETO_OTHER;
}

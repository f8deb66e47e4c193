// SPDX-License-Identifier: Apache-2.0
/* kineto_words.c - reads numbers and categories of a trace, and knows what is none */
#include "export/read/kineto/kineto.h"
#include "export/read/kineto/kineto_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds digits to the value, as long as it has room. Returns how many; *at is behind the last digit. */
static int digits_add(const char **at, const char *end, int64_t *value)
{
    const char *p = *at;
    int count = 0;
    for (; p < end && (unsigned)(*p - '0') <= 9; p++) {
        if (*value > (INT64_MAX - 9) / 10) continue;
        *value = *value * 10 + (*p - '0');
        count++;
    }
    *at = p;
    return count;
}

static int64_t ns_of_exponent(const char *text, size_t bytes)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", (int)(bytes < 63 ? bytes : 63), text);
    long double us = strtold(copy, NULL) * 1000.0L;
    if (us > 9.2e18L || us < -9.2e18L) return 0;
    return (int64_t)(us + (us < 0 ? -0.5L : 0.5L));
}

/* Exact without an exponent. Kineto never writes one; it is read by long double. */
int64_t kp_kineto_ns(const char *text, size_t bytes)
{
    const char *p = text, *const end = text + bytes;
    const bool minus = p < end && *p == '-';
    int64_t value = 0, left_out = 0;
    int decimals = 0;
    p += minus;
    digits_add(&p, end, &value);
    if (p < end && *p == '.') {
        p++;
        decimals = digits_add(&p, end - p > 3 ? p + 3 : end, &value);
        if (decimals == 3 && p < end) value += *p >= '5' && *p <= '9';
        digits_add(&p, end, &left_out);
    }
    if (p < end && (*p == 'e' || *p == 'E')) return ns_of_exponent(text, bytes);
    for (; decimals < 3; decimals++) value = value <= INT64_MAX / 10 ? value * 10 : 0;
    return minus ? -value : value;
}

/* Most numbers are a few digits: those need no copy. */
static bool is_short(const char *text, size_t bytes, uint64_t *value)
{
    uint64_t sum = 0;
    if (bytes == 0 || bytes > 18) return false;
    for (size_t i = 0; i < bytes; i++) {
        const unsigned digit = (unsigned)text[i] - '0';
        if (digit > 9) return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

int64_t kp_kineto_whole(const char *text, size_t bytes)
{
    const bool minus = bytes && *text == '-';
    uint64_t value;
    if (is_short(text + minus, bytes - minus, &value)) return minus ? -(int64_t)value : (int64_t)value;
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

bool kp_kineto_is_device(int64_t pid, const char *name, size_t bytes)
{
    char end[24];
    const size_t of = (size_t)snprintf(end, sizeof end, " %lld", (long long)pid);
    return bytes > of && memcmp(name + bytes - of, end, of) == 0;
}

bool kp_kineto_is_npu(const char *process, size_t bytes)
{
    static const char npu[] = "Ascend Hardware";
    return bytes == sizeof npu - 1 && memcmp(process, npu, bytes) == 0;
}

uint8_t kp_kineto_kind(const char *cat)
{
    for (size_t i = 0; i < sizeof kind_rows / sizeof *kind_rows; i++)
        if (strcmp(kind_rows[i].cat, cat) == 0) return kind_rows[i].kind;
    return KP_KINETO_OTHER;
}

uint8_t kp_kineto_kind_bare(const char *process, const char *name)
{
    if (strcmp(process, "CPU functions") == 0) return KP_KINETO_OP;
    return strcmp(name, "[memory]") == 0 ? KP_KINETO_MEMORY : KP_KINETO_OTHER;
}

bool kp_kineto_is_recording(const char *category, const char *name)
{
    return strcmp(category, "Trace") == 0 && strncmp(name, "PyTorch Profiler", 16) == 0;
}

const char *kp_kineto_foreign(const char *text, size_t bytes)
{
    static const struct {
        const char *begin, *is;
    } kinds[] = {{"<", " (this is HTML or XML)"},
                 {"version https://git-lfs", " (this is a Git LFS pointer: git lfs pull)"},
                 {"PK\003\004", " (this is a ZIP archive: unpack it)"},
                 {"SQLite format 3", " (this is an SQLite database)"},
                 {"\377\376", " (this is UTF-16)"},
                 {"\376\377", " (this is UTF-16)"},
                 {"\x80\004", " (this is a pickle)"},
                 {"\x80\005", " (this is a pickle)"},
                 {"\177ELF", " (this is a program)"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t length = strlen(kinds[i].begin);
        if (bytes >= length && memcmp(text, kinds[i].begin, length) == 0) return kinds[i].is;
    }
    return "";
}

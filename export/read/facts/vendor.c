// SPDX-License-Identifier: Apache-2.0
/* vendor.c - looks names up in vendor.def */
#include "export/read/facts/vendor.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "collector/base/kp_fnv.h"

enum kind {
    WAIT,
    WAIT_NOT,
    LAUNCH,
    LAUNCH_GRAPH,
    CAPTURE_BEGIN,
    CAPTURE_END,
    BACKEND,
    BACKEND_CPU,
    COMM_OP,
    COMM_KERNEL,
    COMM_KERNEL_NOT,
    MATRIX,
    MATRIX_NOT,
    PRODUCT,
    PRODUCT_NOT,
    MATRIX_TYPE
};
enum how { IS, BEGINS, PART };

static const struct vendor_row {
    enum kind kind;
    enum how how;
    const char *text;
} rows[] = {
#define KP_VENDOR(kind, how, text) {kind, how, text},
#include "export/read/facts/vendor.def"
#undef KP_VENDOR
};

static bool is_met(const struct vendor_row *row, const char *name)
{
    switch (row->how) {
    case IS: return strcmp(name, row->text) == 0;
    case BEGINS: return strncmp(name, row->text, strlen(row->text)) == 0;
    case PART: return strcasestr(name, row->text) != NULL;
    }
    return false;
}

static bool has(enum kind kind, const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == kind && is_met(&rows[i], name)) return true;
    return false;
}

/* Names come again and again: what was found of some is kept, by their hash. */
enum fact { FACT_WAIT, FACT_COMM, FACT_MATRIX, FACT_COMM_OP };
enum { KEPT = 2048 };

static bool fact_find(enum fact fact, const char *name)
{
    switch (fact) {
    case FACT_WAIT: return has(WAIT, name) && !has(WAIT_NOT, name);
    case FACT_COMM: return has(COMM_KERNEL, name) && !has(COMM_KERNEL_NOT, name);
    case FACT_COMM_OP: return has(COMM_OP, name);
    case FACT_MATRIX: break;
    }
    if (has(MATRIX_NOT, name)) return false;
    return has(MATRIX, name) || (has(PRODUCT, name) && !has(PRODUCT_NOT, name) && has(MATRIX_TYPE, name));
}

static bool is(enum fact fact, const char *name)
{
    static struct {
        uint64_t hash;
        uint8_t known, is; /* a bit for each fact */
    } kept[KEPT];
    const uint64_t hash = kp_fnv64(KP_FNV64, name, strlen(name));
    const size_t at = hash % KEPT;
    const uint8_t bit = (uint8_t)(1u << fact);
    if (kept[at].hash != hash) kept[at].known = kept[at].is = 0;
    kept[at].hash = hash;
    if (!(kept[at].known & bit) && fact_find(fact, name)) kept[at].is |= bit;
    kept[at].known |= bit;
    return kept[at].is & bit;
}

bool kp_vendor_is_wait(const char *call) { return is(FACT_WAIT, call); }

enum kp_vendor_call kp_vendor_call(const char *call)
{
    static const enum kind kinds[] = {[KP_VENDOR_LAUNCH] = LAUNCH,
                                      [KP_VENDOR_LAUNCH_GRAPH] = LAUNCH_GRAPH,
                                      [KP_VENDOR_CAPTURE_BEGIN] = CAPTURE_BEGIN,
                                      [KP_VENDOR_CAPTURE_END] = CAPTURE_END};
    if (!*call) return KP_VENDOR_OTHER;
    for (enum kp_vendor_call is = KP_VENDOR_LAUNCH; is <= KP_VENDOR_CAPTURE_END; is++)
        if (has(kinds[is], call)) return is;
    return KP_VENDOR_OTHER;
}

bool kp_vendor_is_comm(const char *kernel) { return is(FACT_COMM, kernel); }

/* "gloo:all_reduce", and not "gloo::something". */
static bool is_of_backend(enum kind kind, const char *range)
{
    char backend[16];
    const size_t bytes = strcspn(range, ":");
    if (range[bytes] != ':' || range[bytes + 1] == ':' || bytes >= sizeof backend) return false;
    memcpy(backend, range, bytes);
    backend[bytes] = 0;
    return has(kind, backend);
}

bool kp_vendor_is_beside(const char *range) { return is_of_backend(BACKEND_CPU, range); }

bool kp_vendor_is_collective(const char *range) { return kp_vendor_is_beside(range) || is_of_backend(BACKEND, range); }

bool kp_vendor_is_comm_op(const char *op) { return is(FACT_COMM_OP, op); }

bool kp_vendor_is_matrix(const char *kernel) { return is(FACT_MATRIX, kernel); }

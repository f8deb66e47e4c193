// SPDX-License-Identifier: Apache-2.0
/* vendor.c - looks names up in vendor.def */
#include "export/read/facts/vendor.h"

#include <stddef.h>
#include <string.h>

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

bool kp_vendor_is_wait(const char *call) { return has(WAIT, call) && !has(WAIT_NOT, call); }

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

bool kp_vendor_is_comm(const char *kernel) { return has(COMM_KERNEL, kernel) && !has(COMM_KERNEL_NOT, kernel); }

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

bool kp_vendor_is_comm_op(const char *op) { return has(COMM_OP, op); }

bool kp_vendor_is_matrix(const char *kernel)
{
    if (has(MATRIX_NOT, kernel)) return false;
    return has(MATRIX, kernel) || (has(PRODUCT, kernel) && !has(PRODUCT_NOT, kernel) && has(MATRIX_TYPE, kernel));
}

// SPDX-License-Identifier: Apache-2.0
/* cbids.c - looks names and numbers of callbacks up in the table */
#include "test/doubles/simgpu/cbids.h"

#include <stddef.h>
#include <string.h>

#include "test/doubles/simgpu/simgpu.h"

struct row {
    uint32_t number;
    const char *key, *name;
};

static const struct row driver_rows[] = {
#define SIM_DRIVER(number, key, name) {number, #key, name},
#define SIM_RUNTIME(number, key, name)
#include "test/doubles/simgpu/cbids.def"
#undef SIM_DRIVER
#undef SIM_RUNTIME
};
static const struct row runtime_rows[] = {
#define SIM_DRIVER(number, key, name)
#define SIM_RUNTIME(number, key, name) {number, #key, name},
#include "test/doubles/simgpu/cbids.def"
#undef SIM_DRIVER
#undef SIM_RUNTIME
};
enum {
    DRIVER_ROWS = sizeof driver_rows / sizeof *driver_rows,
    RUNTIME_ROWS = sizeof runtime_rows / sizeof *runtime_rows
};

static const struct row *rows_of(int domain, size_t *count)
{
    *count = domain == SIMGPU_DRIVER ? DRIVER_ROWS : domain == SIMGPU_RUNTIME ? RUNTIME_ROWS : 0;
    return domain == SIMGPU_DRIVER ? driver_rows : runtime_rows;
}

/* The rows go up by number, with few holes: the row is at or before its number. */
const char *sim_cbid_name(int domain, uint32_t cbid)
{
    size_t count;
    const struct row *rows = rows_of(domain, &count);
    if (cbid == 0 || count == 0) return NULL;
    for (size_t i = cbid <= count ? cbid : count; i > 0; i--) {
        if (rows[i - 1].number == cbid) return rows[i - 1].name;
        if (rows[i - 1].number < cbid) break;
    }
    return NULL;
}

uint32_t sim_cbid_find(int domain, const char *name)
{
    size_t count;
    const struct row *rows = rows_of(domain, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].key, name) == 0) return rows[i].number;
    return 0;
}

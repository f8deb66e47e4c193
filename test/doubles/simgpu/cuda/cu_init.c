// SPDX-License-Identifier: Apache-2.0
/* cu_init.c - cuInit, versions, errors in words, and the way to functions by their names */
#include <stdio.h>
#include <string.h>

#include "test/doubles/simgpu/cuda/cu.h"

CU_API cuInit(unsigned flags)
{
    CU_EARLY(cuInit, flags);
    return DONE(flags ? SIM_INVALID_VALUE : sim_init());
}

CU_API cuDriverGetVersion(int *version)
{
    CU_EARLY(cuDriverGetVersion, version);
    CU_NEEDS(version, SIM_INVALID_VALUE);
    *version = sim_settings()->driver_version;
    return DONE(SIM_OK);
}

static const struct {
    int number;
    const char *name, *words;
} errors[] = {
#define ERROR(number, driver, runtime, words) {number, #driver, words},
#include "test/doubles/simgpu/errors.def"
#undef ERROR
};

static int error_find(int error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == error) return (int)i;
    return -1;
}

CU_API cuGetErrorName(int error, const char **name)
{
    int i = error_find(error);
    *name = i < 0 ? NULL : errors[i].name;
    return i < 0 ? SIM_INVALID_VALUE : SIM_OK;
}

CU_API cuGetErrorString(int error, const char **words)
{
    int i = error_find(error);
    *words = i < 0 ? NULL : errors[i].words;
    return i < 0 ? SIM_INVALID_VALUE : SIM_OK;
}

/* The private tables by which NVIDIA's own libraries reach into the driver: there are none here. */
CU_API cuGetExportTable(const void **table, const void *id)
{
    (void)id;
    *table = NULL;
    return SIM_NOT_FOUND;
}

/* From which version on a plain name means a newer form of the function. Names not listed mean their newest form. */
static const struct {
    const char *name, *symbol;
    int from, until; /* until 0: for good */
} forms[] = {
#define FORM(name, symbol, from, until) {#name, #symbol, from, until},
#include "test/doubles/simgpu/cuda/forms.def"
#undef FORM
};

static void *find_form(const char *name, int version)
{
    char symbol[160];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name) == 0 && version >= forms[i].from &&
            (!forms[i].until || version < forms[i].until))
            return cu_export_find(forms[i].symbol);
    for (int form = 4; form >= 2; form--) {
        snprintf(symbol, sizeof symbol, "%s_v%d", name, form);
        void *fn = cu_export_find(symbol);
        if (fn) return fn;
    }
    return cu_export_find(name);
}

enum { PER_THREAD_STREAMS = 2 };

static int find(const char *name, void **fn, int version, uint64_t flags, int *status)
{
    char symbol[160];
    void *found = NULL;
    if (name == NULL || fn == NULL) return SIM_INVALID_VALUE;
    if (flags & PER_THREAD_STREAMS) {
        snprintf(symbol, sizeof symbol, "%s_ptsz", name);
        found = find_form(symbol, version);
    }
    if (found == NULL) found = find_form(name, version);
    *fn = found;
    if (found == NULL) sim_truth_note("no_entry_point", name);
    if (status) *status = found ? 0 : 1; /* 1: the symbol is not there; 2 would be: too new */
    return found || status ? SIM_OK : SIM_NOT_FOUND;
}

CU_API cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
    CU_EARLY(cuGetProcAddress, symbol, fn, version, flags);
    return DONE(find(symbol, fn, version, flags, NULL));
}

CU_API cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status)
{
    CU_EARLY(cuGetProcAddress_v2, symbol, fn, version, flags, status);
    return DONE(find(symbol, fn, version, flags, status));
}

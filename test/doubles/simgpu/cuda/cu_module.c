// SPDX-License-Identifier: Apache-2.0
/* cu_module.c - modules and libraries: code loaded at run time, its kernels and variables by name, the linker */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/doubles/simgpu/core/image.h"
#include "test/doubles/simgpu/cuda/cu.h"

enum { MAGIC_MODULE = 0x4d4f4455, FILE_NOT_FOUND = 301, VARIABLE_BYTES = 4096 };

struct variable {
    char *name;
    void *at;
    size_t bytes;
    struct variable *next;
};

struct sim_module { /* CUmodule and CUlibrary alike */
    uint32_t magic;
    struct sim_image image;
    struct variable *variables;
};

static bool is_module(const struct sim_module *m) { return m != NULL && m->magic == MAGIC_MODULE; }

static int load(struct sim_module **out, const void *code)
{
    if (out == NULL || code == NULL) return SIM_INVALID_VALUE;
    struct sim_module *m = calloc(1, sizeof *m);
    if (m == NULL) return SIM_OUT_OF_MEMORY;
    m->magic = MAGIC_MODULE;
    sim_image_read(&m->image, code);
    *out = m;
    return SIM_OK;
}

static int load_file(struct sim_module **out, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return FILE_NOT_FOUND;
    if (fstat(fd, &st) != 0 || st.st_size == 0) {
        close(fd);
        return SIM_INVALID_IMAGE;
    }
    char *code = calloc(1, (size_t)st.st_size + 1);
    ssize_t n = code ? read(fd, code, (size_t)st.st_size) : -1;
    close(fd);
    int error = n == st.st_size ? load(out, code) : SIM_INVALID_IMAGE;
    free(code);
    return error;
}

static int unload(struct sim_module *m)
{
    if (!is_module(m)) return SIM_INVALID_HANDLE;
    m->magic = 0;
    sim_image_close(&m->image);
    while (m->variables) {
        struct variable *v = m->variables;
        m->variables = v->next;
        sim_memory_free(v->at, 0, SIM_NOT_APPLICABLE);
        free(v->name);
        free(v);
    }
    return SIM_OK; /* the struct stays, so that a dead handle is told from a live one */
}

static int get_kernel(struct sim_kernel **out, const struct sim_module *m, const char *name)
{
    if (!is_module(m)) return SIM_INVALID_HANDLE;
    if (out == NULL || name == NULL) return SIM_INVALID_VALUE;
    if (!m->image.is_open && sim_image_find(&m->image, name, true) == NULL) return SIM_NOT_FOUND;
    *out = sim_kernel_of(name);
    return SIM_OK;
}

static int get_variable(void **at, size_t *bytes, struct sim_module *m, const char *name)
{
    if (!is_module(m)) return SIM_INVALID_HANDLE;
    const struct sim_symbol *symbol = sim_image_find(&m->image, name, false);
    struct sim_context *context = cu_context();
    if (symbol == NULL && !m->image.is_open) return SIM_NOT_FOUND;
    if (context == NULL) return SIM_INVALID_CONTEXT;
    struct variable *v = m->variables;
    while (v && strcmp(v->name, name) != 0) v = v->next;
    if (v == NULL) {
        v = calloc(1, sizeof *v);
        if (v == NULL) return SIM_OUT_OF_MEMORY;
        v->bytes = symbol && symbol->bytes ? symbol->bytes : VARIABLE_BYTES;
        v->name = strdup(name);
        int error = sim_memory_alloc(context, SIM_DEVICE_MEMORY, v->bytes, 0, NULL, SIM_NOT_APPLICABLE, &v->at);
        if (error) return error;
        v->next = m->variables;
        m->variables = v;
    }
    if (at) *at = v->at;
    if (bytes) *bytes = v->bytes;
    return SIM_OK;
}

static unsigned kernel_count(const struct sim_module *m)
{
    unsigned count = 0;
    for (size_t i = 0; i < m->image.count; i++) count += m->image.symbols[i].is_kernel;
    return count;
}

static int enumerate(struct sim_kernel **out, unsigned count, const struct sim_module *m)
{
    unsigned n = 0;
    if (!is_module(m)) return SIM_INVALID_HANDLE;
    for (size_t i = 0; i < m->image.count && n < count; i++)
        if (m->image.symbols[i].is_kernel) out[n++] = sim_kernel_of(m->image.symbols[i].name);
    return SIM_OK;
}

/* --- modules --- */
CU_API cuModuleLoad(struct sim_module **out, const char *path)
{
    CU_CALL(cuModuleLoad, out, path);
    return DONE(load_file(out, path));
}

CU_API cuModuleLoadData(struct sim_module **out, const void *code)
{
    CU_CALL(cuModuleLoadData, out, code);
    return DONE(load(out, code));
}

CU_API cuModuleLoadDataEx(struct sim_module **out, const void *code, unsigned count, int *options, void **values)
{
    CU_CALL(cuModuleLoadDataEx, out, code, count, options, values);
    return DONE(load(out, code));
}

CU_API cuModuleLoadFatBinary(struct sim_module **out, const void *code)
{
    CU_CALL(cuModuleLoadFatBinary, out, code);
    return DONE(load(out, code));
}

CU_API cuModuleUnload(struct sim_module *module)
{
    CU_CALL(cuModuleUnload, module);
    return DONE(unload(module));
}

CU_API cuModuleGetFunction(struct sim_kernel **function, struct sim_module *module, const char *name)
{
    CU_CALL(cuModuleGetFunction, function, module, name);
    return DONE(get_kernel(function, module, name));
}

CU_API cuModuleGetGlobal_v2(void **at, size_t *bytes, struct sim_module *module, const char *name)
{
    CU_CALL(cuModuleGetGlobal_v2, at, bytes, module, name);
    return DONE(get_variable(at, bytes, module, name));
}

CU_API cuModuleGetFunctionCount(unsigned *count, struct sim_module *module)
{
    CU_CALL(cuModuleGetFunctionCount, count, module);
    CU_NEEDS(is_module(module), SIM_INVALID_HANDLE);
    *count = kernel_count(module);
    return DONE(SIM_OK);
}

CU_API cuModuleEnumerateFunctions(struct sim_kernel **functions, unsigned count, struct sim_module *module)
{
    CU_CALL(cuModuleEnumerateFunctions, functions, count, module);
    return DONE(enumerate(functions, count, module));
}

CU_API cuModuleGetLoadingMode(int *mode)
{
    CU_CALL(cuModuleGetLoadingMode, mode);
    *mode = 2; /* lazy */
    return DONE(SIM_OK);
}

/* --- libraries --- */
CU_API cuLibraryLoadData(struct sim_module **out, const void *code, int *jit_options, void **jit_values,
                         unsigned jit_count, int *options, void **values, unsigned count)
{
    CU_CALL(cuLibraryLoadData, out, code, jit_options, jit_values, jit_count, options, values, count);
    return DONE(load(out, code));
}

CU_API cuLibraryLoadFromFile(struct sim_module **out, const char *path, int *jit_options, void **jit_values,
                             unsigned jit_count, int *options, void **values, unsigned count)
{
    CU_CALL(cuLibraryLoadFromFile, out, path, jit_options, jit_values, jit_count, options, values, count);
    return DONE(load_file(out, path));
}

CU_API cuLibraryUnload(struct sim_module *library)
{
    CU_CALL(cuLibraryUnload, library);
    return DONE(unload(library));
}

CU_API cuLibraryGetKernel(struct sim_kernel **kernel, struct sim_module *library, const char *name)
{
    CU_CALL(cuLibraryGetKernel, kernel, library, name);
    return DONE(get_kernel(kernel, library, name));
}

CU_API cuLibraryGetKernelCount(unsigned *count, struct sim_module *library)
{
    CU_CALL(cuLibraryGetKernelCount, count, library);
    CU_NEEDS(is_module(library), SIM_INVALID_HANDLE);
    *count = kernel_count(library);
    return DONE(SIM_OK);
}

CU_API cuLibraryEnumerateKernels(struct sim_kernel **kernels, unsigned count, struct sim_module *library)
{
    CU_CALL(cuLibraryEnumerateKernels, kernels, count, library);
    return DONE(enumerate(kernels, count, library));
}

CU_API cuLibraryGetModule(struct sim_module **module, struct sim_module *library)
{
    CU_CALL(cuLibraryGetModule, module, library);
    CU_NEEDS(is_module(library), SIM_INVALID_HANDLE);
    *module = library;
    return DONE(SIM_OK);
}

CU_API cuLibraryGetGlobal(void **at, size_t *bytes, struct sim_module *library, const char *name)
{
    CU_CALL(cuLibraryGetGlobal, at, bytes, library, name);
    return DONE(get_variable(at, bytes, library, name));
}

CU_API cuLibraryGetManaged(void **at, size_t *bytes, struct sim_module *library, const char *name)
{
    CU_CALL(cuLibraryGetManaged, at, bytes, library, name);
    return DONE(get_variable(at, bytes, library, name));
}

CU_API cuFuncIsLoaded(int *state, struct sim_kernel *function)
{
    CU_CALL(cuFuncIsLoaded, state, function);
    *state = 1;
    return DONE(SIM_OK);
}

CU_API cuFuncLoad(struct sim_kernel *function)
{
    CU_CALL(cuFuncLoad, function);
    return DONE(function && function->magic == SIM_MAGIC_KERNEL ? SIM_OK : SIM_INVALID_HANDLE);
}

/* --- the linker: what was added, end to end; PTX stays readable as such --- */
struct link {
    char *text;
    size_t bytes;
};

CU_API cuLinkCreate_v2(unsigned count, int *options, void **values, struct link **out)
{
    CU_CALL(cuLinkCreate_v2, count, options, values, out);
    *out = calloc(1, sizeof **out);
    return DONE(*out ? SIM_OK : SIM_OUT_OF_MEMORY);
}

CU_API cuLinkAddData_v2(struct link *link, int type, const void *data, size_t bytes, const char *name, unsigned count,
                        int *options, void **values)
{
    CU_CALL(cuLinkAddData_v2, link, type, data, bytes, name, count, options, values);
    char *text = realloc(link->text, link->bytes + bytes + 1);
    CU_NEEDS(text, SIM_OUT_OF_MEMORY);
    memcpy(text + link->bytes, data, bytes);
    link->bytes += bytes;
    text[link->bytes] = '\0';
    link->text = text;
    return DONE(SIM_OK);
}

CU_API cuLinkComplete(struct link *link, void **code, size_t *bytes)
{
    CU_CALL(cuLinkComplete, link, code, bytes);
    *code = link->text;
    if (bytes) *bytes = link->bytes;
    return DONE(link->text ? SIM_OK : SIM_INVALID_IMAGE);
}

CU_API cuLinkDestroy(struct link *link)
{
    CU_CALL(cuLinkDestroy, link);
    free(link->text);
    free(link);
    return DONE(SIM_OK);
}

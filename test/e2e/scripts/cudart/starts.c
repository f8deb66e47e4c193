// SPDX-License-Identifier: Apache-2.0
/*
 * starts.c - a library whose constructor allocates and launches (cc -DLIBRARY); a program without CUDA that opens it
 *
 * The CUDA runtime comes in the same dlopen, so nobody saw it before. The program prints what the constructor counted.
 */
#include <stddef.h>
#include <stdio.h>

#ifdef LIBRARY
#include "runtime.h"

static void scale(void) {}

__attribute__((constructor)) static void begin(void)
{
    static fatbin_t fatbin = {0x466243b1, 1, "", NULL};
    void *block, *args[4] = {NULL};
    int bad = 0;
    void **module = __cudaRegisterFatBinary(&fatbin);
    __cudaRegisterFunction(module, (const char *)scale, (char *)"_Z5scalePff", "_Z5scalePff", -1, NULL, NULL, NULL,
                           NULL, NULL);
    __cudaRegisterFatBinaryEnd(module);
    for (int i = 0; i < 10; i++) bad += cudaMalloc(&block, 1 << 12) != 0;
    for (unsigned i = 1; i <= 20; i++)
        bad += cudaLaunchKernel((const void *)scale, (dim3){i, 1, 1}, (dim3){32, 1, 1}, args, 0, NULL) != 0;
    bad += cudaDeviceSynchronize() != 0;
    printf("%d calls failed\n", bad);
}
#else
#include <dlfcn.h>

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    void *handle = dlopen(argv[1], RTLD_NOW);
    printf("%s\n", handle ? "opened" : dlerror());
    return 0;
}
#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * rt_ptsz.c - the forms of functions whose default stream is the calling thread's own (programs built with
 * --default-stream per-thread): each tells its own number to the observer and does as the plain one
 */
#include "test/doubles/simgpu/cudart/rt.h"

static void *own(void *stream) { return stream ? stream : (void *)2; }

#define PTSZ(fn, declaration, arguments) \
    RT_API fn declaration;               \
    RT_API fn##_ptsz declaration         \
    {                                    \
        rt_alias(SIM_CBID_##fn##_ptsz);  \
        return fn arguments;             \
    }
#include "test/doubles/simgpu/cudart/ptsz.def"

// SPDX-License-Identifier: Apache-2.0
/* lib_built.c - its constructor takes and frees 100,002 blocks, by each function that takes some; another library's
 * constructor opens it */
#include <malloc.h>
#include <stdlib.h>

enum { ROUNDS = 100000 / 6 + 1 }; /* 6 blocks each: 100,002 */

static void *volatile kept;

static void give(void *block)
{
    kept = block;
    free(kept);
}

__attribute__((constructor)) static void begin(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        void *at = NULL;
        give(malloc(10));
        give(calloc(2, 10));
        give(realloc(NULL, 30));
        if (posix_memalign(&at, 64, 40) == 0) give(at);
        give(aligned_alloc(64, 64));
        give(memalign(64, 60));
    }
}

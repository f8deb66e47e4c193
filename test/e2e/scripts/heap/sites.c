// SPDX-License-Identifier: Apache-2.0
/* sites.c - twelve functions, each allocates blocks of its own number and size, leaves one and frees the rest */
#include <stdlib.h>

#define SITE(N)                                             \
    static __attribute__((noinline)) void site_##N(void)    \
    {                                                       \
        for (int i = 0; i < 10 * (N); i++) {                \
            void *volatile block = malloc(1000 - 50 * (N)); \
            if (i) free(block);                             \
        }                                                   \
    }

SITE(1)
SITE(2)
SITE(3)
SITE(4)
SITE(5)
SITE(6)
SITE(7)
SITE(8)
SITE(9)
SITE(10)
SITE(11)
SITE(12)

int main(void)
{
    static void (*const sites[])(void) = {site_1, site_2, site_3, site_4,  site_5,  site_6,
                                          site_7, site_8, site_9, site_10, site_11, site_12};
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) sites[i]();
    return 0;
}

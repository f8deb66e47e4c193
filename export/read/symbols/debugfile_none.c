// SPDX-License-Identifier: Apache-2.0
/* debugfile_none.c - stands in for debugfile.c in a build without libdw: finds nothing */
#include "export/read/symbols/debugfile.h"

#include <stddef.h>

bool kp_debugfile_can(void) { return false; }

struct kp_debugfile *kp_debugfile_open(const char *path, const char *debug_path)
{
    (void)path, (void)debug_path;
    return NULL;
}

void kp_debugfile_close(struct kp_debugfile *d) { (void)d; }

int kp_debugfile_find(struct kp_debugfile *d, uint64_t at, bool lines, struct kp_debugplace *out, int most)
{
    (void)d, (void)at, (void)lines, (void)out, (void)most;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* other_tool.c - an NVTX tool of somebody else, which says that it was asked */
#include <stdio.h>

int InitializeInjectionNvtx2(const void *(*export_get)(unsigned));
int InitializeInjectionNvtx2(const void *(*export_get)(unsigned))
{
    fprintf(stderr, "the other tool was asked\n");
    return export_get != NULL;
}

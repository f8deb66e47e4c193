// SPDX-License-Identifier: Apache-2.0
/* mempage.h - memory as one HTML page */
#ifndef KP_MEMPAGE_H
#define KP_MEMPAGE_H

#include "export/report/memory/memblocks.h"

/* view NULL: the trace has no tensors' memory. heap NULL: it has no heap of the host; else that as text, where lines
 * without an indent are titles, four blanks begin a site and eight a frame. */
void kp_mempage_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show, const char *heap);

#endif

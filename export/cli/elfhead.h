// SPDX-License-Identifier: Apache-2.0
/* elfhead.h - what an ELF file says of itself: machine, dynamic linker, build id; read by libelf */
#ifndef KP_ELFHEAD_H
#define KP_ELFHEAD_H

#include <stdbool.h>

#include "collector/base/kp_elffile.h"

struct kp_elfhead {
    unsigned machine; /* EM_ of <elf.h> */
    bool is_64;
    char interp[512]; /* the dynamic linker's path; "": none */
};
/* The file stays open, and where it stands. 0; -EINVAL: no ELF file; -EBADMSG: damaged, but machine and is_64 hold. */
int kp_elfhead_read(int fd, struct kp_elfhead *out);
/* In hexadecimal; "-": it has none, or one that is too long. 0, or -EINVAL: no ELF file. */
int kp_elfhead_build_id(int fd, char out[KP_BUILD_ID_TEXT]);

#endif

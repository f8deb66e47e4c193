// SPDX-License-Identifier: Apache-2.0
/* elfhead.h - reads machine, dynamic linker and build id of an ELF file by libelf */
#pragma once

#include <stdbool.h>

#include "collector/base/elf/kp_elffile.h"

struct kp_elfhead {
    unsigned machine; /* EM_ of <elf.h> */
    bool is_64;
    char interp[512]; /* the dynamic linker's path, or "" */
};
/* fd and its offset stay. 0, or -EINVAL (no ELF file), or -EBADMSG (damaged, but machine and is_64 are good). */
int kp_elfhead_read(int fd, struct kp_elfhead *out);
/* Writes the build id in hexadecimal, or "-" when there is none or it is too long. 0, or -EINVAL: no ELF file. */
int kp_elfhead_build_id(int fd, char out[KP_BUILD_ID_TEXT]);

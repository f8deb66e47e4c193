// SPDX-License-Identifier: Apache-2.0
/* kp_modulepath.h - which files are mapped: at an address, and where in another process */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_mapping { /* "LOW-HIGH rw-p OFFSET DEVICE INODE  /PATH" */
    uintptr_t low, high, offset;
    bool is_writable;
    const char *file; /* from DEVICE on */
    const char *path; /* NULL: it has no file */
};
/* Visits the mappings of a maps file of proc(5), until `visit` returns true. 1: it did, 0, or -errno. */
typedef bool (*kp_mapping_fn)(const struct kp_mapping *m, void *of);
int kp_mappings_look(const char *maps, kp_mapping_fn visit, void *of);
/* The whole path of the file that is mapped at this address. False: not known. Reads /proc/self/maps. */
bool kp_modulepath_find(uintptr_t at, char *out, size_t bytes);
/* The address at which another process has the byte of a file that is mapped at `at` here. 0: it has it not. */
uintptr_t kp_modulepath_there(uint32_t pid, uintptr_t at);

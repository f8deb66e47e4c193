// SPDX-License-Identifier: Apache-2.0
/* debugfile.h - finds a module's functions, inlined functions and source lines in its file or its debug file */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kp_debugfile;
struct kp_debugplace {
    const char *function; /* as the compiler names it (mangled), or NULL. Texts are valid until _close */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known */
};
bool kp_debugfile_can(void); /* false: built without libdw */
/*
 * `path` is an ELF file with the right build id. Debug files are searched along debug_path, as with eu-addr2line's
 * --debuginfo-path. NULL means beside the file, in .debug and in /usr/lib/debug. No server is asked. Returns NULL when
 * the file has no debug information.
 */
struct kp_debugfile *kp_debugfile_open(const char *path, const char *debug_path);
void kp_debugfile_close(struct kp_debugfile *d);
/*
 * Finds the functions at an address, as the file counts: the innermost inlined function first, the function itself
 * last. Only the latter, if `lines` is false. Returns how many.
 */
int kp_debugfile_find(struct kp_debugfile *d, uint64_t at, bool lines, struct kp_debugplace *out, int most);

// SPDX-License-Identifier: Apache-2.0
/* debugfile.h - functions, inlined functions and source lines of one program or library, as its own file or a debug
 * file tells them */
#ifndef KP_DEBUGFILE_H
#define KP_DEBUGFILE_H

#include <stdbool.h>
#include <stdint.h>

struct kp_debugfile;
struct kp_debugplace {
    const char *function; /* as the compiler names it (mangled); NULL: not known. Until _close, as the file */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known */
};
bool kp_debugfile_can(void); /* false: built without libdw */
/*
 * path: an ELF file whose build id is the right one already; debug files are looked for along debug_path (as
 * eu-addr2line's --debuginfo-path,
 * NULL: beside it, in .debug and /usr/lib/debug), never asked of a server. NULL: nothing can be told of it.
 */
struct kp_debugfile *kp_debugfile_open(const char *path, const char *debug_path);
void kp_debugfile_close(struct kp_debugfile *d);
/*
 * What stands at an address, as the file counts: the innermost inlined function first, the function itself last; only
 * that without lines. How many.
 */
int kp_debugfile_find(struct kp_debugfile *d, uint64_t at, bool lines, struct kp_debugplace *out, int most);

#endif

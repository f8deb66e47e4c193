// SPDX-License-Identifier: Apache-2.0
/* errorfile.h - what torch.distributed.elastic wrote of the exception that ended a rank (TORCHELASTIC_ERROR_FILE) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KP_ERRORFILE_TYPE = 80, KP_ERRORFILE_PLACE = 300, KP_ERRORFILE_MOST = 1 << 20 };
struct kp_errorfile {
    char type[KP_ERRORFILE_TYPE];   /* "ValueError" */
    char place[KP_ERRORFILE_PLACE]; /* "train.py:18 main", the innermost line of the program's own; "": not known */
    int64_t at_ns;                  /* in whole seconds */
    bool has_lost_peer;             /* it says that another rank was gone */
};
/* False: the text is no such file. The text of the exception may hold data of the user, and is not kept. */
bool kp_errorfile_read(struct kp_errorfile *out, const char *text, size_t bytes);
/* Reads the file that a trace names. False: there is none, or it is another one. */
bool kp_errorfile_open(struct kp_errorfile *out, const char *path);

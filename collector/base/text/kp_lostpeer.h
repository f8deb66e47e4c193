// SPDX-License-Identifier: Apache-2.0
/* kp_lostpeer.h - whether an exception says that another rank was gone: torch's of a collective or of the store */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Its text may say so. Libraries of the program have exceptions of their own for connections, which are no rank's. */
static inline bool kp_lostpeer_may(const char *type)
{
    return strcmp(type, "RuntimeError") == 0 || strcmp(type, "DistBackendError") == 0 ||
           strcmp(type, "DistNetworkError") == 0 || strcmp(type, "DistStoreError") == 0;
}

/* A RuntimeError is gloo's where it names a file of gloo. */
static inline bool kp_lostpeer_is(const char *type, const char *text)
{
    static const char *const words[] = {"by peer",     "by remote peer", "remote process exited", "Broken pipe",
                                        "got 0 bytes", "Socket closed",  "caused pair closure",   "Timed out",
                                        "timed out",   "Socket Timeout", "operation timeout"};
    if (!kp_lostpeer_may(type) || (strcmp(type, "RuntimeError") == 0 && !strstr(text, "gloo/"))) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i])) return true;
    return false;
}

// SPDX-License-Identifier: Apache-2.0
/* written.c - prints what a command wrote as a line of JSON */
#include "export/read/folder/written.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "export/show/say.h"
#include "export/show/plain.h"

void kp_written_begin(const char *name, const char *path)
{
    struct stat st;
    fputs("{\"file\":", stdout);
    kp_plain_json(stdout, name);
    if (stat(path, &st) == 0) kp_written_number("bytes", (uint64_t)st.st_size);
}

void kp_written_number(const char *key, uint64_t value) { printf(",\"%s\":%" PRIu64, key, value); }

void kp_written_bool(const char *key, int value) { printf(",\"%s\":%s", key, value ? "true" : "false"); }

void kp_written_end(void)
{
    fputs("}\n", stdout);
    fflush(stdout);
}

int kp_written_check(const char *command, const char *out)
{
    if (out && strcmp(out, "-") != 0) return KP_EXIT_DONE;
    return kp_cli_misuse(command, "--json says what was written; -o names the file");
}

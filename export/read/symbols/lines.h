// SPDX-License-Identifier: Apache-2.0
/* lines.h - finds functions, inlined functions and source lines of frames, for every command that shows frames */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/kp_export.h"

/* The values of the options KP_LINES_OPTIONS (cli.h). */
struct kp_lines_options {
    bool lines;
    const char *debug_path; /* NULL: the usual places */
};

struct kp_lines;
/* command: for messages. Ends the program when there is no memory. */
struct kp_lines *kp_lines_open(const char *command, const struct kp_lines_options *wish);
void kp_lines_close(struct kp_lines *l);
/*
 * Finds the functions at an address of a module, as kp_places.find does. If the module's file is gone or replaced, a
 * line on stderr says so once.
 */
int kp_lines_find(struct kp_lines *l, const char *path, const char *build_id, uint64_t at, struct kp_place *out,
                  int most);
const struct kp_places *kp_lines_places(struct kp_lines *l); /* for kp_export_options */

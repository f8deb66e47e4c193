// SPDX-License-Identifier: Apache-2.0
/* flamepage.h - the SVG around and of a flame graph's boxes: head, legend, colours */
#pragma once

#include "export/answers/stacks/calltree.h"
#include "export/answers/stacks/flame.h"

enum kp_flame_kind { KP_FLAME_PYTHON, KP_FLAME_OP, KP_FLAME_MACHINE, KP_FLAME_KINDS };
struct kp_flame_colour {
    uint8_t part; /* enum kp_part */
    enum kp_flame_kind kind;
    unsigned shade; /* any number */
};
struct kp_flame_box {
    const char *name;
    double from, width; /* of the whole */
    unsigned depth;
    int64_t value;
    struct kp_flame_colour colour;
};
struct kp_flame_head {
    int64_t total;
    int64_t parts[KP_PARTS];
    unsigned deepest;
};
/* The palette as rules of CSS: "--f0", a part of a step; ".c000", a box by part, kind and shade (0 to 3). */
void kp_flamepage_colours(FILE *out);
void kp_flamepage_begin(FILE *out, const struct kp_flame_show *show, const struct kp_flame_head *head);
void kp_flamepage_box(FILE *out, const struct kp_flame_show *show, const struct kp_flame_box *box);
void kp_flamepage_end(FILE *out, const struct kp_flame_show *show);

/* flameassets.S: begin and end of flame.js, which a page of more runs too, and of flamefile.js */
extern const char kp_flame_script[], kp_flame_script_end[], kp_flame_file_end[];

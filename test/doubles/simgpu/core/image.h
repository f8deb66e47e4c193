// SPDX-License-Identifier: Apache-2.0
/* image.h - the names of kernels and variables in what programs hand to the driver as code */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_symbol {
    char *name;
    size_t bytes; /* of a variable */
    bool is_kernel;
};

struct sim_image {
    struct sim_symbol *symbols;
    size_t count, room;
    bool is_open; /* the form was not understood (or is compressed): any name may be in it */
};

void sim_image_read(struct sim_image *image,
                    const void *code); /* an ELF cubin, a fat binary, its wrapper, or PTX text */
void sim_image_close(struct sim_image *image);
const struct sim_symbol *sim_image_find(const struct sim_image *image, const char *name, bool is_kernel);

// SPDX-License-Identifier: Apache-2.0
/* flame.h - a flame graph as one SVG file or page that loads no other */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum kp_flame_unit { KP_FLAME_US, KP_FLAME_BYTES, KP_FLAME_THREADS };
struct kp_flame_show {
    const char *title; /* any text */
    enum kp_flame_unit unit;
    bool has_parts; /* the roots are parts of a step: they have colours and a legend */
    bool is_page;   /* HTML around the SVG */
};
struct kp_flame;
struct kp_flame *kp_flame_open(void);
void kp_flame_add(struct kp_flame *flame, const char *stack, int64_t value); /* "outer;inner" */
void kp_flame_write(struct kp_flame *flame, FILE *out, const struct kp_flame_show *show);
void kp_flame_close(struct kp_flame *flame);

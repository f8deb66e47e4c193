// SPDX-License-Identifier: Apache-2.0
/* layouts.h - test/data/cupti_layouts.json: what NVIDIA's headers of 17 releases say of CUPTI's activity records */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { KP_RELEASES_MAX = 32 };
extern char kp_releases[KP_RELEASES_MAX][8]; /* "11.7" ... oldest first */
extern int kp_release_count;

void kp_layouts_load(void);                              /* once; fails the test when the file is not as expected */
uint32_t kp_layout_kind(const char *kind);               /* CUPTI's number of it */
uint32_t kp_layout_bytes(const char *kind, int release); /* of a record; 0: this release does not have the kind */
bool kp_layout_field(const char *kind, const char *field, int release, uint32_t *offset, uint32_t *bytes);

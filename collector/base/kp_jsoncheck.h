// SPDX-License-Identifier: Apache-2.0
/*
 * kp_jsoncheck.h - checks that a text is a JSON value; builds and allocates nothing
 *
 * Strict RFC 8259 with well-formed UTF-8, at most 512 levels deep. Reads only text[0..bytes).
 */
#pragma once

#include <stddef.h>

/* 0, or -EINVAL with the offset of the first wrong byte and one short phrase about it. */
int kp_jsoncheck_value(const char *text, size_t bytes, size_t *offset, const char **why);
/* As kp_jsoncheck_value, and the value must be an object. */
int kp_jsoncheck_object(const char *text, size_t bytes, size_t *offset, const char **why);

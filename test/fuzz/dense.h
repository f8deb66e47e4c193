// SPDX-License-Identifier: Apache-2.0
/* dense.h - bytes to a spool: each few of them are an instruction, and what they make has the right hashes and
 * checks */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "test/support/spool.h"

enum { DENSE_CHUNK, DENSE_STRING, DENSE_FRAME, DENSE_RECORD, DENSE_TEXT, DENSE_CYCLE, DENSE_CLOCK, DENSE_KINDS };
/*
 * CHUNK kind cycle thread   STRING length bytes   FRAME module around offset   RECORD kind flags name words (each: 0 to
 *                           127 small, 128 to 191 near the
 * window, 192 to 254 two bytes, 255 eight)   TEXT length bytes   CYCLE number begin end flags   CLOCK step
 */
void dense_unpack(struct test_spool *s, const uint8_t *data, size_t size);

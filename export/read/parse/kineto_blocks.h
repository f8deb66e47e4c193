// SPDX-License-Identifier: Apache-2.0
/* kineto_blocks.h - reads a trace's text with all cores (the command only) */
#pragma once

#include "export/read/kineto/kineto.h"
#include "export/read/parse/kineto_parse.h"

struct kp_kineto_blocks;
/* `parser` reads into `trace`, and is the caller's, as `pieces` (or NULL). All live longer. */
struct kp_kineto_blocks *kp_kineto_blocks_open(struct kp_kineto *trace, struct kp_kineto_parser *parser, bool keep_args,
                                               struct kp_kineto_pieces *pieces);
void kp_kineto_blocks_close(struct kp_kineto_blocks *blocks);
/* As kp_kineto_parser_feed. What `keep` accepts or not is asked later, in the order of the file. */
int kp_kineto_blocks_feed(struct kp_kineto_blocks *blocks, const char *text, size_t bytes);
/* Reads what was fed and is not read yet. Call it once, before kp_kineto_finish. */
int kp_kineto_blocks_end(struct kp_kineto_blocks *blocks);

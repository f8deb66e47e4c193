// SPDX-License-Identifier: Apache-2.0
/*
 * kineto_parse.h - reads a Kineto-shaped JSON trace into memory
 *
 * It reads the text once. Numbers stay text until they are exact ns.
 */
#pragma once

#include "export/read/kineto/kineto.h"
#include "export/read/kineto/kineto_torn.h"
#include "export/read/kineto/kineto_words.h"

/* Takes a piece of a trace's text. A result other than 0 ends the reading and becomes its result. */
typedef int (*kp_text_fn)(void *context, const char *text, size_t bytes);
struct kp_texts {
    int (*each)(const void *from, kp_text_fn take, void *context, char *why,
                size_t why_bytes); /* returns 0 or -errno; may write a line to `why` */
    const void *from;
};
struct kp_kineto_wish {
    struct kp_texts texts;
    const char *label; /* what messages call it */
    bool keep_args, keep_works;
    bool lasting_names;     /* false: names and stacks as they are in the file */
    kp_kineto_keep_fn keep; /* NULL: every event; else the events it accepts, whose times have no base yet */
    const void *context;
    const int *stop;                 /* NULL, or what `keep` sets to -errno to end the reading */
    struct kp_kineto_pieces *pieces; /* NULL, or the trace is given in pieces; what is left is the result */
};
/* Returns 0 or -errno (-EINVAL: not JSON or cut short). `why` gets a line with the label and the byte. */
int kp_kineto_read(struct kp_kineto **out, const struct kp_kineto_wish *wish, char *why, size_t why_bytes);
/* kineto_file.c: gives `take` the text of a file, gzip or plain */
int kp_text_file_each(const void *path, kp_text_fn take, void *context, char *why, size_t why_bytes);
/* kineto_parse.c: turns JSON into events */
struct kp_kineto_parser;
/* Ends a reading and closes the parser. `rc`: 0 or an earlier error. Returns what kp_kineto_read returns. */
int kp_kineto_finish(struct kp_kineto **out, struct kp_kineto *trace, struct kp_kineto_parser *parser, int rc,
                     const char *path, char *why, size_t why_bytes);
struct kp_kineto_parser *kp_kineto_parser_open(struct kp_kineto *trace, bool keep_args);
void kp_kineto_parser_close(struct kp_kineto_parser *parser);
/* Both return 0 or -EINVAL. Then _offset is the bad byte in the whole text, and _why says what is wrong. */
int kp_kineto_parser_feed(struct kp_kineto_parser *parser, const char *text, size_t bytes);
int kp_kineto_parser_end(struct kp_kineto_parser *parser);
uint64_t kp_kineto_parser_offset(const struct kp_kineto_parser *parser);
const char *kp_kineto_parser_why(const struct kp_kineto_parser *parser);
bool kp_kineto_parser_is_torn(const struct kp_kineto_parser *parser);
/* Does the text end with an event of the list, so far? Then others may read the next events instead. */
bool kp_kineto_parser_is_behind_event(const struct kp_kineto_parser *parser);
void kp_kineto_parser_pass(struct kp_kineto_parser *parser, size_t bytes); /* counts bytes that others read */
/* The text begins inside of the list of events, behind one: with a comma, a bracket or nothing. */
void kp_kineto_parser_enter_list(struct kp_kineto_parser *parser);
/* kineto_blocks.c: how many threads read (0: one a core, 1: the caller's parser alone), and blocks of how many bytes */
extern struct kp_kineto_cutting {
    unsigned workers;
    size_t block_bytes;
} kp_kineto_cutting;

/* kineto_append.c: Adds what another trace of the process has, without args. The head's facts stay those of `to`. */
void kp_kineto_append(struct kp_kineto *to, const struct kp_kineto *from);

/* ---- kineto_blocks.c ---- */

struct kp_kineto_blocks;
/* `parser` reads into `trace`, and is the caller's, as `pieces` (or NULL). All live longer. */
struct kp_kineto_blocks *kp_kineto_blocks_open(struct kp_kineto *trace, struct kp_kineto_parser *parser, bool keep_args,
                                               struct kp_kineto_pieces *pieces);
void kp_kineto_blocks_close(struct kp_kineto_blocks *blocks);
/* As kp_kineto_parser_feed. The events that `keep` accepts or not are asked for later, in the order of the file. */
int kp_kineto_blocks_feed(struct kp_kineto_blocks *blocks, const char *text, size_t bytes);
/* Reads what was fed and is not read yet. Call it once, before kp_kineto_finish. */
int kp_kineto_blocks_end(struct kp_kineto_blocks *blocks);

/* ---- kineto_raw.c ---- */

struct kp_kineto_raw {
    struct kp_kineto *trace; /* whose args_text grows */
    bool comma;              /* one comes before the next value */
};
/* Each adds what the reader of JSON has called, as JSON on a line. */
void kp_kineto_raw_value(struct kp_kineto_raw *raw, const char *text, size_t bytes);
void kp_kineto_raw_string(struct kp_kineto_raw *raw, const unsigned char *text, size_t bytes);
void kp_kineto_raw_key(struct kp_kineto_raw *raw, const unsigned char *text, size_t bytes);
void kp_kineto_raw_open(struct kp_kineto_raw *raw, char bracket);
void kp_kineto_raw_close(struct kp_kineto_raw *raw, char bracket);

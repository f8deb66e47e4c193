// SPDX-License-Identifier: Apache-2.0
/* sink.h - writes a file under a temporary name, and renames it when it is whole */
#pragma once

#include <stddef.h>

#include "collector/base/sys/kp_room.h"

struct kp_export_owner;

struct kp_sink {
    int fd;
    struct kp_room room;                 /* set after open: what of the volume stays free */
    bool is_room_left;                   /* a write was refused for that */
    const struct kp_export_owner *owner; /* NULL: the caller's */
    char temporary[4096];                /* in the folder of the final name, never ending in .json or .gz */
};

/* 0 or -errno; makes the folder. An owner must outlive the sink. */
int kp_sink_open(struct kp_sink *s, const char *dir, const char *name, const struct kp_export_owner *owner);
/* 0 or -errno; -ENOSPC also where the room that is left stays free. */
int kp_sink_write(struct kp_sink *s, const void *data, size_t bytes);
/* Syncs the file, then names it `path`. -EEXIST: the name is taken, and the sink stays open for a new try. */
int kp_sink_commit(struct kp_sink *s, const char *path);
void kp_sink_drop(struct kp_sink *s); /* removes what was written; harmless after a commit */

/* gz.c: a gzip stream into a sink */
struct kp_gz;

struct kp_gz *kp_gz_open(struct kp_sink *sink);                    /* NULL: no memory */
int kp_gz_write(struct kp_gz *gz, const void *data, size_t bytes); /* 0 or -errno */
int kp_gz_finish(struct kp_gz *gz);                                /* writes the tail; 0 or -errno */
void kp_gz_close(struct kp_gz *gz);

/* zst.c: a zstd stream into a sink */
struct kp_zst;

struct kp_zst *kp_zst_open(struct kp_sink *sink);                     /* NULL: no memory */
int kp_zst_write(struct kp_zst *zst, const void *data, size_t bytes); /* 0 or -errno */
int kp_zst_finish(struct kp_zst *zst);                                /* writes the tail; 0 or -errno */
void kp_zst_close(struct kp_zst *zst);

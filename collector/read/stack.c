// SPDX-License-Identifier: Apache-2.0
/*
 * stack.c - reads the call stacks of records frame by frame: Python's, and machine code's
 *
 * Called by: kp_read.h
 * Memory:    none
 * On fail:   the stack ends at a lost text or frame, or where a damaged file does not lead outwards. Machine code
 *            frames of a damaged file may form a circle, so callers count them (KP_FRAMES_MAX).
 */
#include "collector/format/kp_python.h"
#include "collector/read/reader.h"

#include <string.h>

#include "collector/base/kp_poison.h"

bool kp_reader_called_by_c(const struct kp_reader *r, uint32_t stack)
{
    const struct kp_name *n = stack ? kp_names_get(&r->names, stack) : NULL;
    return n && n->name[strspn(n->name, "0123456789")] == '!';
}

const char *kp_reader_frame(const struct kp_reader *r, uint32_t *stack)
{
    const struct kp_name *n = *stack ? kp_names_get(&r->names, *stack) : NULL;
    const char *text = n ? n->name : "";
    uint64_t around = 0;
    const uint32_t inner = *stack;
    *stack = 0;
    for (; *text >= '0' && *text <= '9' && around <= UINT32_MAX; text++) around = around * 10 + (uint64_t)(*text - '0');
    if ((*text != ';' && *text != '!') || around >= inner) return NULL;
    *stack = (uint32_t)around;
    return text + 1;
}

const char *kp_reader_call_line(const struct kp_reader *r, uint32_t stack)
{
    const struct kp_name *n = stack ? kp_names_get(&r->names, stack) : NULL;
    return n && n->name[0] == KP_PY_LINE ? n->name + 1 : NULL;
}

enum { DIGITS_MAX = 16 };

/* Reads "BUILDID BASE LO HI" behind the path. */
static void module_read(const struct kp_name *n, char *id, size_t id_bytes, struct kp_frame *out)
{
    uint64_t *const places[] = {&out->base, &out->lo, &out->hi};
    const char *at = n->overload;
    size_t used = 0;
    for (; *at && *at != ' ' && used + 1 < id_bytes; at++) id[used++] = *at;
    id[used] = 0;
    for (size_t i = 0; i < 3 && *at == ' '; i++) {
        uint64_t value = 0;
        const char *const end =
            at + 1 + DIGITS_MAX; /* a damaged text may be as long as a chunk, and is read for each frame */
        for (at++; at < end && *at && *at != ' '; at++)
            value = value << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
        *places[i] = value;
    }
}

/* The record of this id. NULL: there is none, or it was damaged. */
static const struct kp_rec_frame *record_at(const struct kp_reader *r, uint32_t cell)
{
    const uint64_t at = (uint64_t)cell * KP_STR_CELL;
    const struct kp_rec_frame *f = (const void *)(r->file + at);
    uint32_t used;
    if (!cell || at / KP_CHUNK_BYTES == 0 || at / KP_CHUNK_BYTES >= r->chunks || at + sizeof *f > r->file_bytes)
        return NULL;
    const struct kp_chunk_head *head = kp_file_chunk(r, (uint32_t)(at / KP_CHUNK_BYTES), &used);
    if (!head || kp_load_acquire(&head->kind) != KP_CHUNK_FRAMES) return NULL; /* pairs with: chunk.c */
    if (at % KP_CHUNK_BYTES < sizeof *head || f->head.kind != KP_KIND_FRAME) return NULL;
    if (kp_load_acquire((_Atomic uint64_t *)(uintptr_t)&f->check) != kp_frame_check(f))
        return NULL; /* pairs with: frames.c */
    return f;
}

uint32_t kp_reader_python_beside(const struct kp_reader *r, uint32_t *stack)
{
    const struct kp_rec_frame *f = record_at(r, *stack);
    if (!f || !(f->head.flags & KP_FRAME_PYTHON) || !f->offset || f->offset > UINT32_MAX) return 0;
    *stack = kp_stack_id(r, f->around);
    return (uint32_t)f->offset;
}

bool kp_reader_native_at(const struct kp_reader *r, uint32_t *stack, struct kp_frame_at *out)
{
    const struct kp_rec_frame *f = record_at(r, *stack);
    *stack = 0;
    if (!f || f->head.flags & KP_FRAME_PYTHON) return false;
    *out = (struct kp_frame_at){f->head.name, f->offset};
    *stack = kp_stack_id(r, f->around);
    return true;
}

bool kp_reader_native(const struct kp_reader *r, uint32_t *stack, struct kp_frame *out)
{
    struct kp_frame_at at;
    *out = (struct kp_frame){.path = ""};
    if (!kp_reader_native_at(r, stack, &at)) return false;
    const struct kp_name *module = at.module ? kp_names_get(&r->names, at.module) : NULL;
    out->module = at.module;
    out->offset = at.offset;
    out->path = module ? module->name : "";
    if (module) module_read(module, out->build_id, sizeof out->build_id, out);
    return true;
}

int kp_reader_natives(const struct kp_reader *r, kp_frame_fn fn, void *context)
{
    enum { CELLS = KP_CHUNK_BYTES / KP_STR_CELL };
    struct kp_frame_at frame;
    int rc = 0;
    for (uint32_t i = 1, used; !rc && i < r->chunks; i++) {
        const struct kp_chunk_head *head = kp_file_chunk(r, i, &used);
        if (!head || kp_load_acquire(&head->kind) != KP_CHUNK_FRAMES) continue; /* pairs with: chunk.c */
        for (uint32_t cell = sizeof *head / KP_STR_CELL; !rc && cell < CELLS; cell++) {
            uint32_t id = i * CELLS + cell;
            const uint32_t own = id;
            if (kp_reader_native_at(r, &id, &frame)) rc = fn(context, own, &frame);
        }
    }
    return rc;
}

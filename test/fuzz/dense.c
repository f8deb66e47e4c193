// SPDX-License-Identifier: Apache-2.0
/* dense.c - bytes to a spool, with the right hashes and checks */
#include "test/fuzz/dense.h"

#include <string.h>

#define WALL 1790857026000000000u
enum { BEGIN = 2000, CHUNKS_MOST = 24, WORDS_MOST = 96 };

struct input {
    const uint8_t *at, *end;
};

static uint8_t byte(struct input *in) { return in->at < in->end ? *in->at++ : 0; }

static uint64_t word(struct input *in)
{
    const uint8_t b = byte(in);
    uint64_t value = b;
    if (b >= 128 && b < 192) return BEGIN + (uint64_t)(b - 128) * 40;
    if (b < 192) return value;
    value = 0;
    for (int i = b == 255 ? 8 : 2; i; i--) value = value << 8 | byte(in);
    return b == 255 ? value : BEGIN + value;
}

struct making {
    struct test_spool *s;
    uint32_t meta, data, frames, frame_cells[64], frames_n;
};

static void chunk_make(struct making *m, struct input *in)
{
    static const uint32_t kinds[] = {KP_CHUNK_DATA, KP_CHUNK_DEVICE, KP_CHUNK_META, KP_CHUNK_DATA};
    const uint32_t kind = kinds[byte(in) % 4], cycle = byte(in) % 5, thread = byte(in);
    if (m->s->chunks >= CHUNKS_MOST) return;
    m->data = test_spool_chunk(m->s, kind, cycle, 4200 + thread % 16, thread, "t");
    test_spool_at(m->s, m->data)->pthread_id = thread / 16;
}

static void string_make(struct making *m, struct input *in)
{
    size_t length = byte(in);
    if (length > (size_t)(in->end - in->at)) length = (size_t)(in->end - in->at);
    if (m->s->chunks < CHUNKS_MOST) test_spool_name(m->s, (const char *)in->at, (uint32_t)length);
    in->at += length;
}

static void frame_make(struct making *m, struct input *in)
{
    const uint8_t module = byte(in), around = byte(in);
    struct kp_rec_frame f = {.head = {.kind = KP_KIND_FRAME, .size = sizeof f, .name = module}, .offset = word(in)};
    if (!m->frames) {
        if (m->s->chunks >= CHUNKS_MOST) return;
        m->frames = test_spool_chunk(m->s, KP_CHUNK_FRAMES, 0, 0, 0, "");
    }
    const uint32_t cell =
        (uint32_t)((m->frames * (uint64_t)KP_CHUNK_BYTES + test_spool_at(m->s, m->frames)->used) / KP_STR_CELL);
    const uint32_t first =
        m->frames * (KP_CHUNK_BYTES / KP_STR_CELL) + (uint32_t)(sizeof(struct kp_chunk_head) / KP_STR_CELL);
    if (module == 255) f.head.flags = KP_FRAME_PYTHON, f.head.name = 0;
    f.around = around == 255 ? 0 : first + around; /* inwards, outwards, or itself */
    f.check = kp_frame_check(&f);
    if (test_spool_put(m->s, m->frames, &f, sizeof f) && m->frames_n < 64) m->frame_cells[m->frames_n++] = cell;
}

static void record_make(struct making *m, struct input *in)
{
    uint64_t room[WORDS_MOST + 1] = {0};
    struct kp_rec *head = (void *)room;
    head->kind = byte(in) % KP_KIND_N;
    head->flags = byte(in);
    head->name = byte(in);
    const uint8_t words = byte(in) % WORDS_MOST;
    for (uint8_t i = 0; i < words; i++) room[1 + i] = word(in);
    head->size = (uint16_t)(8 * (words + 1));
    if (head->kind == KP_KIND_HEAP && m->frames_n) head->name = m->frame_cells[head->name % m->frames_n];
    if (head->kind == KP_KIND_OP && head->flags & KP_OP_STACK &&
        m->frames_n) { /* the second half of the stack's word is a frame */
        const int at = 4 + (head->flags & KP_OP_SEQ ? 2 : 0) + (head->flags & KP_OP_HANDLE ? 1 : 0);
        room[at] = (room[at] & 0xff) | (uint64_t)m->frame_cells[(room[at] >> 8 & 63) % m->frames_n] << 32;
    }
    test_spool_put(m->s, m->data, room, head->size);
}

static void text_make(struct making *m, struct input *in)
{
    char line[258];
    size_t length = byte(in);
    if (length > (size_t)(in->end - in->at)) length = (size_t)(in->end - in->at);
    memcpy(line, in->at, length);
    line[length] = '\n', line[length + 1] = 0;
    in->at += length;
    if (test_spool_head(m->s)->text_bytes + length + 2 < KP_FILE_TEXT_MAX / 2) test_spool_text(m->s, line);
}

static void cycle_make(struct making *m, struct input *in)
{
    struct kp_rec_cycle r = {.head = {.kind = KP_KIND_CYCLE, .size = sizeof r}, .cycle = byte(in) % 5};
    r.begin = word(in);
    r.end = word(in);
    r.warm_begin = r.begin;
    r.head.flags = byte(in);
    test_spool_put(m->s, m->meta, &r, sizeof r);
}

void dense_unpack(struct test_spool *s, const uint8_t *data, size_t size)
{
    struct making m = {.s = s};
    struct input in = {data, data + size};
    test_spool_init(s);
    test_spool_text(s, "KPROF_MALLOC=trace\nKPROF_SYMBOLS=*\nKPROF_WITH_STACK=native\n");
    m.meta = test_spool_chunk(s, KP_CHUNK_META, 0, 4242, 1, "python");
    test_spool_clock(s, m.meta, 1000, WALL, 5000);
    test_spool_cycle(s, m.meta, 1, BEGIN, BEGIN + 4000, 3);
    m.data = test_spool_chunk(s, KP_CHUNK_DATA, 1, 4242, 1, "python");
    while (in.at < in.end) {
        switch (byte(&in) % DENSE_KINDS) {
        case DENSE_CHUNK: chunk_make(&m, &in); break;
        case DENSE_STRING: string_make(&m, &in); break;
        case DENSE_FRAME: frame_make(&m, &in); break;
        case DENSE_RECORD: record_make(&m, &in); break;
        case DENSE_TEXT: text_make(&m, &in); break;
        case DENSE_CYCLE: cycle_make(&m, &in); break;
        default: test_spool_clock(s, m.meta, word(&in), word(&in), word(&in)); break;
        }
    }
}

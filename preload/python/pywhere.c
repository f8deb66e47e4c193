// SPDX-License-Identifier: Apache-2.0
/*
 * pywhere.c - where the threads of Python stand, read by a thread that has no GIL and is none of them
 *
 * Called by: the thread kprof-control (where.c), through python_bridge.h; a thread that ends the program. Cold.
 * Owns:      a buffer for a table of lines
 * Locks:     none, not even the GIL; a second call meanwhile finds nothing
 * Memory:    64 KB, mapped at the first call
 * On fail:   a frame that cannot be read ends its stack, which says that it is cut
 * Safe in:   signal handlers: kp_pywhere_here; after fork yes
 *
 * The threads run on meanwhile: their frames change, and code objects may be freed. So the kernel copies everything
 * (kp_io_peek), each object must have the type it should have, and each list has a bound. A thread whose innermost
 * frame is another one afterwards is read once more, and then said to have moved.
 */
#include <pthread.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/elf/kp_modulepath.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_utf8.h"
#include "preload/python/python.h"
#include "preload/python_bridge.h"
#include "collector/base/kp_poison.h"

enum { FRAME_BYTES = 128, CODE_BYTES = 256, STR_LENGTH = 16, STR_STATE = 32, STR_BYTES = 80, LETTERS = 160 };
enum { BYTES_LENGTH = 16, BYTES_TEXT = 32, TABLE_BYTES = 1 << 16, STATES_MAX = 10000, SKIPPED_MAX = 256 };
enum { PTHREAD_BYTES = 1536 }; /* of glibc's struct pthread there are 2 KB and more */
enum { STRUCTURE_MAX = 1 << 16 };

struct line_table {
    const uint8_t *at;
    size_t bytes;
};

static uint8_t *table_buffer; /* TABLE_BYTES */
static uint32_t child;        /* whose memory is read; 0: our own */
static _Atomic bool is_taken; /* one thread at a time reads frames */
static uintptr_t child_shift; /* how far the interpreter's variables lie from ours there */

/* ---- reading ---- */

static bool peek(const void *from, void *to, size_t bytes)
{
    if ((uintptr_t)from < 4096) return false;
    return (child ? kp_io_peek_child(child, from, to, bytes) : kp_io_peek(from, to, bytes)) == 0;
}

static const void *there(const void *of_ours) { return (const void *)((uintptr_t)of_ours + child_shift); }

static const void *pointer_in(const uint8_t *bytes, size_t at)
{
    const void *p;
    memcpy(&p, bytes + at, sizeof p);
    return p;
}

static const void *pointer_at(const void *base, size_t at)
{
    const void *p = NULL;
    return base && peek((const uint8_t *)base + at, &p, sizeof p) ? p : NULL;
}

/* A str as UTF-8. If one is too long, its end, which shows more of a file. */
static void text_read(const struct kp_python *python, const void *str, char *out, size_t room)
{
    const struct kp_python_layout *const l = &python->layout;
    uint8_t head[STR_BYTES], letters[4 * LETTERS];
    uint64_t length;
    uint32_t state;
    size_t used = 0;
    out[0] = '\0';
    if (!str || !peek(str, head, STR_STATE + 8) || pointer_in(head, KP_PYTHON_TYPE_OF) != there(python->text_type))
        return;
    memcpy(&length, head + STR_LENGTH, sizeof length);
    memcpy(&state, head + STR_STATE, sizeof state);
    const uint32_t width = state >> 2 & 7;
    const bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
    const uint64_t count = length < LETTERS ? length : LETTERS;
    const uint8_t *const at = (const uint8_t *)str + (is_ascii ? l->text_ascii : l->text_wide);
    if (!is_compact || (width != 1 && width != 2 && width != 4) || length > UINT32_MAX) return;
    if (!peek(at + (length - count) * width, letters, count * width)) return;
    for (uint64_t i = 0; i < count && used + 5 < room; i++) {
        uint32_t c = 0;
        memcpy(&c, letters + i * width, width); /* little endian */
        used += kp_utf8_put(out + used, c < 0x110000 ? c : '?');
    }
    out[used] = '\0';
}

/* ---- lines ---- */

static int signed_read(const struct line_table *t, size_t *at)
{
    uint32_t value = 0;
    for (unsigned shift = 0; *at < t->bytes && shift < 32; shift += 6) {
        const uint8_t byte = t->at[(*at)++];
        value |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64)) break;
    }
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/* From 3.11 on: an entry has a byte with its kind and its length in code units, then its numbers. */
static int line_by_locations(struct line_table t, int line, long want)
{
    enum { ONE_LINE0 = 10, ONE_LINE2 = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
    long end = 0;
    for (size_t at = 0; at < t.bytes;) {
        const uint8_t first = t.at[at++];
        const int kind = first >> 3 & 15;
        end += 2 * ((first & 7) + 1);
        if (kind >= ONE_LINE0 && kind <= ONE_LINE2) line += kind - ONE_LINE0;
        if (kind == NO_COLUMNS || kind == LONG) line += signed_read(&t, &at);
        if (want < end) return kind == NONE ? -1 : line;
        while (at < t.bytes && !(t.at[at] & 128)) at++;
    }
    return -1;
}

/* 3.10: pairs of bytes of code, and of lines from the last line on; -128: no line. */
static int line_by_ranges(struct line_table t, int line, long want)
{
    long end = 0;
    for (size_t at = 0; at + 1 < t.bytes; at += 2) {
        const int8_t lines = (int8_t)t.at[at + 1];
        end += t.at[at];
        if (lines != INT8_MIN) line += lines;
        if (want < end) return lines == INT8_MIN ? -1 : line;
    }
    return -1;
}

/* Up to 3.9: pairs of bytes of code, behind which a line begins that is so many lines further. */
static int line_by_steps(struct line_table t, int line, long want)
{
    long begin = 0;
    for (size_t at = 0; at + 1 < t.bytes; at += 2) {
        begin += t.at[at];
        if (begin > want) break;
        line += (int8_t)t.at[at + 1];
    }
    return line;
}

static struct line_table table_read(const void *bytes)
{
    uint64_t length = 0;
    if (!bytes || !peek((const uint8_t *)bytes + BYTES_LENGTH, &length, sizeof length))
        return (struct line_table){NULL, 0};
    if (length > TABLE_BYTES) length = TABLE_BYTES;
    const bool is_read = length && peek((const uint8_t *)bytes + BYTES_TEXT, table_buffer, length);
    return (struct line_table){table_buffer, is_read ? length : 0};
}

/* The line at so many bytes of the code; below 0: none. */
static int line_find(const struct kp_python_layout *l, const uint8_t *code, long want)
{
    int first;
    memcpy(&first, code + l->code_line, sizeof first);
    const struct line_table t = table_read(pointer_in(code, l->code_lines));
    if (!t.bytes) return first;
    if (l->version >= 311) return line_by_locations(t, first, want);
    return l->version == 310 ? line_by_ranges(t, first, want) : line_by_steps(t, first, want);
}

/* ---- frames ---- */

static const void *frame_innermost(const struct kp_python_layout *l, uint64_t state)
{
    const void *const thread = (const void *)(uintptr_t)state;
    const void *const holder = l->thread_cframe ? pointer_at(thread, l->thread_cframe) : thread;
    return pointer_at(holder, l->thread_frame);
}

static size_t frame_bytes(const struct kp_python_layout *l)
{
    const uint16_t fields[] = {l->frame_back, l->frame_code, l->frame_place, l->frame_owner};
    size_t last = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i] > last) last = fields[i];
    return (last & ~(size_t)7) + 8;
}

/* The place of the frame in its code, in bytes. */
static long place_of(const struct kp_python_layout *l, const uint8_t *frame, const void *code)
{
    int32_t at;
    if (l->code_bytes) return (long)((uintptr_t)pointer_in(frame, l->frame_place) - (uintptr_t)code - l->code_bytes);
    memcpy(&at, frame + l->frame_place, sizeof at);
    return l->version == 310 ? 2L * at : at;
}

/* False: what was read is no frame, so its thread has left it. */
static bool frame_describe(const struct kp_python *python, const uint8_t *frame, struct kp_pywhere_frame *out)
{
    const struct kp_python_layout *const l = &python->layout;
    const void *const code = kp_python_unheld(l, pointer_in(frame, l->frame_code));
    uint8_t bytes[CODE_BYTES];
    if (!peek(code, bytes, l->code_lines + sizeof code)) return false;
    if (pointer_in(bytes, KP_PYTHON_TYPE_OF) != there(python->code_type)) return false;
    text_read(python, pointer_in(bytes, l->code_file), out->file, sizeof out->file);
    kp_path_shorten(out->file);
    text_read(python, pointer_in(bytes, l->code_name), out->function, sizeof out->function);
    out->line = line_find(l, bytes, place_of(l, frame, code));
    return true;
}

static void stack_read(const struct kp_python *python, const void *frame, struct kp_pywhere_stack *out)
{
    const struct kp_python_layout *const l = &python->layout;
    uint8_t bytes[FRAME_BYTES];
    out->count = 0;
    out->is_cut = false;
    for (unsigned n = 0; frame && n < KP_PYWHERE_FRAMES + SKIPPED_MAX; n++) {
        out->is_cut = !peek(frame, bytes, frame_bytes(l)) || out->count == KP_PYWHERE_FRAMES;
        if (out->is_cut) return;
        const bool is_python = !l->frame_owner || bytes[l->frame_owner] < KP_PYTHON_OWNED_BY_C;
        out->is_cut = is_python && !frame_describe(python, bytes, &out->frames[out->count]);
        if (out->is_cut) return;
        out->count += is_python;
        frame = pointer_in(bytes, l->frame_back);
    }
}

static void stack_clear(struct kp_pywhere_stack *out)
{
    out->count = 0;
    out->is_cut = out->has_moved = false;
}

static void stack_take(const struct kp_pywhere_thread *thread, struct kp_pywhere_stack *out)
{
    const struct kp_python *const python = kp_python_get();
    for (int i = 0; python && i < 2; i++) {
        const void *const frame = frame_innermost(&python->layout, thread->state);
        stack_read(python, frame, out);
        out->has_moved = frame_innermost(&python->layout, thread->state) != frame;
        if (!out->has_moved && !out->is_cut) break;
    }
}

void kp_pywhere_stack(const struct kp_pywhere_thread *thread, struct kp_pywhere_stack *out)
{
    stack_clear(out);
    if (kp_exchange_acq_rel(&is_taken, true)) return; /* by a thread that ends the program */
    stack_take(thread, out);
    kp_store_release(&is_taken, false);
}

/* ---- threads ---- */

/* The offset of the kernel's number in the memory that pthread_self() points to: our own thread shows it. 0: not
 * found. */
static size_t tid_offset(void)
{
    const uint32_t own = kp_io_tid();
    const uint8_t *const self = (const uint8_t *)(uintptr_t)pthread_self();
    for (size_t at = 64; at < PTHREAD_BYTES; at += sizeof own)
        if (memcmp(self + at, &own, sizeof own) == 0) return at;
    return 0;
}

/* The number that glibc keeps there; 0: not known. */
static uint32_t tid_at(const uint8_t *thread)
{
    const size_t offset = tid_offset();
    uint32_t tid;
    return thread && offset && peek(thread + offset, &tid, sizeof tid) ? tid : 0;
}

static uint32_t tid_of(const struct kp_python_layout *l, const uint8_t *state)
{
    uint32_t tid;
    if (l->version < 311) return tid_at(pointer_in(state, l->thread_id));
    memcpy(&tid, state + l->thread_id + 8, sizeof tid);
    return tid;
}

/* Why they cannot be read; NULL: they can. */
static const char *obstacle(const struct kp_python *python)
{
    if (!python) return kp_python_unknown();
    const bool is_known = python->layout.thread_id && python->main_interpreter && python->first_thread &&
                          python->is_initialized && python->code_type && python->text_type;
    if (!is_known) return "this Python lacks what tells its threads";
    if (!python->is_initialized() || (python->is_ending && python->is_ending())) return "the interpreter has ended";
    if (!table_buffer) table_buffer = kp_map_alloc(TABLE_BYTES);
    return table_buffer ? NULL : "no memory";
}

const char *kp_pywhere_threads(struct kp_pywhere_thread *out, uint32_t most, uint32_t *count)
{
    kp_caller_find();
    const struct kp_python *const python = kp_python_get();
    const char *const why = obstacle(python);
    uint8_t state[FRAME_BYTES * 2];
    *count = 0;
    if (why || !python) return why;
    void *const interpreter = python->main_interpreter();
    const void *at = interpreter ? python->first_thread(interpreter) : NULL;
    for (unsigned n = 0; at && n < STATES_MAX && *count < most; n++) {
        if (!peek(at, state, python->layout.thread_id + 16u)) break;
        out[(*count)++] = (struct kp_pywhere_thread){(uintptr_t)at, tid_of(&python->layout, state)};
        at = pointer_in(state, KP_PYTHON_THREAD_NEXT);
    }
    return NULL;
}

/* The innermost frame, or the innermost of the program's own. */
static bool innermost_describe(const struct kp_python *python, bool is_own, struct kp_pywhere_frame *out)
{
    const struct kp_python_layout *const l = &python->layout;
    const unsigned most = SKIPPED_MAX + (is_own ? KP_PYWHERE_FRAMES : 0);
    uint8_t bytes[FRAME_BYTES];
    const void *frame = frame_innermost(l, (uintptr_t)python->thread_state());
    for (unsigned n = 0; frame && n < most && peek(frame, bytes, frame_bytes(l)); n++) {
        const bool is_python = !l->frame_owner || bytes[l->frame_owner] < KP_PYTHON_OWNED_BY_C;
        if (is_python && !frame_describe(python, bytes, out)) return false;
        if (is_python && out->line > 0 && (!is_own || kp_pyfile_is_own(out->file))) return true;
        if (is_python && !is_own) return false;
        frame = pointer_in(bytes, l->frame_back);
    }
    return false;
}

static bool here_find(bool is_own, struct kp_pywhere_frame *out)
{
    const struct kp_python *const python = kp_python_get();
    if (!python || kp_exchange_acq_rel(&is_taken, true)) return false;
    const bool is_found = !obstacle(python) && innermost_describe(python, is_own, out);
    kp_store_release(&is_taken, false);
    return is_found;
}

bool kp_pywhere_here(struct kp_pywhere_frame *out) { return here_find(false, out); }

bool kp_pywhere_own(struct kp_pywhere_frame *out) { return here_find(true, out); }

/* ---- children ---- */

/* The first place in our structure that has this value, which is where a child's has its own. */
static bool place_find(const void *structure, const void *value, size_t *out)
{
    const void *words[64];
    for (size_t at = 0; structure && at < STRUCTURE_MAX; at += sizeof words) {
        if (!peek((const uint8_t *)structure + at, words, sizeof words)) return false;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            *out = at + i * sizeof *words;
            if (words[i] == value) return true;
        }
    }
    return false;
}

/* A thread's state in the child; NULL: not found. glibc keeps the thread's number. */
static const void *child_state(const struct kp_python *python, uint32_t tid, size_t interpreter, size_t first)
{
    const void *state = pointer_at(pointer_at(there(python->runtime), interpreter), first);
    for (unsigned n = 0; state && n < STATES_MAX; n++) {
        if (tid_at(pointer_at(state, python->layout.thread_id)) == tid) return state;
        state = pointer_at(state, KP_PYTHON_THREAD_NEXT);
    }
    return NULL;
}

bool kp_pywhere_child(uint32_t pid, uint32_t tid, struct kp_pywhere_stack *out)
{
    const struct kp_python *const python = kp_python_get();
    size_t interpreter, first;
    stack_clear(out);
    if (!python || obstacle(python)) return false;
    void *const own = python->main_interpreter();
    if (!own || !place_find(python->runtime, own, &interpreter)) return false;
    if (!place_find(own, python->first_thread(own), &first)) return false;
    const uintptr_t type = kp_modulepath_there(pid, (uintptr_t)python->code_type);
    if (!type) return false;
    if (kp_exchange_acq_rel(&is_taken, true)) return false;
    child = pid;
    child_shift = type - (uintptr_t)python->code_type;
    const void *const state = child_state(python, tid, interpreter, first);
    if (state) stack_take(&(struct kp_pywhere_thread){.state = (uintptr_t)state}, out);
    child = 0;
    child_shift = 0;
    kp_store_release(&is_taken, false);
    const uintptr_t own_code = (uintptr_t)kp_pywhere_child;
    return kp_modulepath_there(pid, own_code) == own_code;
}

/*
 * CPython 3.8 to 3.13: the last holder, whether it holds the GIL, a count, and glibc's condition, whose threads wait at
 * its last pair of words. That a thread of Python lies there proves it.
 */
uint32_t kp_pywhere_gil_holder(uintptr_t futex, const struct kp_pywhere_thread *threads, uint32_t count)
{
    enum { HOLDER = 64, IS_LOCKED = 8, PAIR = 8 };
    uint8_t gil[16];
    int is_locked;
    if (!peek((const uint8_t *)(futex - futex % PAIR) - HOLDER, gil, sizeof gil)) return 0;
    memcpy(&is_locked, gil + IS_LOCKED, sizeof is_locked);
    for (uint32_t i = 0; i < count && is_locked == 1; i++)
        if (threads[i].state == (uintptr_t)pointer_in(gil, 0)) return threads[i].tid;
    return 0;
}

uint32_t kp_pywhere_version(void)
{
    const struct kp_python *const python = kp_python_get();
    return python ? python->layout.version : 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * caller_stack.c - the Python call stack of the calling thread as one id, or the line that runs, read without the GIL
 *
 * Called by: torch/ops.c, malloc/heap_put.c through python_bridge.h, inside a hook, at the start of every op, after
 *            every allocation (hot)
 * Owns:      struct pystacks, one a thread: stacks and frames it has seen, by hash
 * Locks:     none, not even the GIL, which torch releases before an op
 * Memory:    none but a thread's first touch (64 KB of address space)
 * On fail:   0: an op without a stack. A layout that was not proved (python_source.c) is not read.
 *
 * Until the op or malloc ends its thread is inside a call that Python made, so its frames, their code objects and
 * texts do not change. All frames are read each time. A known stack is found by the hash of its frames' positions. A
 * new one is written frame by frame, from the outermost on; each text names its caller (kp_python.h).
 */
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_log.h"
#include "collector/base/text/kp_utf8.h"
#include "preload/python_bridge.h"
#include "preload/python/pycalls.h"
#include "collector/base/kp_poison.h"

enum { FRAMES_MAX = 128, SEEN = 4096, TEXT = 1536, STR_LENGTH = 16, STR_STATE = 32 };
struct pystacks {
    struct {
        uint64_t key;
        uint32_t id;
    } seen[SEEN];
};
struct code_place {
    const void *code;
    uint64_t at, check;
    bool is_called_by_c; /* C code called it */
};

/* ---- frames ---- */

#define HOT inline __attribute__((always_inline))

static HOT const void *frame_innermost(const struct kp_python_layout *l, const void *thread)
{
    const void *holder = l->thread_cframe ? kp_python_at(thread, l->thread_cframe) : thread;
    return kp_python_at(holder, l->thread_frame);
}

/* Before 3.12 each frame is. */
static HOT bool is_python(const struct kp_python_layout *l, const void *frame)
{
    return l->version < 312 || ((const uint8_t *)frame)[l->frame_owner] < KP_PYTHON_OWNED_BY_C;
}

static inline uint64_t mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 29;
}

/* The hash of the stack; 0: no frame. */
static HOT uint64_t key_read(const struct kp_python_layout *l, const void *thread)
{
    const void *frame = frame_innermost(l, thread);
    uint64_t key = 0;
    for (uint32_t left = FRAMES_MAX; frame && left; frame = kp_python_at(frame, l->frame_back)) {
        if (!is_python(l, frame)) continue;
        const uint64_t place = kp_pyframe_place(l, frame) + kp_pycode_check(l, kp_pyframe_code(l, frame));
        key =
            (key << 7 | key >> 57) + place * UINT64_C(0x9e3779b97f4a7c15); /* frames wait for two instructions alone */
        left--;
    }
    return key ^ key >> 29;
}

/* The innermost frame of Python, or NULL. */
static HOT const void *frame_python(const struct kp_python_layout *l, const void *thread)
{
    const void *frame = frame_innermost(l, thread);
    for (uint32_t n = 0; frame && !is_python(l, frame) && n < FRAMES_MAX; n++)
        frame = kp_python_at(frame, l->frame_back);
    return frame && is_python(l, frame) ? frame : NULL;
}

/* A function for each release, in which its offsets are constants. */
#define KP_PYTHON_LAYOUT(version, ...)                                   \
    KP_HOT static uint64_t key_##version(const void *thread)             \
    {                                                                    \
        static const struct kp_python_layout l = {version, __VA_ARGS__}; \
        return key_read(&l, thread);                                     \
    }
#include "preload/python/api/layouts.def"
#undef KP_PYTHON_LAYOUT

kp_pystack_key_fn kp_pystack_key_of(uint32_t version)
{
    switch (version) {
#define KP_PYTHON_LAYOUT(version, ...) \
    case version:                      \
        return key_##version;
#include "preload/python/api/layouts.def"
#undef KP_PYTHON_LAYOUT
    default: return NULL;
    }
}

static _Atomic(kp_pystack_key_fn) key_get; /* NULL: not enabled */

void kp_pystacks_enable(void)
{
    const kp_pystack_key_fn ask = kp_pystack_key_of(kp_python_get()->layout.version);
    kp_store_release(&key_get, ask); /* pairs with: caller_stack.c:kp_caller_stack */
}

/* Was the frame called by C? From 3.12 on a C frame lies around it; 3.11 has a flag in it; before, every frame is. */
static bool is_entry(const struct kp_python_layout *l, const void *frame)
{
    if (l->version >= 312) return false;
    return l->version < 311 || ((const uint8_t *)frame)[l->frame_owner - 1];
}

/* The frames from the innermost on. */
static uint32_t frames_read(const struct kp_python_layout *l, const void *thread, struct code_place *places)
{
    uint32_t n = 0;
    for (const void *frame = frame_innermost(l, thread); frame && n < FRAMES_MAX;
         frame = kp_python_at(frame, l->frame_back)) {
        if (!is_python(l, frame)) {
            if (n) places[n - 1].is_called_by_c = true;
            continue;
        }
        const void *code = kp_pyframe_code(l, frame);
        places[n++] =
            (struct code_place){code, kp_pyframe_place(l, frame), kp_pycode_check(l, code), is_entry(l, frame)};
    }
    return n;
}

/* ---- texts ---- */

/* A str as UTF-8, cut to the room there is. */
static void text_read(const struct kp_python_layout *l, const void *str, char *out, size_t room)
{
    uint64_t length;
    uint32_t state, c = 0;
    size_t used = 0;
    memcpy(&length, (const uint8_t *)str + STR_LENGTH, sizeof length);
    memcpy(&state, (const uint8_t *)str + STR_STATE, sizeof state);
    const uint32_t width = state >> 2 & 7;
    const bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
    const uint8_t *at = (const uint8_t *)str + (is_ascii ? l->text_ascii : l->text_wide);
    if (!is_compact || (width != 1 && width != 2 && width != 4)) length = 0;
    for (uint64_t i = 0; i < length && used + 5 < room; i++) {
        memcpy(&c, at + i * width, width); /* little endian */
        used += kp_utf8_put(out + used, c);
    }
    out[used] = 0;
}

int kp_pystack_line(const struct kp_python_layout *l, const void *code, uint64_t place)
{
    if (l->code_bytes) return kp_python_api.code_line(code, (int)(place - (uintptr_t)code - l->code_bytes));
    const int lasti = (int)(place - ((uint64_t)(uintptr_t)code << 16));
    return kp_python_api.code_line(code, l->version == 310 ? lasti * 2 : lasti);
}

void kp_pystack_each(const struct kp_python_layout *l, const void *thread, kp_pystack_frame_fn fn, void *context)
{
    struct code_place places[FRAMES_MAX];
    char file[TEXT / 2], name[256], qualified[256] = "";
    const uint32_t n = frames_read(l, thread, places);
    for (uint32_t i = 0; i < n; i++) {
        const int line = kp_pystack_line(l, places[i].code, places[i].at);
        if (line < 0) continue; /* an internal frame of the interpreter (3.13) */
        text_read(l, kp_python_at(places[i].code, l->code_file), file, sizeof file);
        text_read(l, kp_python_at(places[i].code, l->code_name), name, sizeof name);
        if (l->version >= 311)
            text_read(l, kp_python_at(places[i].code, l->code_name + sizeof(void *)), qualified, sizeof qualified);
        if (!fn(context, file, line, name, qualified)) return;
    }
}

static uint32_t frame_put(struct kp_thread *t, const struct kp_python_layout *l, const struct code_place *p,
                          uint32_t around)
{
    char text[TEXT], file[TEXT / 2], name[256];
    const int line = kp_pystack_line(l, p->code, p->at);
    if (line < 0) return around; /* an internal frame of the interpreter (3.13) */
    text_read(l, kp_python_at(p->code, l->code_file), file, sizeof file);
    text_read(l, kp_python_at(p->code, l->code_name), name, sizeof name);
    const size_t n = kp_fmt(text, sizeof text, "%u%s%s(%d): %s", around, p->is_called_by_c ? "!" : ";",
                            kp_pysite_file(file), line, name);
    return kp_name_intern(t, text, (uint32_t)(n < sizeof text ? n : sizeof text - 1));
}

/* ---- stacks seen ---- */

static uint32_t stack_put(struct kp_thread *t, const struct kp_python_layout *l, struct pystacks *s,
                          const struct code_place *places, uint32_t n)
{
    uint32_t id = 0;
    while (n-- > 0) {
        const uint64_t key = mix(mix(2 + places[n].is_called_by_c, places[n].at + places[n].check), id);
        if (s->seen[key % SEEN].key != key) {
            const uint32_t made = frame_put(t, l, &places[n], id);
            if (!made) return id; /* no room for names: returns the stack without its inner frames */
            s->seen[key % SEEN].key = key;
            s->seen[key % SEEN].id = made;
        }
        id = s->seen[key % SEEN].id;
    }
    return id;
}

/* For a stack that was not seen yet, or whose table entry was overwritten. */
static __attribute__((noinline)) void stack_learn(struct kp_thread *t, struct pystacks *s, const void *thread,
                                                  uint64_t key)
{
    struct code_place places[FRAMES_MAX];
    const struct kp_python_layout *l = &kp_python_get()->layout;
    const uint32_t id = stack_put(t, l, s, places, frames_read(l, thread, places));
    s->seen[key % SEEN].key = key;
    s->seen[key % SEEN].id = id;
}

static struct pystacks *state_of(struct kp_thread *t)
{
    struct pystacks *s = t->source_state[KP_STATE_PYSTACKS];
    if (!s) t->source_state[KP_STATE_PYSTACKS] = s = kp_arena_alloc(sizeof *s);
    return s;
}

uint32_t kp_caller_stack(struct kp_thread *t)
{
    const kp_pystack_key_fn ask = kp_load_acquire(&key_get); /* pairs with: caller_stack.c:kp_pystacks_enable */
    if (!ask) return 0;
    const void *thread = kp_python_get()->thread_state();
    const uint64_t key = thread ? ask(thread) : 0;
    if (!key) return 0;
    struct pystacks *s = state_of(t);
    if (!s) return 0;
    if (__builtin_expect(s->seen[key % SEEN].key != key, 0)) stack_learn(t, s, thread, key);
    return s->seen[key % SEEN].id;
}

/* ---- the line that runs ---- */

#define LINE_SALT (UINT64_C(0x6c696e65) << 32) /* no place has these bits: a line is kept apart from a stack */
static _Atomic bool are_lines_on;

void kp_pylines_enable(void) { kp_store_release(&are_lines_on, true); /* pairs with: caller_stack.c:kp_caller_line */ }

static __attribute__((noinline)) uint32_t line_put(struct kp_thread *t, const struct kp_python_layout *l,
                                                   const void *code, uint64_t place)
{
    char text[TEXT], file[TEXT / 2];
    const int line = kp_pystack_line(l, code, place);
    if (line < 0) return 0;
    text_read(l, kp_python_at(code, l->code_file), file, sizeof file);
    const size_t n = kp_fmt(text, sizeof text, "%c%s:%d", KP_PY_LINE, kp_pysite_file(file), line);
    return kp_name_intern(t, text, (uint32_t)(n < sizeof text ? n : sizeof text - 1));
}

uint32_t kp_caller_line(struct kp_thread *t, uint64_t gate)
{
    if (!kp_pycalls_is_in_python(t, gate)) return 0;
    if (!kp_load_acquire(&are_lines_on)) return 0; /* pairs with: caller_stack.c:kp_pylines_enable */
    const struct kp_python_layout *l = &kp_python_get()->layout;
    const void *thread = kp_python_get()->thread_state(), *frame = thread ? frame_python(l, thread) : NULL;
    if (!frame) return 0;
    struct pystacks *s = state_of(t);
    const void *code = kp_pyframe_code(l, frame);
    const uint64_t place = kp_pyframe_place(l, frame);
    if (!s) return line_put(t, l, code, place); /* if memory is short each op reads its own */
    const uint64_t key = mix(LINE_SALT, place + kp_pycode_check(l, code));
    if (__builtin_expect(s->seen[key % SEEN].key != key, 0)) {
        s->seen[key % SEEN].id = line_put(t, l, code, place);
        s->seen[key % SEEN].key = key;
    }
    return s->seen[key % SEEN].id;
}

bool kp_caller_is_ending(void)
{
    return kp_load_acquire(&key_get) && kp_python_is_ending(); /* pairs with: caller_stack.c:kp_pystacks_enable */
}

/* The states of other threads are freed while the interpreter ends, and a daemon thread may be in malloc then. */
uint32_t kp_caller_stack_anywhere(struct kp_thread *t) { return kp_caller_is_ending() ? 0 : kp_caller_stack(t); }

// SPDX-License-Identifier: Apache-2.0
/*
 * kineto_blocks.c - reads a trace's text with all cores: cuts the list of events into blocks (the command only)
 *
 * Called by: kp_kineto_read. The caller's thread unpacks the text, cuts it and joins what the threads read.
 * Owns:      a ring of blocks. A block belongs to the caller while it is filled and joined, and to one thread between.
 * Locks:     one, of the ring.
 *
 * A cut is a guess that the parser checks. After the first event, the text up to some later `}, {"KEY"` is a block,
 * where KEY is the first key of the second event. A thread reads the block as the inside of a list. When it ends
 * between two events, the next block begins there, too. Otherwise the caller's own parser reads the block's text, as it
 * reads all that is outside the list. So each error has the message and the byte of a reading by one thread. Blocks are
 * joined in the order of the file, so strings get the same numbers.
 */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/parse/kineto_parse.h"
#include "export/read/parse/kineto_pieces.h"

enum { BLOCK_MOST = 16 << 20, WORKERS_MOST = 8, SLOTS_MOST = 2 * WORKERS_MOST + 1 };
enum { STACK_BYTES = 256 << 10, TRIES_MOST = 64, STRINGS_MOST = 1 << 16, KEY_MOST = 32 };
enum block_state { FREE, FULL, TAKEN, READ };

struct read_block {
    enum block_state state;
    char *text;
    size_t bytes, room;
    struct kp_kineto *trace; /* what a thread read; its strings stay from block to block */
    uint32_t *ids;           /* the number in the whole trace of each of them */
    size_t id_count, id_room;
    bool is_good;
};

struct kp_kineto_blocks {
    struct kp_kineto *trace;
    struct kp_kineto_parser *parser;
    struct kp_kineto_pieces *pieces; /* or NULL */
    bool keep_args, is_cutting, is_ending;
    unsigned tries; /* guesses that were wrong */
    char key[KEY_MOST];
    size_t key_bytes;
    size_t searched; /* bytes of the block in which no cut was found */
    struct read_block slots[SLOTS_MOST];
    unsigned slot_count, filled, taken, joined; /* counts of blocks; a block's slot is its number modulo slot_count */
    pthread_t threads[WORKERS_MOST];
    unsigned thread_count, wanted;
    pthread_mutex_t lock;
    pthread_cond_t is_full, is_read;
};

struct kp_kineto_cutting kp_kineto_cutting = {0, 1 << 20};

static unsigned cores(void)
{
    cpu_set_t set;
    if (kp_kineto_cutting.workers) return kp_kineto_cutting.workers;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

/* ---- a thread ---- */

/* Strings that each block has are stored once a slot. A file whose strings all differ must not fill each slot. */
static void slot_renew(struct read_block *s)
{
    struct kp_kineto *t = s->trace;
    if (t && kp_strings_count(t->strings) > STRINGS_MOST) {
        kp_kineto_close(t);
        t = s->trace = NULL;
    }
    if (!t) {
        s->trace = kp_kineto_new();
        s->id_count = 0;
        return;
    }
    t->count = t->memory_count = t->work_count = t->args_bytes = t->seen = 0;
    t->has_start = t->has_first = t->has_stacks = t->record_shapes = false;
    t->program = 0;
}

static void slot_read(struct read_block *s, bool keep_args, const struct kp_kineto *whole)
{
    slot_renew(s);
    s->is_good = false;
    if (!s->trace) return;
    s->trace->keep_works = whole->keep_works;
    s->trace->lasting_names = whole->lasting_names;
    struct kp_kineto_parser *parser = kp_kineto_parser_open(s->trace, keep_args);
    kp_kineto_parser_enter_list(parser);
    s->is_good = kp_kineto_parser_feed(parser, s->text, s->bytes) == 0 && kp_kineto_parser_is_behind_event(parser);
    kp_kineto_parser_close(parser);
}

static void *worker_run(void *context)
{
    struct kp_kineto_blocks *b = context;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (b->taken == b->filled && !b->is_ending) pthread_cond_wait(&b->is_full, &b->lock);
        if (b->is_ending) break;
        struct read_block *s = &b->slots[b->taken++ % b->slot_count];
        pthread_mutex_unlock(&b->lock);
        slot_read(s, b->keep_args, b->trace);
        pthread_mutex_lock(&b->lock);
        s->state = READ;
        pthread_cond_signal(&b->is_read);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Threads start with the first block: small files need none. Returns false where none can be had. */
static bool workers_start(struct kp_kineto_blocks *b)
{
    pthread_attr_t attributes;
    if (b->thread_count) return true;
    if (pthread_attr_init(&attributes)) return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (b->thread_count < b->wanted && pthread_create(&b->threads[b->thread_count], &attributes, worker_run, b) == 0)
        b->thread_count++;
    pthread_attr_destroy(&attributes);
    return b->thread_count != 0;
}

/* ---- joining ---- */

/* `args`: the event's, in the block. */
static void event_join(struct kp_kineto *t, const struct read_block *s, struct kp_kineto_event e, const char *args)
{
    const uint32_t *ids = s->ids;
    if (e.args_bytes) {
        t->args_text = kp_kineto_grow(t->args_text, &t->args_capacity, t->args_bytes + e.args_bytes, 1);
        memcpy(t->args_text + t->args_bytes, args, e.args_bytes);
    }
    if (e.kind == KP_KINETO_PYTHON) kp_strings_module_from(t->strings, ids[e.name], s->trace->strings, e.name);
    e.name = ids[e.name];
    e.cat = ids[e.cat];
    e.shapes = ids[e.shapes];
    e.concrete = ids[e.concrete];
    e.stack = ids[e.stack];
    if (e.flags & KP_KINETO_TEXT_PID) e.pid = ids[e.pid];
    if (e.flags & KP_KINETO_TEXT_TID) e.tid = ids[e.tid];
    t->seen++;
    t->args_bytes += e.args_bytes;
    if (t->keep && !t->keep(t->keep_context, t, &e)) {
        t->args_bytes -= e.args_bytes;
        return;
    }
    *KP_KINETO_NEXT(t->events, t->count, t->capacity) = e;
}

static void head_join(struct kp_kineto *t, const struct read_block *s)
{
    const struct kp_kineto *from = s->trace;
    if (!t->program) t->program = s->ids[from->program];
    t->has_npu |= from->has_npu;
    if (from->has_start && !t->has_start) {
        t->has_start = true;
        t->start_ns = from->start_ns;
        t->end_ns = from->end_ns;
    }
    if (from->has_first && (!t->has_first || from->first_ns < t->first_ns)) t->first_ns = from->first_ns;
    t->has_first |= from->has_first;
    t->has_stacks |= from->has_stacks;
    t->record_shapes |= from->record_shapes;
}

static void work_join(struct kp_kineto *t, const struct read_block *s, const struct kp_kineto_work *work, size_t event)
{
    if (t->count == event) return; /* it was not kept */
    struct kp_kineto_work *const to = KP_KINETO_NEXT(t->works, t->work_count, t->work_capacity);
    *to = *work;
    to->members = s->ids[work->members];
    to->event = (uint32_t)event;
}

static void slot_splice(struct kp_kineto *t, struct read_block *s)
{
    const struct kp_kineto *from = s->trace;
    const size_t strings = kp_strings_count(from->strings);
    s->ids = kp_kineto_grow(s->ids, &s->id_room, strings, sizeof *s->ids);
    for (; s->id_count < strings; s->id_count++)
        s->ids[s->id_count] = kp_strings_put_from(t->strings, from->strings, (uint32_t)s->id_count);
    head_join(t, s);
    const char *args = from->args_text;
    for (size_t i = 0, m = 0, w = 0; i < from->count; i++) {
        const size_t before = t->count;
        event_join(t, s, from->events[i], args);
        if (args) args += from->events[i].args_bytes;
        if (w < from->work_count && from->works[w].event == i) work_join(t, s, &from->works[w++], before);
        if (m == from->memory_count || from->memory[m].event != i) continue;
        if (t->count > before) {
            struct kp_kineto_memory *const to = KP_KINETO_NEXT(t->memory, t->memory_count, t->memory_capacity);
            *to = from->memory[m];
            to->event = (uint32_t)before;
        }
        m++;
    }
}

/* Joins the oldest block, once a thread has read it. Returns 0 or what the caller's parser says of it. */
static int block_join(struct kp_kineto_blocks *b)
{
    struct read_block *s = &b->slots[b->joined % b->slot_count];
    int rc = 0;
    pthread_mutex_lock(&b->lock);
    while (s->state != READ) pthread_cond_wait(&b->is_read, &b->lock);
    pthread_mutex_unlock(&b->lock);
    if (s->is_good && kp_kineto_parser_is_behind_event(b->parser)) {
        slot_splice(b->trace, s);
        kp_kineto_parser_pass(b->parser, s->bytes);
        if (b->pieces) rc = kp_kineto_pieces_look(b->pieces, b->trace);
    } else {
        rc = kp_kineto_parser_feed(b->parser, s->text, s->bytes);
        b->tries++;
    }
    s->bytes = 0;
    s->state = FREE;
    b->joined++;
    return rc;
}

/* Joins all blocks, and gives the caller's parser the text behind them. */
static int blocks_settle(struct kp_kineto_blocks *b)
{
    int rc = 0;
    while (rc == 0 && b->joined < b->filled) rc = block_join(b);
    if (rc || !b->is_cutting) return rc;
    struct read_block *s = &b->slots[b->filled % b->slot_count];
    b->is_cutting = false;
    rc = kp_kineto_parser_feed(b->parser, s->text, s->bytes);
    s->bytes = 0;
    return rc;
}

/* ---- cutting ---- */

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/* Steps back over blanks and `c`. Returns where `c` stands, or NULL. */
static const char *step_back(const char *from, const char *at, char c)
{
    while (at > from && is_blank(at[-1])) at--;
    return at > from && at[-1] == c ? at - 1 : NULL;
}

/* Returns the end of the event before a key at `at`, or NULL: the bytes before are not `}, {`. */
static const char *end_before(const char *from, const char *at)
{
    at = step_back(from, at, '{');
    at = at ? step_back(from, at, ',') : NULL;
    at = at ? step_back(from, at, '}') : NULL;
    return at ? at + 1 : NULL;
}

/* Cuts the block behind an event: what follows begins the next one. */
static int block_cut(struct kp_kineto_blocks *b, size_t at)
{
    struct read_block *s = &b->slots[b->filled % b->slot_count];
    if (b->filled + 1 - b->joined == b->slot_count) {
        int rc = block_join(b);
        if (rc) return rc;
    }
    struct read_block *next = &b->slots[(b->filled + 1) % b->slot_count];
    next->text = kp_kineto_grow(next->text, &next->room, s->bytes - at, 1);
    next->bytes = s->bytes - at;
    memcpy(next->text, s->text + at, next->bytes);
    s->bytes = at;
    b->searched = 0;
    pthread_mutex_lock(&b->lock);
    s->state = FULL;
    b->filled++;
    pthread_cond_signal(&b->is_full);
    pthread_mutex_unlock(&b->lock);
    return 0;
}

/* Adds a piece to the block that is filled, and cuts where it is long enough. */
static int cutting_take(struct kp_kineto_blocks *b, const char *text, size_t bytes)
{
    struct read_block *s = &b->slots[b->filled % b->slot_count];
    const size_t least = kp_kineto_cutting.block_bytes, all = s->bytes + bytes;
    s->text = kp_kineto_grow(s->text, &s->room, all > least ? all : least, 1);
    memcpy(s->text + s->bytes, text, bytes);
    s->bytes += bytes;
    size_t from = b->searched < least ? least : b->searched;
    for (const char *at; from < s->bytes; from = (size_t)(at - s->text) + 1) {
        at = memmem(s->text + from, s->bytes - from, b->key, b->key_bytes);
        if (!at) break;
        const char *end = end_before(s->text, at);
        if (end) return workers_start(b) ? block_cut(b, (size_t)(end - s->text)) : blocks_settle(b);
    }
    b->searched = s->bytes > b->key_bytes ? s->bytes - b->key_bytes : 0;
    if (s->bytes <= BLOCK_MOST) return 0;
    b->tries++;
    return blocks_settle(b);
}

/* Copies the key at `at`, with its quotes. */
static bool key_learn(struct kp_kineto_blocks *b, const char *at, size_t left)
{
    const char *end = left > 2 && *at == '"' ? memchr(at + 1, '"', left - 1) : NULL;
    if (!end || end == at + 1 || (size_t)(end + 1 - at) > sizeof b->key) return false;
    b->key_bytes = (size_t)(end + 1 - at);
    memcpy(b->key, at, b->key_bytes);
    return !memchr(at, '\\', b->key_bytes) && ((at[1] | 0x20) >= 'a' && (at[1] | 0x20) <= 'z');
}

/* Finds the first `}, {"KEY"` in `text`. Returns the bytes up to the bracket that closes, 0: there is none. */
static size_t cut_find(struct kp_kineto_blocks *b, const char *text, size_t bytes)
{
    const char *end = text + bytes;
    for (const char *at = text; (at = memchr(at, '{', (size_t)(end - at))); at++) {
        const char *key = at + 1;
        while (key < end && is_blank(*key)) key++;
        const char *cut = end_before(text, key);
        if (cut && key_learn(b, key, (size_t)(end - key))) return (size_t)(cut - text);
    }
    return 0;
}

int kp_kineto_blocks_feed(struct kp_kineto_blocks *b, const char *text, size_t bytes)
{
    while (!b->is_cutting && bytes && (b->wanted > 1 || !kp_kineto_cutting.workers) && b->tries < TRIES_MOST) {
        const size_t head = cut_find(b, text, bytes);
        if (!head) break;
        const int rc = kp_kineto_parser_feed(b->parser, text, head);
        if (rc) return rc;
        text += head;
        bytes -= head;
        b->is_cutting = kp_kineto_parser_is_behind_event(b->parser);
        b->searched = 0;
        b->tries += !b->is_cutting;
    }
    return b->is_cutting ? cutting_take(b, text, bytes) : kp_kineto_parser_feed(b->parser, text, bytes);
}

/* ---- the whole ---- */

struct kp_kineto_blocks *kp_kineto_blocks_open(struct kp_kineto *trace, struct kp_kineto_parser *parser, bool keep_args,
                                               struct kp_kineto_pieces *pieces)
{
    struct kp_kineto_blocks *b = kp_kineto_room(64, sizeof *b / 64 + 1);
    memset(b, 0, sizeof *b);
    b->trace = trace;
    b->parser = parser;
    b->keep_args = keep_args;
    b->pieces = pieces;
    b->wanted = cores();
    if (b->wanted > WORKERS_MOST) b->wanted = WORKERS_MOST;
    b->slot_count = 2 * b->wanted + 1;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->is_full, NULL);
    pthread_cond_init(&b->is_read, NULL);
    return b;
}

int kp_kineto_blocks_end(struct kp_kineto_blocks *b) { return blocks_settle(b); }

void kp_kineto_blocks_close(struct kp_kineto_blocks *b)
{
    pthread_mutex_lock(&b->lock);
    b->is_ending = true;
    pthread_cond_broadcast(&b->is_full);
    pthread_mutex_unlock(&b->lock);
    for (unsigned i = 0; i < b->thread_count; i++) pthread_join(b->threads[i], NULL);
    for (unsigned i = 0; i < b->slot_count; i++) {
        free(b->slots[i].text);
        free(b->slots[i].ids);
        kp_kineto_close(b->slots[i].trace);
    }
    pthread_cond_destroy(&b->is_read);
    pthread_cond_destroy(&b->is_full);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

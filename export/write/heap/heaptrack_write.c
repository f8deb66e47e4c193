// SPDX-License-Identifier: Apache-2.0
/*
 * heaptrack_write.c - writes NAME.heap.zst: every block of the window with its call stack, as heaptrack's files have it
 *
 * Called by: allocations.c, for each block in order of time
 * Memory:    mapped: 2 MB, and at most 16 bytes for each frame, 64 for each size of a call stack
 * On fail:   the first error stays, what follows is dropped, and the file never gets its name
 *
 * The text of heaptrack_interpret, version 2 (decision 051): a line for each text (s), address (i), frame of a stack
 * with its caller (t), size of a stack (a), and then for each block taken (+) or given (-). Each gets its number by its
 * place among its kind and comes before its first use. Numbers are hexadecimal, from 1 on; blocks count from 0.
 *
 * Blocks of a step have sizes (a) of their own, behind a comment line "# step NUMBER"; "# step" ends it. So a block
 * that is given tells in which step it was taken. "# python ends" comes before the blocks that Python gives back while
 * it ends. "# arena + ADDRESS BYTES FRAME" and "# arena - ADDRESS" tell of the memory in which Python keeps small
 * objects, which are no blocks of the heap. "# installed LIST" has the packages whose lines are not the program's.
 */

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_hash.h"
#include "collector/base/kp_idtable.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/sys/kp_sigblock.h"
#include "collector/format/kp_heap.h"
#include "export/write/heap/allocations.h"
#include "export/write/heap/blockstack.h"
#include "export/write/heap/idpages.h"
#include "export/write/names/framenames.h"
#include "export/write/out/sink.h"
#include "collector/base/kp_poison.h"

#define NO_STEP UINT64_MAX
enum { NUMBERS_MOST = 4, TICK_MS = 10, INLINED_MOST = 64 };

struct numbered {
    uint64_t id;
    uint32_t number;
};

struct kp_heapfile {
    struct kp_trace *trace;
    struct kp_sink sink;
    struct kp_zst *zst;
    struct kp_json text;
    struct kp_idtable texts, modules, addresses, mixed, blocks; /* mixed: stacks with frames of Python, too */
    struct kp_idtable arenas;                                   /* by address; number 0: unmapped */
    struct kp_idpages natives;                                  /* frames of machine code */
    uint32_t texts_n, addresses_n, frames_n, blocks_n;
    uint64_t last_ms, bytes; /* bytes: written, before zstd */
    uint64_t step;           /* NO_STEP: none */
    bool is_python_over;
    struct walked {
        uint64_t rest; /* from this frame on, kp_blockstack_rest */
        uint32_t address;
    } walk[KP_FRAMES_MAX];
};

/* --- lines --- */

static char *hex_put(char *to, uint64_t value)
{
    const int digits = value ? (67 - __builtin_clzll(value)) / 4 : 1;
    for (int i = digits; i-- > 0; value >>= 4) to[i] = "0123456789abcdef"[value & 15];
    return to + digits;
}

static void numbers_put(struct kp_heapfile *f, char kind, const uint64_t *of, int n)
{
    char line[2 + NUMBERS_MOST * 17], *at = line;
    *at++ = kind;
    for (int i = 0; i < n; i++) {
        *at++ = ' ';
        at = hex_put(at, of[i]);
    }
    kp_json_raw(&f->text, line, (size_t)(at - line));
}

static void line_put(struct kp_heapfile *f, char kind, uint64_t a, uint64_t b)
{
    numbers_put(f, kind, (const uint64_t[]){a, b}, 2);
    kp_json_char(&f->text, '\n');
}

static void number_put(struct kp_heapfile *f, uint64_t value, const char *behind)
{
    char text[32] = " ", *const end = hex_put(text + 1, value);
    memcpy(end, behind, strlen(behind));
    kp_json_raw(&f->text, text, (size_t)(end - text) + strlen(behind));
}

/* The last number of a line. */
static void line_rest(struct kp_heapfile *f, uint64_t value) { number_put(f, value, "\n"); }

/* Puts a text without its line breaks. */
static void plain_put(struct kp_heapfile *f, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) kp_json_char(&f->text, (unsigned char)text[i] < ' ' ? '?' : text[i]);
}

/* The item for this key, or NULL without memory. A new one has number 0. */
static struct numbered *item_get(struct kp_heapfile *f, struct kp_idtable *table, uint64_t key)
{
    table->item_bytes = sizeof(struct numbered);
    struct numbered *item = kp_idtable_add(table, key ? key : 1);
    if (!item && !f->text.error) f->text.error = -ENOMEM;
    return item;
}

static uint32_t text_number(struct kp_heapfile *f, const char *text, size_t bytes)
{
    struct numbered *item = bytes ? item_get(f, &f->texts, kp_hash64(text, bytes)) : NULL;
    if (!item) return 0;
    if (item->number) return item->number;
    item->number = ++f->texts_n;
    kp_json_lit(&f->text, "s ");
    plain_put(f, text, bytes);
    kp_json_char(&f->text, '\n');
    return item->number;
}

/* --- addresses --- */

/* The module's path, and in a comment its build id, by which `kprof memory` knows the file. */
static uint32_t module_number(struct kp_heapfile *f, const struct kp_frame *frame)
{
    if (!frame->module) return 0;
    const uint32_t number = text_number(f, frame->path, strlen(frame->path));
    struct numbered *item = item_get(f, &f->modules, frame->module);
    if (!item || item->number) return number;
    item->number = 1;
    numbers_put(f, '#', (const uint64_t[]){number}, 1);
    kp_json_lit(&f->text, " build ");
    kp_json_raw(&f->text, frame->build_id, strlen(frame->build_id));
    kp_json_char(&f->text, '\n');
    return number;
}

/* heaptrack leaves these two out of its stacks, by these names. */
static uint32_t function_number(struct kp_heapfile *f, const char *name, size_t bytes)
{
    static const char plain[] = "operator new(unsigned long)", array[] = "operator new[](unsigned long)";
    if (bytes == 12 && memcmp(name, "operator new", bytes) == 0) return text_number(f, plain, sizeof plain - 1);
    if (bytes == 14 && memcmp(name, "operator new[]", bytes) == 0) return text_number(f, array, sizeof array - 1);
    return text_number(f, name, bytes);
}

/* The functions of "MODULE: f (inlined);MODULE: g", as framenames.h has it. A frame without a name has none. */
static int functions_read(struct kp_heapfile *f, const char *text, uint64_t numbers[INLINED_MOST])
{
    int n = 0;
    for (const char *at = text, *end; *at && n < INLINED_MOST; at = *end ? end + 1 : end) {
        end = at + strcspn(at, ";");
        const char *name = strstr(at, ": ");
        if (name && name < end) numbers[n++] = function_number(f, name + 2, (size_t)(end - name - 2));
    }
    return n;
}

static uint32_t address_number(struct kp_heapfile *f, uint32_t id, const struct kp_frame_at *at)
{
    const struct {
        uint64_t module, offset;
    } key = {at->module, at->offset};
    struct kp_frame frame = {.path = ""};
    struct numbered *item = item_get(f, &f->addresses, kp_hash64(&key, sizeof key));
    struct kp_symbol symbol;
    uint64_t functions[INLINED_MOST];
    uint32_t of = id;
    int n = 0;
    if (!item) return 0;
    if (item->number) return item->number;
    item->number = ++f->addresses_n;
    (void)kp_reader_native(f->trace->reader, &of, &frame);
    const uint32_t number = item->number, module = module_number(f, &frame);
    if (f->trace->symbols && kp_symbols_next(f->trace->symbols, &id, &symbol))
        n = functions_read(f, symbol.text, functions);
    numbers_put(f, 'i', (const uint64_t[]){at->offset, module}, 2);
    for (int i = 0; i < n; i++) number_put(f, functions[i], " 0 0");
    kp_json_char(&f->text, '\n');
    return number;
}

/* "/a/file.py(12): f" as an address of the module "Python" with a function, a file and a line. */
static uint32_t python_number(struct kp_heapfile *f, uint32_t id, const char *text)
{
    const struct {
        uint64_t text, kind;
    } key = {kp_hash64(text, strlen(text)), KP_FRAME_PYTHON};
    struct numbered *item = item_get(f, &f->addresses, kp_hash64(&key, sizeof key));
    uint64_t line = 0;
    if (!item || item->number) return item ? item->number : 0;
    item->number = ++f->addresses_n;
    const uint32_t number = item->number;
    const char *name = text, *file_end = text;
    for (const char *at = text; (at = strstr(at, "): ")); at += 3) name = at + 3;
    for (const char *at = text; at + 3 < name; at++)
        if (*at == '(') file_end = at;
    for (const char *at = file_end + 1; at < name && *at >= '0' && *at <= '9'; at++) line = line * 10 + (*at - '0');
    const uint32_t module = text_number(f, KP_HEAPFILE_PYTHON, strlen(KP_HEAPFILE_PYTHON));
    const uint32_t function = text_number(f, name, strlen(name));
    const uint32_t file = text_number(f, text, (size_t)(file_end - text));
    numbers_put(f, 'i', (const uint64_t[]){id, module, function, file}, 4);
    line_rest(f, line);
    return number;
}

/* --- stacks --- */

/* The number of what a stack has from here on, 0 if it is new. NULL: no memory. */
static uint32_t *frame_number(struct kp_heapfile *f, uint64_t rest)
{
    if (rest > UINT32_MAX) {
        struct numbered *item = item_get(f, &f->mixed, rest);
        return item ? &item->number : NULL;
    }
    uint32_t *number = kp_idpages_at(&f->natives, (uint32_t)rest);
    if (!number && !f->text.error) f->text.error = -ENOMEM;
    return number;
}

/* Adds the frames that the file does not have yet, outermost first. The number of the innermost; 0: no frame. */
static uint32_t stack_number(struct kp_heapfile *f, uint32_t stack)
{
    struct kp_blockstack s;
    struct kp_blockframe frame;
    uint32_t n = 0, around = 0;
    kp_blockstack_begin(&s, f->trace, stack);
    for (uint64_t rest; n < KP_FRAMES_MAX && (rest = kp_blockstack_rest(&s)) != 0;) {
        const uint32_t *known = frame_number(f, rest);
        around = known ? *known : 0;
        if (!known || around || !kp_blockstack_next(&s, &frame)) break;
        const uint32_t address =
            frame.python ? python_number(f, frame.id, frame.python) : address_number(f, frame.id, &frame.native);
        f->walk[n++] = (struct walked){rest, address};
    }
    while (n--) {
        uint32_t *number = frame_number(f, f->walk[n].rest);
        if (!number) return 0;
        line_put(f, 't', f->walk[n].address, around);
        around = *number = ++f->frames_n;
    }
    return around;
}

void kp_heapfile_step(struct kp_heapfile *f, uint64_t number)
{
    if (f->step == number) return;
    f->step = number;
    kp_json_lit(&f->text, "# step");
    if (number == NO_STEP) kp_json_char(&f->text, '\n');
    else line_rest(f, number);
}

void kp_heapfile_no_step(struct kp_heapfile *f) { kp_heapfile_step(f, NO_STEP); }

void kp_heapfile_python_ends(struct kp_heapfile *f)
{
    if (!f->is_python_over) kp_json_lit(&f->text, "# python ends\n");
    f->is_python_over = true;
}

static uint64_t block_key(const struct kp_heapfile *f, uint32_t stack, uint64_t bytes)
{
    const struct {
        uint64_t stack, bytes, step;
    } key = {stack, bytes, f->step};
    return kp_hash64(&key, sizeof key);
}

void kp_heapfile_prefetch(const struct kp_heapfile *f, uint32_t stack, uint64_t bytes)
{
    kp_idtable_prefetch(&f->blocks, block_key(f, stack, bytes));
}

uint32_t kp_heapfile_block(struct kp_heapfile *f, uint32_t stack, uint64_t bytes)
{
    struct numbered *item = item_get(f, &f->blocks, block_key(f, stack, bytes));
    if (!item) return 0;
    if (item->number) return item->number;
    item->number = ++f->blocks_n;
    const uint32_t number = item->number;
    line_put(f, 'a', bytes, stack_number(f, stack));
    return number;
}

/* --- arenas --- */

/* The sizes of CPython's arenas, before 3.10 and since. */
static bool is_arena_sized(uint64_t bytes) { return bytes == 256u << 10 || bytes == 1u << 20; }

/* Python itself called mmap: libpython3.11.so.1.0, or a program called python3.11. */
static bool is_mapped_by_python(struct kp_heapfile *f, uint32_t stack)
{
    struct kp_frame frame = {.path = ""};
    struct kp_blockstack s;
    struct kp_blockframe first;
    kp_blockstack_begin(&s, f->trace, stack);
    if (!kp_blockstack_next(&s, &first) || first.python) return false;
    (void)kp_reader_native(f->trace->reader, &first.id, &frame);
    const char *const name = kp_path_base(frame.path);
    return strncmp(name, "libpython", 9) == 0 || strncmp(name, "python", 6) == 0;
}

void kp_heapfile_mapped(struct kp_heapfile *f, const struct kp_heap_event *e)
{
    struct numbered *known = kp_idtable_find(&f->arenas, e->address);
    if (e->flags & KP_HEAP_FREE) {
        if (!known || !known->number) return;
        known->number = 0;
        kp_json_lit(&f->text, "# arena -");
        line_rest(f, e->address);
        return;
    }
    if (!e->address || !is_arena_sized(e->bytes) || !is_mapped_by_python(f, e->stack)) return;
    const uint32_t frame = stack_number(f, e->stack);
    if (!(known = item_get(f, &f->arenas, e->address))) return;
    known->number = 1;
    kp_json_lit(&f->text, "# arena +");
    number_put(f, e->address, "");
    number_put(f, e->bytes, "");
    line_rest(f, frame);
}

/* --- blocks --- */

static void clock_put(struct kp_heapfile *f, uint64_t now_ns)
{
    const uint64_t begin = f->trace->cycle.begin_ns, ms = now_ns > begin ? (now_ns - begin) / 1000000 : 0;
    if (ms < f->last_ms + TICK_MS) return;
    f->last_ms = ms;
    kp_json_char(&f->text, 'c');
    line_rest(f, ms);
}

static void move_put(struct kp_heapfile *f, char kind, uint32_t block, uint64_t now_ns)
{
    clock_put(f, now_ns);
    kp_json_char(&f->text, kind);
    line_rest(f, block - 1);
}

void kp_heapfile_taken(struct kp_heapfile *f, uint32_t block, uint64_t now_ns) { move_put(f, '+', block, now_ns); }

void kp_heapfile_given(struct kp_heapfile *f, uint32_t block, uint64_t now_ns) { move_put(f, '-', block, now_ns); }

/* --- the file --- */

bool kp_heap_file_path(char *out, size_t bytes, const char *trace_path)
{
    const char *const end = strstr(kp_path_base(trace_path), ".pt.trace.json");
    const size_t n = end ? (size_t)(end - trace_path) : strlen(trace_path);
    if (n >= bytes) return false;
    memcpy(out, trace_path, n);
    return kp_fmt(out + n, bytes - n, ".heap.zst") < bytes - n;
}

static int text_down(void *context, const void *data, size_t bytes)
{
    struct kp_heapfile *f = context;
    const uint64_t most = f->trace->options->text_most;
    f->bytes += bytes;
    if (f->trace->options->heap_text) return f->trace->options->heap_text(f->trace->options->heap_context, data, bytes);
    if (most && f->bytes > most) return -EFBIG;
    return kp_zst_write(f->zst, data, bytes);
}

/* Signals are blocked: if one ended the program before the file's name is noted, the file would stay. */
static int file_open(struct kp_heapfile *f)
{
    const struct kp_export_options *options = f->trace->options;
    char path[4096];
    if (!kp_heap_file_path(path, sizeof path, f->trace->result->path)) return -ENAMETOOLONG;
    struct kp_sigblock_all signals;
    kp_sigblock_all_begin(&signals);
    const int rc = kp_sink_open(&f->sink, options->dir, kp_path_base(path), options->owner);
    if (options->heap_part) kp_fmt(options->heap_part, KP_PART_BYTES, "%s", f->sink.temporary);
    kp_sigblock_all_end(&signals);
    return rc;
}

/* "# installed torch,numpy": a reader tells the program's own lines by it, as by the trace's kprof.installed. */
static void installed_write(struct kp_heapfile *f)
{
    char key[24];
    const char *list;
    for (uint32_t i = 0; kp_fmt(key, sizeof key, "installed.%u", i), (list = kp_reader_text(f->trace->reader, key));
         i++) {
        if (i) kp_json_char(&f->text, ',');
        else kp_json_lit(&f->text, "# installed ");
        plain_put(f, list, strlen(list));
    }
    if (kp_reader_text(f->trace->reader, "installed.0")) kp_json_char(&f->text, '\n');
}

static void head_write(struct kp_heapfile *f)
{
    const struct kp_file_head *head = kp_reader_head(f->trace->reader);
    kp_json_lit(&f->text, "v 10400 2\n# kprof " KP_VERSION "\nX ");
    plain_put(f, head->program, strnlen(head->program, sizeof head->program));
    kp_json_char(&f->text, '\n');
    installed_write(f);
}

int kp_heapfile_open(struct kp_heapfile **out, struct kp_trace *t)
{
    struct kp_heapfile *f = *out = kp_map_alloc(sizeof *f);
    if (!f) return -ENOMEM;
    f->trace = t;
    f->step = NO_STEP;
    f->sink.fd = -1;
    int rc = kp_json_init(&f->text, text_down, f);
    const bool has_file = !t->options->heap_text;
    if (!rc && has_file) rc = file_open(f);
    if (!rc && has_file && !(f->zst = kp_zst_open(&f->sink))) rc = -ENOMEM;
    if (!rc && !t->symbols) t->symbols = kp_symbols_open(t->reader, t->options);
    if (!rc) head_write(f);
    if (!rc) return 0;
    kp_heapfile_close(f);
    *out = NULL;
    return rc;
}

int kp_heapfile_flush(struct kp_heapfile *f) { return kp_json_flush(&f->text); }

int kp_heapfile_commit(struct kp_heapfile *f, const char *trace_path)
{
    char path[4096];
    int rc = kp_json_flush(&f->text);
    if (!rc) rc = kp_zst_finish(f->zst);
    if (!rc && !kp_heap_file_path(path, sizeof path, trace_path)) rc = -ENAMETOOLONG;
    return rc ? rc : kp_sink_commit(&f->sink, path);
}

void kp_heapfile_close(struct kp_heapfile *f)
{
    if (!f) return;
    kp_sink_drop(&f->sink);
    if (f->trace->options->heap_part) f->trace->options->heap_part[0] = 0;
    kp_zst_close(f->zst);
    kp_json_fini(&f->text);
    struct kp_idtable *const tables[] = {&f->texts, &f->modules, &f->addresses, &f->mixed, &f->blocks, &f->arenas};
    kp_idpages_fini(&f->natives);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) kp_idtable_fini(tables[i]);
    kp_map_free(f, sizeof *f);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * kineto_parse.c - turns the callbacks of a JSON reader into events of a kp_kineto
 *
 * The parser knows the places of `enum place`, and skips all else by depth. "Input Dims" becomes the text that Python
 * prints for it, since the tables group by that text.
 */
#include "export/read/kineto/kineto.h"
#include "export/read/kineto/kineto_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/text/kp_jsonread.h"
#include "export/read/kineto/kineto_keys.h"
#include "export/read/kineto/kineto_words.h"
#include "export/read/frames/framename.h"
#include "export/read/parse/kineto_parse.h"
#include "export/show/shapetext.h"

enum { TOKEN_MOST = 16 << 20, EVENT_MOST = 64 << 20 };
struct parse_text {
    char *data;
    size_t used, capacity;
};

struct kp_kineto_parser {
    struct kp_kineto *trace;
    struct kp_jsonread json;
    enum kp_kineto_place place;
    enum kp_kineto_key key;
    unsigned skip;  /* depth of the value being skipped */
    unsigned level; /* depth inside Input Dims; place in Input type */
    bool has_lists; /* Input Dims have lists of tensors */
    bool keep_args;
    size_t args_from;              /* in args_text, those of this event */
    struct kp_kineto_raw raw;      /* of args that are kept, maybe for the event's work alone */
    bool is_in_device, has_device; /* the facts that are read are those of a device; of the first one alone */
    struct kp_kineto_event event;
    struct kp_kineto_memory memory;
    int64_t moved;   /* by a copy or a fill */
    uint32_t module; /* string id: the name that the program gives it */
    struct kp_fact_path fact;
    uint32_t last_cat;
    uint8_t last_kind;
    struct parse_text dims, dims_made, concrete;
    uint64_t bad;        /* the bad byte */
    uint64_t event_from; /* where the event began */
    uint64_t event_end;  /* of the last one */
    bool torn;
    char why[160];
    struct kp_frametext lasting;
};

#define APART __attribute__((noinline)) /* its caller, which mostly does not call it, needs less registers so */

static void text_add(struct parse_text *t, const char *data, size_t bytes)
{
    if (bytes == 0) return;
    t->data = kp_kineto_grow(t->data, &t->capacity, t->used + bytes, 1);
    memcpy(t->data + t->used, data, bytes);
    t->used += bytes;
}

/* Between two parts of Input Dims. */
static void dims_part(struct kp_kineto_parser *p)
{
    if (p->dims.used && p->dims.data[p->dims.used - 1] != '[') text_add(&p->dims, ", ", 2);
}

static APART void dims_number(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    if (p->level < 2) return;
    p->trace->record_shapes = true; /* torch 1.13 and before do not say it */
    dims_part(p);
    text_add(&p->dims, text, bytes);
}

/* ---- values ---- */

/* Clamps times to the year 2043 and memory to 64 TB, so that sums fit into 64 bits. */
static int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}
#define MOST_NS (INT64_C(1) << 61)
#define MOST_BYTES (INT64_C(1) << 46)

/* The reader knows the digits of most numbers. Others are read from their text. */
static int64_t whole_of(const struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    const struct kp_jsonread *const r = &p->json;
    if (r->decimals || r->digits > INT64_MAX) return kp_kineto_whole(text, bytes);
    return *text == '-' ? -(int64_t)r->digits : (int64_t)r->digits;
}

static int64_t ns_of(const struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    const struct kp_jsonread *const r = &p->json;
    if (r->decimals != 3 || r->digits > INT64_MAX) return kp_kineto_ns(text, bytes);
    return *text == '-' ? -(int64_t)r->digits : (int64_t)r->digits;
}

static APART void event_number(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    struct kp_kineto_event *e = &p->event;
    switch (p->key) {
    case KEY_TS: e->start_ns = within(ns_of(p, text, bytes), -(MOST_NS / 2), MOST_NS); break;
    case KEY_DUR: e->dur_ns = within(ns_of(p, text, bytes), 0, MOST_NS); break;
    case KEY_PID: e->pid = whole_of(p, text, bytes); break;
    case KEY_TID: e->tid = whole_of(p, text, bytes); break;
    default: break;
    }
}

static APART void args_number(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    struct kp_kineto_event *e = &p->event;
    int64_t value = p->key == KEY_OTHER ? 0 : whole_of(p, text, bytes);
    switch (p->key) {
    case KEY_EXTERNAL: e->external_id = value; break;
    case KEY_INDEX: e->index = (uint32_t)value; break;
    case KEY_SEQ:
        e->number = value;
        e->flags |= KP_KINETO_HAS_SEQ;
        break;
    case KEY_FWD: e->fwd_tid = value; break;
    case KEY_BYTES:
        e->number = within(value, -MOST_BYTES, MOST_BYTES);
        p->memory.bytes = value;
        break;
    case KEY_NS_BEFORE: e->number = within(value, 0, MOST_NS); break;
    case KEY_MOVED: p->moved = within(value, 0, MOST_BYTES); break;
    case KEY_DEVICE: e->device_type = (uint8_t)value; break;
    case KEY_ADDRESS: p->memory.address = kp_kineto_address(text, bytes); break;
    case KEY_DEVICE_ID: p->memory.device = (int32_t)value; break;
    case KEY_ALLOCATED: p->memory.allocated = within(value, 0, MOST_BYTES); break;
    case KEY_RESERVED: p->memory.reserved = within(value, 0, MOST_BYTES); break;
    default: break;
    }
}

static APART void top_number(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    int64_t value = whole_of(p, text, bytes);
    switch (p->key) {
    case KEY_BASE: p->trace->base_ns = within(value, 0, MOST_NS); break;
    case KEY_FLOPS: p->trace->with_flops = value != 0; break;
    case KEY_MEMORY: p->trace->profile_memory = value != 0; break;
    case KEY_SHAPES: p->trace->record_shapes |= value != 0; break;
    case KEY_STACKS: p->trace->with_stack = value != 0; break;
    case KEY_UNKEPT: p->trace->memory_unkept = within(value, 0, MOST_BYTES); break;
    default: break;
    }
}

static APART void top_string(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    struct kp_kineto *t = p->trace;
    switch (p->key) {
    case KEY_BASE: top_number(p, text, bytes); break;
    case KEY_BEFORE:
        t->memory_before = kp_strings_put(t->strings, text, bytes);
        t->has_memory_before = true;
        break;
    case KEY_FACT: kp_fact_add(t, &p->fact, text, bytes); break;
    case KEY_FREED: t->memory_freed = kp_strings_put(t->strings, text, bytes); break;
    default: break;
    }
}

static APART uint32_t name_put(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    if (p->trace->lasting_names) text = kp_framename_lasting(&p->lasting, text, &bytes);
    return kp_strings_put(p->trace->strings, text, bytes);
}

static APART void event_string(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    struct kp_kineto_event *e = &p->event;
    struct kp_strings *strings = p->trace->strings;
    switch (p->key) {
    case KEY_PH: e->phase = bytes ? text[0] : 0; break;
    case KEY_CAT: e->cat = kp_strings_put(strings, text, bytes); break;
    case KEY_NAME: e->name = name_put(p, text, bytes); break;
    case KEY_TS: /* old writers quoted numbers */
    case KEY_DUR: event_number(p, text, bytes); break;
    case KEY_PID:
        e->pid = kp_strings_put(strings, text, bytes);
        e->flags |= KP_KINETO_TEXT_PID;
        break;
    case KEY_TID:
        e->tid = kp_strings_put(strings, text, bytes);
        e->flags |= KP_KINETO_TEXT_TID;
        break;
    default: break;
    }
}

/* Takes the name of the first process: an event of metadata has it. An NPU is a process, too. */
static void program_take(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    const bool has_text = p->event.flags & KP_KINETO_TEXT_PID;
    if (p->event.phase != 'M' || strcmp(kp_kineto_text(p->trace, p->event.name), "process_name") != 0) return;
    p->trace->has_npu |= kp_kineto_is_npu(text, bytes);
    if (!p->trace->program && (has_text || !kp_kineto_is_device(p->event.pid, text, bytes)))
        p->trace->program = kp_strings_put(p->trace->strings, text, bytes);
}

/* The modules of TorchScript stand for a call stack where there is none. */
static void hierarchy_take(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    char stack[4096];
    const size_t length = p->event.stack ? 0 : kp_hierarchy_stack(stack, sizeof stack, text, bytes);
    if (length) p->event.stack = kp_strings_put(p->trace->strings, stack, length);
}

static APART void args_string(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    switch (p->key) {
    case KEY_STACK:
        p->event.stack = name_put(p, text, bytes);
        p->trace->has_stacks = true;
        break;
    case KEY_HIERARCHY: hierarchy_take(p, text, bytes); break;
    case KEY_MODULE: p->module = kp_strings_put(p->trace->strings, text, bytes); break;
    case KEY_DIMS: p->event.shapes = kp_strings_put(p->trace->strings, text, bytes); break;
    case KEY_LABEL: program_take(p, text, bytes); break;
    case KEY_FURTHER: /* as where a piece of the trace begins: the call is counted, and named, by its first part */
        p->event.flags |= KP_KINETO_SPLIT | KP_KINETO_CONTINUED | (*text == 'o' ? KP_KINETO_OPEN_AT_START : 0);
        break;
    case KEY_PARTIAL:
    case KEY_CALLER: p->event.concrete = kp_strings_put(p->trace->strings, text, bytes); break;
    case KEY_EXTERNAL:
    case KEY_BYTES: args_number(p, text, bytes); break;
    default: break;
    }
}

static APART void concrete_add(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    text_add(&p->concrete, text, bytes);
    text_add(&p->concrete, "\n", 1);
}

/* Takes an input's type: for a tensor that of its elements, "" for what is neither tensor nor number. */
static APART void type_take(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    const bool is_tensor =
        bytes && !(bytes == 6 && !memcmp(text, "Scalar", 6)) && !(bytes == 10 && !memcmp(text + 6, "List", 4));
    if (p->level++ == 0 && is_tensor) p->event.flags |= KP_KINETO_TENSOR_FIRST;
    p->event.device_type |= kp_shapetext_type(text, bytes);
}

/* ---- an event ends ---- */

/* Events of one category follow each other. */
static uint8_t kind_of(struct kp_kineto_parser *p)
{
    const uint32_t cat = p->event.cat;
    if (cat && cat != p->last_cat) {
        p->last_cat = cat;
        p->last_kind = kp_kineto_kind(kp_kineto_text(p->trace, cat));
    }
    if (cat) return p->last_kind;
    const bool has_process = p->event.flags & KP_KINETO_TEXT_PID;
    return kp_kineto_kind_bare(has_process ? kp_kineto_text(p->trace, p->event.pid) : "",
                               kp_kineto_text(p->trace, p->event.name));
}

static void event_end(struct kp_kineto_parser *p)
{
    struct kp_kineto *t = p->trace;
    struct kp_kineto_event *e = &p->event;
    if (e->phase != 'X' && e->phase != 'i' && e->phase != 'I') {
        t->args_bytes = p->args_from;
        return;
    }
    e->args_bytes = (uint32_t)(t->args_bytes - p->args_from);
    e->kind = kind_of(p);
    if (e->kind == KP_KINETO_GPU) e->number = p->moved;
    if (e->phase != 'X' && e->kind != KP_KINETO_MEMORY) e->kind = KP_KINETO_OTHER;
    if (e->kind == KP_KINETO_OTHER && !t->has_start &&
        kp_kineto_is_recording(kp_kineto_text(t, e->cat), kp_kineto_text(t, e->name))) {
        t->has_start = true;
        t->start_ns = e->start_ns;
        t->end_ns = e->start_ns + e->dur_ns;
    }
    if (!t->has_first || e->start_ns < t->first_ns) t->first_ns = e->start_ns;
    t->has_first = true;
    t->seen++;
    if (p->module) kp_strings_name_module(t->strings, e->name, p->module);
    if (t->keep && !t->keep(t->keep_context, t, e)) {
        t->args_bytes = p->args_from;
        return;
    }
    if (t->keep_works && e->kind == KP_KINETO_GPU)
        kp_kineto_work_add(t, (uint32_t)t->count, t->args_text ? t->args_text + p->args_from : "", e->args_bytes);
    if (!p->keep_args) t->args_bytes = p->args_from, e->args_bytes = 0;
    *KP_KINETO_NEXT(t->events, t->count, t->capacity) = *e;
    if (e->kind != KP_KINETO_MEMORY) return;
    p->memory.event = (uint32_t)(t->count - 1);
    *KP_KINETO_NEXT(t->memory, t->memory_count, t->memory_capacity) = p->memory;
}

/* ---- what the reader calls ---- */

static const struct kp_json_calls calls, raw_calls;

static int on_number(void *context, const char *text, size_t bytes)
{
    struct kp_kineto_parser *p = context;
    if (p->skip) return 1;
    switch (p->place) {
    case TOP: top_number(p, text, bytes); break;
    case FACTS: kp_fact_add(p->trace, &p->fact, text, bytes); break;
    case EVENT: event_number(p, text, bytes); break;
    case ARGS: args_number(p, text, bytes); break;
    case DIMS: dims_number(p, text, bytes); break;
    default: break;
    }
    return 1;
}

static int on_string(void *context, const unsigned char *text, size_t bytes)
{
    struct kp_kineto_parser *p = context;
    if (p->skip) return 1;
    switch (p->place) {
    case TOP: top_string(p, (const char *)text, bytes); break;
    case FACTS: kp_fact_add(p->trace, &p->fact, (const char *)text, bytes); break;
    case EVENT: event_string(p, (const char *)text, bytes); break;
    case ARGS: args_string(p, (const char *)text, bytes); break;
    case CONCRETE: concrete_add(p, (const char *)text, bytes); break;
    case TYPES: type_take(p, (const char *)text, bytes); break;
    default: break;
    }
    return 1;
}

static int on_bool(void *context, int value)
{
    struct kp_kineto_parser *p = context;
    if (!p->skip && p->place == ARGS && p->key == KEY_FINISHED && !value) p->event.flags |= KP_KINETO_UNFINISHED;
    if (!p->skip && p->place == TOP) top_number(p, value ? "1" : "0", 1);
    if (!p->skip && p->place == FACTS) kp_fact_add(p->trace, &p->fact, value ? "1" : "0", 1);
    return 1;
}

static int on_null(void *context) { return (void)context, 1; }

static int on_key(void *context, const unsigned char *text, size_t bytes)
{
    struct kp_kineto_parser *p = context;
    if (p->skip) return 1;
    if (p->place == TOP || p->place == FACTS) kp_fact_key(&p->fact, (const char *)text, bytes);
    p->key = kp_kineto_key_find(p->place, (const char *)text, bytes);
    if (p->key == KEY_OURS) p->trace->is_ours = true;
    return 1;
}

/* The args of this event are kept as they are. */
static void raws_begin(struct kp_kineto_parser *p)
{
    p->raw.comma = false;
    kp_kineto_raw_open(&p->raw, '{');
    p->json.calls = &raw_calls;
}

/* Its category comes before its args, or it may be any event. */
static bool is_maybe_work(struct kp_kineto_parser *p) { return !p->event.cat || kind_of(p) == KP_KINETO_GPU; }

/* Begins an object whose members are kept here? The first of several devices. */
static bool is_fact(const struct kp_kineto_parser *p)
{
    return p->place == FACTS || (p->place == DEVICES && !p->has_device) ||
           (p->place == TOP && (p->key == KEY_FACT || p->key == KEY_OURS));
}

static int on_map_start(void *context)
{
    struct kp_kineto_parser *p = context;
    if (p->skip) {
        p->skip++;
    } else if (p->place == OUTSIDE) {
        p->place = TOP;
    } else if (p->place == EVENTS) {
        p->place = EVENT;
        p->event = (struct kp_kineto_event){.index = UINT32_MAX};
        p->args_from = p->trace->args_bytes;
        p->memory = (struct kp_kineto_memory){.allocated = -1, .reserved = -1, .device = -1};
        p->moved = 0;
        p->module = 0;
        p->event_from = kp_jsonread_offset(&p->json);
    } else if (p->place == EVENT && p->key == KEY_ARGS) {
        p->place = ARGS;
        if (p->keep_args || (p->trace->keep_works && is_maybe_work(p))) raws_begin(p);
    } else if (is_fact(p) && kp_fact_open(&p->fact)) {
        p->is_in_device |= p->place == DEVICES;
        p->has_device |= p->is_in_device;
        p->place = FACTS;
    } else {
        p->skip = 1;
    }
    return 1;
}

static int on_map_end(void *context)
{
    struct kp_kineto_parser *p = context;
    if (p->skip) {
        p->skip--;
    } else if (p->place == ARGS) {
        p->place = EVENT;
        p->key = KEY_OTHER;
        p->json.calls = &calls;
    } else if (p->place == EVENT) {
        event_end(p);
        p->event_end = kp_jsonread_offset(&p->json);
        p->place = EVENTS;
    } else if (p->place == FACTS) {
        p->place = --p->fact.depth ? FACTS : p->is_in_device ? DEVICES : TOP;
        p->is_in_device &= p->place == FACTS;
        p->key = KEY_OTHER;
    } else if (p->place == TOP) {
        p->place = DONE;
    }
    return 1;
}

static void dims_open(struct kp_kineto_parser *p)
{
    dims_part(p);
    text_add(&p->dims, "[", 1);
    p->has_lists |= p->level++ == 2;
}

/* torch's tables show a list of tensors as []. */
static void dims_close(struct kp_kineto_parser *p)
{
    text_add(&p->dims, "]", 1);
    if (--p->level) return;
    p->place = ARGS;
    if (!p->has_lists) {
        p->event.shapes = kp_strings_put(p->trace->strings, p->dims.data, p->dims.used);
        return;
    }
    text_add(&p->dims, "", 1);
    struct parse_text *const made = &p->dims_made;
    made->data = kp_kineto_grow(made->data, &made->capacity, p->dims.used, 1);
    const char *text = kp_shapetext_torch(made->data, p->dims.used, p->dims.data);
    p->event.shapes = kp_strings_put(p->trace->strings, text, strlen(text));
    text = kp_shapetext_short(made->data, p->dims.used, p->dims.data);
    p->event.concrete = kp_strings_put(p->trace->strings, text, strlen(text));
    p->event.flags |= KP_KINETO_LISTS;
}

static int on_array_start(void *context)
{
    struct kp_kineto_parser *p = context;
    if (p->skip) {
        p->skip++;
    } else if (p->place == OUTSIDE || (p->place == TOP && p->key == KEY_EVENTS)) {
        p->skip = 0;
        p->level = p->place == OUTSIDE;
        p->place = EVENTS;
        p->trace->has_events = true;
    } else if (p->place == TOP && p->key == KEY_DEVICES) {
        p->place = DEVICES;
    } else if (p->place == ARGS && p->key == KEY_DIMS) {
        p->place = DIMS;
        p->level = 1;
        p->has_lists = false;
        p->dims.used = 0;
        text_add(&p->dims, "[", 1);
    } else if (p->place == ARGS && p->key == KEY_CONCRETE) {
        p->place = CONCRETE;
        p->concrete.used = 0;
    } else if (p->place == ARGS && p->key == KEY_TYPES) {
        p->place = TYPES;
        p->level = 0;
    } else if (p->place == DIMS) {
        dims_open(p);
    } else {
        p->skip = 1;
    }
    return 1;
}

static int on_array_end(void *context)
{
    struct kp_kineto_parser *p = context;
    if (p->skip) {
        p->skip--;
    } else if (p->place == DIMS) {
        dims_close(p);
    } else if (p->place == TYPES) {
        p->place = ARGS;
    } else if (p->place == CONCRETE) {
        p->place = ARGS;
        if (kp_kineto_keeps_concrete(p->trace, &p->event))
            p->event.concrete = kp_strings_put(p->trace->strings, p->concrete.data, p->concrete.used);
    } else if (p->place == EVENTS || p->place == DEVICES) {
        p->place = TOP;
        p->key = KEY_OTHER;
    }
    return 1;
}

static const struct kp_json_calls calls = {
    .null = on_null,
    .boolean = on_bool,
    .number = on_number,
    .string = on_string,
    .map_start = on_map_start,
    .map_key = on_key,
    .map_end = on_map_end,
    .array_start = on_array_start,
    .array_end = on_array_end,
};

/* ---- the same in args that are kept ---- */

static int raw_null(void *context)
{
    struct kp_kineto_parser *const p = context;
    kp_kineto_raw_value(&p->raw, "null", 4);
    return on_null(p);
}

static int raw_bool(void *context, int value)
{
    struct kp_kineto_parser *const p = context;
    kp_kineto_raw_value(&p->raw, value ? "true" : "false", value ? 4 : 5);
    return on_bool(p, value);
}

static int raw_number(void *context, const char *text, size_t bytes)
{
    struct kp_kineto_parser *const p = context;
    kp_kineto_raw_value(&p->raw, text, bytes);
    return on_number(p, text, bytes);
}

static int raw_string(void *context, const unsigned char *text, size_t bytes)
{
    struct kp_kineto_parser *const p = context;
    kp_kineto_raw_string(&p->raw, text, bytes);
    return on_string(p, text, bytes);
}

static int raw_key(void *context, const unsigned char *text, size_t bytes)
{
    struct kp_kineto_parser *const p = context;
    kp_kineto_raw_key(&p->raw, text, bytes);
    return on_key(p, text, bytes);
}

static int raw_map_start(void *context)
{
    struct kp_kineto_parser *const p = context;
    kp_kineto_raw_open(&p->raw, '{');
    return on_map_start(p);
}

static int raw_map_end(void *context)
{
    struct kp_kineto_parser *const p = context;
    kp_kineto_raw_close(&p->raw, '}');
    return on_map_end(p);
}

static int raw_array_start(void *context)
{
    struct kp_kineto_parser *const p = context;
    kp_kineto_raw_open(&p->raw, '[');
    return on_array_start(p);
}

static int raw_array_end(void *context)
{
    struct kp_kineto_parser *const p = context;
    kp_kineto_raw_close(&p->raw, ']');
    return on_array_end(p);
}

static const struct kp_json_calls raw_calls = {
    .null = raw_null,
    .boolean = raw_bool,
    .number = raw_number,
    .string = raw_string,
    .map_start = raw_map_start,
    .map_key = raw_key,
    .map_end = raw_map_end,
    .array_start = raw_array_start,
    .array_end = raw_array_end,
};

/* ---- feeding ---- */

static void *grow(void *memory, size_t bytes)
{
    size_t capacity = 0;
    if (bytes) return kp_kineto_grow(memory, &capacity, bytes, 1);
    free(memory);
    return NULL;
}

struct kp_kineto_parser *kp_kineto_parser_open(struct kp_kineto *trace, bool keep_args)
{
    struct kp_kineto_parser *p = kp_kineto_room(64, sizeof *p / 64 + 1);
    memset(p, 0, sizeof *p);
    p->trace = trace;
    p->keep_args = keep_args;
    p->raw.trace = trace;
    p->json.calls = &calls;
    p->json.context = p;
    p->json.grow = grow;
    kp_jsonread_open(&p->json);
    return p;
}

void kp_kineto_parser_close(struct kp_kineto_parser *p)
{
    kp_jsonread_close(&p->json);
    free(p->dims.data);
    free(p->dims_made.data);
    free(p->concrete.data);
    kp_frametext_fini(&p->lasting);
    free(p);
}

void kp_kineto_parser_enter_list(struct kp_kineto_parser *p)
{
    kp_jsonread_enter_list(&p->json);
    p->place = EVENTS;
    p->trace->has_events = true;
}

static int say(struct kp_kineto_parser *p, const char *what)
{
    snprintf(p->why, sizeof p->why, "%s", what);
    return -EINVAL;
}

static bool is_long_event(struct kp_kineto_parser *p)
{
    if (p->place < EVENT || p->place > TYPES || p->json.fed - p->event_from <= EVENT_MOST) return false;
    p->bad = p->event_from;
    return true;
}

int kp_kineto_parser_feed(struct kp_kineto_parser *p, const char *text, size_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some editors write this byte order mark */
    if (!p->json.fed && bytes >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0) {
        kp_jsonread_pass(&p->json, strlen(mark));
        return kp_kineto_parser_feed(p, text + strlen(mark), bytes - strlen(mark));
    }
    const size_t pending = kp_jsonread_pending(&p->json);
    if (pending && pending + bytes > TOKEN_MOST) {
        p->bad = p->json.fed - pending;
        return say(p, "a string, a number or a gap of more than 16 MB begins near here");
    }
    if (kp_jsonread_feed(&p->json, text, bytes))
        return is_long_event(p) ? say(p, "an event of more than 64 MB begins near here") : 0;
    char line[160];
    p->bad = kp_jsonread_offset(&p->json) + 1; /* the first byte is byte 1 */
    if (p->bad == 1)
        snprintf(line, sizeof line, "not a trace, which is JSON%s: %s", kp_kineto_foreign(text, bytes), p->json.why);
    else snprintf(line, sizeof line, "not JSON: %s", p->json.why);
    return say(p, line);
}

int kp_kineto_parser_end(struct kp_kineto_parser *p)
{
    p->bad = p->json.fed; /* the end, also when whole JSON lacks traceEvents */
    if (!p->bad) return say(p, "the file is empty");
    const bool in_event = p->place >= EVENT && p->place <= TYPES;
    p->torn = !kp_jsonread_end(&p->json);
    if (p->torn) return say(p, in_event ? "the file ends inside an event" : "the file ends inside the JSON");
    return 0;
}

uint64_t kp_kineto_parser_offset(const struct kp_kineto_parser *p) { return p->bad; }
const char *kp_kineto_parser_why(const struct kp_kineto_parser *p) { return p->why; }
bool kp_kineto_parser_is_torn(const struct kp_kineto_parser *p) { return p->torn; }
bool kp_kineto_parser_is_behind_event(const struct kp_kineto_parser *p)
{
    return p->place == EVENTS && !p->skip && p->event_end == p->json.fed;
}
void kp_kineto_parser_pass(struct kp_kineto_parser *p, size_t bytes)
{
    kp_jsonread_pass(&p->json, bytes);
    p->event_end = p->json.fed;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * stringtable.c - stores each string of a trace once and numbers it
 *
 * A call stack is a chain: its innermost frame and the stack around that. kp_strings_get makes its text,
 * since the texts of all stacks of a deep program are a thousand times as large as its frames.
 */

#include "export/read/store/stringtable.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_hash.h"

#define PAGE_BYTES (1u << 20)
enum { LEAST = 64 }; /* items of the smallest array */

struct kp_strings_page {
    struct kp_strings_page *next;
    char data[];
};
void (*kp_kineto_no_memory)(void);

static void *need(void *memory)
{
    if (!memory) {
        if (kp_kineto_no_memory) kp_kineto_no_memory();
        fputs("kprof: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

void *kp_kineto_grow_more(void *memory, size_t *capacity, size_t wanted, size_t item_bytes)
{
    size_t next = *capacity ? *capacity + *capacity / 2 : LEAST;
    if (next < wanted) next = wanted;
    *capacity = next;
    return need(realloc(memory, next * item_bytes));
}

void *kp_kineto_grow_zeros_more(void *memory, size_t *capacity, size_t wanted, size_t item_bytes)
{
    const size_t had = *capacity;
    char *const made = kp_kineto_grow(memory, capacity, wanted, item_bytes);
    memset(made + had * item_bytes, 0, (*capacity - had) * item_bytes);
    return made;
}

void *kp_kineto_room(size_t count, size_t item_bytes)
{
    size_t capacity = 0;
    return kp_kineto_grow(NULL, &capacity, count, item_bytes);
}

void *kp_kineto_zeros(size_t count, size_t item_bytes)
{
    return need(calloc(count > LEAST ? count : LEAST, item_bytes)); /* pages of a large one stay untouched */
}

char *kp_kineto_copy(const char *text) { return text ? need(strdup(text)) : NULL; }

char *kp_kineto_print(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    return need(text);
}

static char *room_for(struct kp_strings *s, size_t bytes)
{
    if (!s->pages || s->page_used + bytes > s->page_size) {
        size_t size = bytes > PAGE_BYTES ? bytes : PAGE_BYTES;
        struct kp_strings_page *page = need(malloc(sizeof *page + size));
        page->next = s->pages;
        s->pages = page;
        s->page_used = 0;
        s->page_size = size;
    }
    char *at = s->pages->data + s->page_used;
    s->page_used += bytes;
    return at;
}

static void widen(struct kp_strings *s)
{
    size_t count = s->slot_count ? s->slot_count * 2 : 1024;
    free(s->slots);
    s->slots = need(calloc(count, sizeof *s->slots));
    s->slot_count = count;
    for (size_t id = 1; id < s->count; id++) {
        size_t at = s->entries[id].hash & (count - 1);
        while (s->slots[at]) at = (at + 1) & (count - 1);
        s->slots[at] = (uint32_t)id;
    }
}

struct kp_strings *kp_strings_open(void)
{
    struct kp_strings *s = need(calloc(1, sizeof *s));
    s->entries = kp_kineto_grow(NULL, &s->capacity, 64, sizeof *s->entries);
    s->entries[0] = (struct kp_string_entry){.text = ""};
    s->count = 1;
    widen(s);
    return s;
}

void kp_strings_close(struct kp_strings *s)
{
    if (!s) return;
    while (s->pages) {
        struct kp_strings_page *next = s->pages->next;
        free(s->pages);
        s->pages = next;
    }
    free(s->slots);
    free(s->entries);
    for (int i = 0; i < KP_STRINGS_COLUMNS; i++) free(s->columns[i].of);
    free(s);
}

static uint32_t entry_add(struct kp_strings *s, size_t slot, const struct kp_string_entry *entry)
{
    s->entries = kp_kineto_grow(s->entries, &s->capacity, s->count + 1, sizeof *s->entries);
    s->entries[s->count] = *entry;
    const uint32_t id = (uint32_t)s->count++;
    s->slots[slot] = id;
    if (s->count * 2 > s->slot_count) widen(s);
    return id;
}

uint32_t kp_strings_put(struct kp_strings *s, const char *text, size_t bytes)
{
    if (bytes == 0) return 0;
    const uint32_t hash = (uint32_t)kp_hash64(text, bytes);
    size_t at = hash & (s->slot_count - 1);
    for (; s->slots[at]; at = (at + 1) & (s->slot_count - 1)) {
        const struct kp_string_entry *e = &s->entries[s->slots[at]];
        if (e->hash == hash && e->bytes == bytes && memcmp(e->text, text, bytes) == 0) return s->slots[at];
    }
    char *copy = room_for(s, bytes + 1);
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return entry_add(s, at, &(struct kp_string_entry){.text = copy, .bytes = (uint32_t)bytes, .hash = hash});
}

/* ---- chains ---- */

/* The text of a chain, "head;text of the tail", kept from now on. */
const char *kp_strings_chain_text(struct kp_strings *s, uint32_t id)
{
    size_t bytes = 0;
    for (uint32_t at = id; at; at = s->entries[at].text ? 0 : s->entries[at].tail)
        bytes += s->entries[at].text ? s->entries[at].bytes : s->entries[s->entries[at].head].bytes + 1;
    char *const copy = room_for(s, bytes + 1);
    size_t used = 0;
    for (uint32_t at = id; at; at = s->entries[at].text ? 0 : s->entries[at].tail) {
        const struct kp_string_entry *e = &s->entries[at], *part = e->text ? e : &s->entries[e->head];
        memcpy(copy + used, part->text, part->bytes);
        used += part->bytes;
        if (!e->text) copy[used++] = ';';
    }
    copy[used] = 0;
    s->entries[id].bytes = (uint32_t)used;
    return s->entries[id].text = copy;
}

uint32_t kp_strings_chain(struct kp_strings *s, uint32_t head, uint32_t tail)
{
    const uint64_t mixed = ((uint64_t)head << 32 | tail) * 0x9e3779b97f4a7c15u;
    const uint32_t hash = (uint32_t)(mixed >> 32);
    size_t at = hash & (s->slot_count - 1);
    for (; s->slots[at]; at = (at + 1) & (s->slot_count - 1)) {
        const struct kp_string_entry *e = &s->entries[s->slots[at]];
        if (e->hash == hash && e->head == head && e->tail == tail && head) return s->slots[at];
    }
    return entry_add(s, at, &(struct kp_string_entry){.hash = hash, .head = head, .tail = tail});
}

bool kp_strings_is_chain(const struct kp_strings *s, uint32_t id, uint32_t *head, uint32_t *tail)
{
    if (id >= s->count || !s->entries[id].head) return false;
    *head = s->entries[id].head;
    *tail = s->entries[id].tail;
    return true;
}

size_t kp_strings_count(const struct kp_strings *s) { return s->count; }

uint32_t *kp_strings_mark(struct kp_strings *s, enum kp_strings_column column, uint32_t id)
{
    uint32_t **const of = &s->columns[column].of;
    *of = kp_kineto_grow_zeros(*of, &s->columns[column].capacity, (size_t)id + 1, sizeof **of);
    return &(*of)[id];
}

const char *kp_strings_keep(struct kp_strings *s, const char *text)
{
    return text ? kp_strings_get(s, kp_strings_put(s, text, strlen(text))) : NULL;
}

void *kp_strings_keep_list(struct kp_strings *s, const void *list, size_t bytes)
{
    const size_t align = _Alignof(max_align_t);
    if (!bytes) return NULL;
    const uintptr_t at = (uintptr_t)room_for(s, bytes + align);
    return memcpy((void *)((at + align - 1) & ~(uintptr_t)(align - 1)), list, bytes);
}

uint32_t kp_strings_put_from(struct kp_strings *s, struct kp_strings *from, uint32_t id)
{
    const char *text = kp_strings_get(from, id);
    return kp_strings_put(s, text, from->entries[id].bytes);
}

/* ---- names of modules ---- */

void kp_strings_name_module(struct kp_strings *s, uint32_t call, uint32_t name)
{
    struct kp_string_entry *e = &s->entries[call];
    if (!call || call >= s->count || e->head || !name || e->tail == name) return;
    e->tail = e->tail ? call : name; /* itself: several */
}

bool kp_strings_has_module(const struct kp_strings *s, uint32_t call)
{
    return call < s->count && !s->entries[call].head && s->entries[call].tail;
}

void kp_strings_module_from(struct kp_strings *to, uint32_t call, struct kp_strings *from, uint32_t its)
{
    if (!kp_strings_has_module(from, its)) return;
    const uint32_t name = from->entries[its].tail;
    kp_strings_name_module(to, call, name == its ? call : kp_strings_put_from(to, from, name));
}

uint32_t kp_strings_module(const struct kp_strings *s, uint32_t call)
{
    const struct kp_string_entry *e = &s->entries[call < s->count ? call : 0];
    return e->head || e->tail == call ? 0 : e->tail;
}

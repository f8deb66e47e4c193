// SPDX-License-Identifier: Apache-2.0
/* stringtable.h - each string of a trace once, by a number; lists that grow */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stores each string once. Ids are dense, and id 0 is "". Out of memory prints a message and calls exit(). */
struct kp_strings *kp_strings_open(void);
void kp_strings_close(struct kp_strings *strings);
uint32_t kp_strings_put(struct kp_strings *strings, const char *text, size_t bytes);
/* The stack "head;tail" without its text: head has no semicolon and is not empty; tail is such a stack, or 0. */
uint32_t kp_strings_chain(struct kp_strings *strings, uint32_t head, uint32_t tail);
bool kp_strings_is_chain(const struct kp_strings *strings, uint32_t id, uint32_t *head, uint32_t *tail);
size_t kp_strings_count(const struct kp_strings *strings); /* with "" */
/* A reader's result for a string, once for each: a word of a column, 0 at first. Valid until the next call for a new
 * string. Not for several threads at once. */
enum kp_strings_column {
    KP_STRINGS_FACTS, /* namefacts.c; the others: ownline.c */
    KP_STRINGS_LINE,
    KP_STRINGS_PACKAGE, /* whose line that is */
    KP_STRINGS_CALLER,
    KP_STRINGS_LIBRARY,
    KP_STRINGS_FUNCTION,
    KP_STRINGS_ANY_FUNCTION,
    KP_STRINGS_MODULES,
    KP_STRINGS_MODULE_NAMES,
    KP_STRINGS_COLUMNS
};
uint32_t *kp_strings_mark(struct kp_strings *strings, enum kp_strings_column column, uint32_t id);

struct kp_string_entry {
    const char *text; /* NULL: of a chain, not made yet */
    uint32_t bytes, hash;
    uint32_t head, tail; /* of a chain: string ids; head 0: of none, and tail is the name of a module */
};
struct kp_strings {
    struct kp_string_entry *entries;
    size_t count, capacity;
    uint32_t *slots; /* id, 0: free; a power of two */
    size_t slot_count;
    struct {
        uint32_t *of; /* of the first `capacity` strings */
        size_t capacity;
    } columns[KP_STRINGS_COLUMNS];
    struct kp_strings_page *pages;
    size_t page_used, page_size;
};
const char *kp_strings_chain_text(struct kp_strings *strings, uint32_t id); /* makes and keeps it */
static inline const char *kp_strings_get(struct kp_strings *strings, uint32_t id)
{
    const char *const text = strings->entries[id < strings->count ? id : 0].text;
    return text ? text : kp_strings_chain_text(strings, id);
}
/* The same word as kp_strings_mark(), 0 where none was set. */
static inline uint32_t kp_strings_marked(const struct kp_strings *strings, enum kp_strings_column column, uint32_t id)
{
    return id < strings->columns[column].capacity ? strings->columns[column].of[id] : 0;
}
/* The same text as long as `strings` is open; NULL stays NULL. */
const char *kp_strings_keep(struct kp_strings *strings, const char *text);
/* A copy of the items, which lives as long; NULL for none. */
void *kp_strings_keep_list(struct kp_strings *strings, const void *list, size_t bytes);
uint32_t kp_strings_put_from(struct kp_strings *strings, struct kp_strings *from, uint32_t id);
/* Notes what the program calls the module of a call "nn.Module: Linear_4". Two names of one text count as none. */
void kp_strings_name_module(struct kp_strings *strings, uint32_t call, uint32_t name);
/* The name that was noted; 0: none. */
uint32_t kp_strings_module(const struct kp_strings *strings, uint32_t call);
bool kp_strings_has_module(const struct kp_strings *strings, uint32_t call); /* one, or several */
/* Takes over what was noted of the same call elsewhere. */
void kp_strings_module_from(struct kp_strings *to, uint32_t call, struct kp_strings *from, uint32_t its);

extern void (*kp_kineto_no_memory)(void); /* called before out of memory calls exit() */
void *kp_kineto_grow_more(void *memory, size_t *capacity, size_t wanted, size_t item_bytes);
void *kp_kineto_grow_zeros_more(void *memory, size_t *capacity, size_t wanted, size_t item_bytes);
static inline void *kp_kineto_grow(void *memory, size_t *capacity, size_t wanted, size_t item_bytes)
{
    return wanted <= *capacity ? memory : kp_kineto_grow_more(memory, capacity, wanted, item_bytes);
}
/* New items are zero. */
static inline void *kp_kineto_grow_zeros(void *memory, size_t *capacity, size_t wanted, size_t item_bytes)
{
    return wanted <= *capacity ? memory : kp_kineto_grow_zeros_more(memory, capacity, wanted, item_bytes);
}
void *kp_kineto_room(size_t count, size_t item_bytes);  /* for a list that does not grow */
void *kp_kineto_zeros(size_t count, size_t item_bytes); /* the same, all zero */
char *kp_kineto_copy(const char *text);                 /* as strdup; NULL of NULL */
char *kp_kineto_print(const char *format, ...) __attribute__((format(printf, 1, 2))); /* as asprintf */
/* The next place of a list, which grows where it is full. */
#define KP_KINETO_NEXT(list, count, capacity) \
    ((list) = kp_kineto_grow((list), &(capacity), (count) + 1, sizeof *(list)), &(list)[(count)++])

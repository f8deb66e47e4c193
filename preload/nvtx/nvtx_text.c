// SPDX-License-Identifier: Apache-2.0
/*
 * nvtx_text.c - the texts of NVTX calls: messages in three forms, registered strings, domains
 *
 * Called by: ranges.c, for names inside a hook (hot), for registrations outside
 * Owns:      the table of registered texts; an entry lives as long as the process
 * Locks:     none. An entry is published by one compare-and-swap; the same text gives the same handle.
 * Memory:    arena, when a text is registered for the first time
 * On fail:   name 0, or no handle
 * Safe in:   after fork yes (ranges.c reads the gate before it registers a text)
 */
#include "preload/nvtx/nvtx.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_hash.h"
#include "collector/base/text/kp_utf8.h"
#include "collector/base/kp_poison.h"

enum { TEXT_MAX_BYTES = 1024, SLOTS = 8192, PROBES = 64 };

static _Atomic(struct kp_nvtx_text *) texts[SLOTS];

struct kp_nvtx_message kp_nvtx_event_message(const struct kp_nvtx_event *event)
{
    if (!event || event->bytes < sizeof *event) return (struct kp_nvtx_message){KP_NVTX_TEXT_NONE, NULL};
    return (struct kp_nvtx_message){event->message_type, event->message};
}

/* Converts from UTF-32 (wchar_t). An invalid character becomes '?'. Stops before a character that does not fit. */
static uint32_t utf8_make(char out[TEXT_MAX_BYTES], const wchar_t *wide)
{
    uint32_t n = 0;
    for (; *wide && n + 4 <= TEXT_MAX_BYTES; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = '?';
        n += (uint32_t)kp_utf8_put(out + n, c);
    }
    return n;
}

uint32_t kp_nvtx_text_name(struct kp_thread *t, struct kp_nvtx_text *text)
{
    uint32_t id = kp_load_relaxed(&text->id);
    if (id) return id;
    id = kp_name_intern(t, text->text, text->bytes);
    kp_store_relaxed(&text->id, id); /* every thread stores the same id */
    return id;
}

void kp_nvtx_texts_forget(void)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct kp_nvtx_text *text = kp_load_relaxed(&texts[i]);
        if (text) kp_store_relaxed(&text->id, 0);
    }
}

static __attribute__((noinline)) uint32_t wide_name(struct kp_thread *t, const wchar_t *wide)
{
    char utf8[TEXT_MAX_BYTES];
    uint32_t bytes = utf8_make(utf8, wide);
    return bytes ? kp_name_intern(t, utf8, bytes) : 0;
}

uint32_t kp_nvtx_message_name(struct kp_thread *t, struct kp_nvtx_message message)
{
    if (!message.at) return 0;
    if (message.type == KP_NVTX_TEXT_REGISTERED) return kp_nvtx_text_name(t, (struct kp_nvtx_text *)message.at);
    if (message.type == KP_NVTX_TEXT_WIDE) return wide_name(t, message.at);
    if (message.type != KP_NVTX_TEXT_ASCII) return 0;
    size_t bytes = strnlen(message.at, TEXT_MAX_BYTES);
    return bytes ? kp_name_intern(t, message.at, (uint32_t)bytes) : 0;
}

static struct kp_nvtx_text *text_make(const char *bytes, uint32_t len, uint64_t hash)
{
    struct kp_nvtx_text *text = kp_arena_alloc(sizeof *text + len);
    if (!text) return NULL;
    text->hash = hash;
    text->bytes = len;
    memcpy(text->text, bytes, len);
    return text;
}

static struct kp_nvtx_text *table_keep(const char *bytes, uint32_t len)
{
    uint64_t hash = kp_hash64(bytes, len);
    struct kp_nvtx_text *made = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        _Atomic(struct kp_nvtx_text *) *slot = &texts[(hash + i) % SLOTS];
        struct kp_nvtx_text *seen = kp_load_acquire(slot); /* pairs with: the exchange below */
        if (!seen) {
            if (!made) made = text_make(bytes, len, hash);
            if (!made || kp_cas_acq_rel(slot, &seen, made)) return made;
        }
        if (seen->hash == hash && seen->bytes == len && memcmp(seen->text, bytes, len) == 0) return seen;
    }
    kp_loss_count(KP_KIND_NVTX, KP_LOSS_NAME); /* the table is full: this text is not shown */
    return NULL;
}

struct kp_nvtx_text *kp_nvtx_text_keep(struct kp_nvtx_message message)
{
    char utf8[TEXT_MAX_BYTES];
    int saved = errno;
    struct kp_nvtx_text *text = NULL;
    if (!message.at) return NULL;
    if (message.type == KP_NVTX_TEXT_WIDE) text = table_keep(utf8, utf8_make(utf8, message.at));
    else text = table_keep(message.at, (uint32_t)strnlen(message.at, TEXT_MAX_BYTES));
    errno = saved;
    return text;
}

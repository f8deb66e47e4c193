// SPDX-License-Identifier: Apache-2.0
/*
 * thrown.c - says which exception of C++ ends the program, and its text
 *
 * Called by: execs.c, on the thread that calls abort()
 * Owns:      nothing
 * Locks:     the loader's list lock, as the throw itself takes
 * Memory:    none
 * On fail:   "", or the type alone
 * Safe in:   signal handlers no: libstdc++ does not call abort() from one; after fork yes
 *
 * std::terminate() calls abort() where nothing catches an exception. libstdc++ keeps that as the thread's current one.
 * No function of the exception is called: std::runtime_error, std::logic_error and c10::Error have a pointer to their
 * text behind their first word. Every read is checked, as the heap may be damaged. See decisions/205.
 */
#include "preload/finish/thrown.h"

#include <stdint.h>
#include <string.h>

#include "collector/base/text/kp_exceptiontext.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/format/kp_ends.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

enum { BASES_MAX = 16, NAME_BYTES = 128, TEXT_READ = 256, DIGITS_MAX = 6 };
#define GNU_CLASS UINT64_C(0x474e5543432b2b00)          /* "GNUCC++" */
#define ONE_BASE "N10__cxxabiv120__si_class_type_infoE" /* the type of a type that has one base, at its begin */

/* A name with its length before: "13runtime_error". NULL: none. */
static const char *part_take(const char *at, size_t *length)
{
    size_t n = 0;
    for (int i = 0; *at >= '0' && *at <= '9' && i < DIGITS_MAX; i++) n = n * 10 + (size_t)(*at++ - '0');
    *length = n;
    return n && strnlen(at, n) == n ? at : NULL;
}

/* The parts of the name, with "::" between; false: it has something else. */
static bool parts_put(char *out, size_t bytes, const char *at, bool is_nested)
{
    const bool is_std = strncmp(at, "St", 2) == 0;
    size_t used = kp_fmt(out, bytes, "%s", is_std ? "std" : ""), length;
    if (is_std) at += 2;
    while (*at && *at != 'E') {
        const bool is_tag = *at == 'B'; /* of the ABI: cxx11 */
        const char *const name = part_take(at + is_tag, &length);
        if (!name || used >= bytes) return false;
        if (!is_tag) used += kp_fmt(out + used, bytes - used, "%s%.*s", used ? "::" : "", (int)length, name);
        at = name + length;
    }
    return used && used < bytes && (is_nested ? strcmp(at, "E") == 0 : !*at);
}

void kp_thrown_name(char *out, size_t bytes, const char *mangled)
{
    mangled += *mangled == '*'; /* of a type that no other module has */
    const bool is_nested = *mangled == 'N';
    if (!parts_put(out, bytes, mangled + is_nested, is_nested)) kp_fmt(out, bytes, "%s", mangled);
}

static const void *pointer_at(const void *at)
{
    const void *value;
    return at && kp_io_peek(at, &value, sizeof value) == 0 ? value : NULL;
}

/* Up to the end of its page, where a longer one is. */
static bool text_at(const char *at, char *out, size_t bytes)
{
    const size_t page = 4096, left = page - (uintptr_t)at % page;
    if (!at) return false;
    *out = '\0';
    size_t n = left < bytes - 1 ? left : bytes - 1;
    if (kp_io_peek(at, out, n) != 0) return false;
    out[n] = '\0';
    if (n < bytes - 1 && !memchr(out, 0, n) && kp_io_peek(at + n, out + n, bytes - 1 - n) == 0) out[bytes - 1] = '\0';
    return true;
}

static const void *behind(const void *at) { return (const char *)at + sizeof(void *); }

/* std::type_info has its name behind its table of functions. */
static bool name_at(const void *type, char out[NAME_BYTES])
{
    return type && text_at(pointer_at(behind(type)), out, NAME_BYTES);
}

/* The type's only base, at the begin of the object; NULL: it has none. Its own type stands before its table. */
static const void *base_of(const void *type)
{
    char name[NAME_BYTES];
    const void *const *const table = pointer_at(type);
    if (!table || !name_at(pointer_at(table - 1), name) || strcmp(name, ONE_BASE) != 0) return NULL;
    return pointer_at(behind(behind(type)));
}

static bool has_text(const void *type)
{
    static const char *const with[] = {"St13runtime_error", "St11logic_error", "N3c105ErrorE"};
    char name[NAME_BYTES];
    for (int i = 0; i < BASES_MAX && name_at(type, name); i++) {
        for (size_t k = 0; k < sizeof with / sizeof *with; k++)
            if (strcmp(name, with[k]) == 0) return true;
        type = base_of(type);
    }
    return false;
}

/*
 * Behind the head of libstdc++ lies the object, and its type begins the head. The head of one that is thrown once more
 * (std::rethrow_exception) begins with the object, which has a head of its own. NULL: of another language.
 */
static const void *object_find(const void *head, const void **type)
{
    enum { CLASS_AT = 80, HEAD = 112 };
    const uint64_t class = (uint64_t)(uintptr_t)pointer_at((const char *)head + CLASS_AT);
    const bool is_own = class == GNU_CLASS, is_again = class == GNU_CLASS + 1;
    const void *const object = is_own ? (const char *)head + HEAD : is_again ? pointer_at(head) : NULL;
    *type = object ? pointer_at((const char *)object - HEAD) : NULL;
    return object;
}

/* The last exception that this thread caught, which std::terminate() has done; NULL: none. */
static const void *head_find(void)
{
    uintptr_t module;
    const void *(*globals)(void);
    *(void **)(void *)&globals = kp_hook_first("__cxa_get_globals", &module);
    const bool is_right = globals && kp_library_has("libstdc++", *(void **)(void *)&globals);
    return is_right ? pointer_at(globals()) : NULL;
}

void kp_thrown_put(char *out, size_t bytes, const void *caller)
{
    char mangled[NAME_BYTES], name[NAME_BYTES], text[TEXT_READ], kept[KP_ENDS_TEXT_BYTES] = "";
    const void *type = NULL;
    *out = '\0';
    if (!kp_library_has("libstdc++", caller)) return;
    const void *const head = head_find(), *const object = head ? object_find(head, &type) : NULL;
    kp_fmt(out, bytes, "std::terminate()");
    if (!name_at(type, mangled)) return;
    kp_thrown_name(name, sizeof name, mangled);
    if (has_text(type) && text_at(pointer_at(behind(object)), text, sizeof text))
        kp_exceptiontext_copy(kept, sizeof kept, text);
    kp_fmt(out, bytes, "%s%s%s%s", name, *kept ? " \"" : "", kept, *kept ? "\"" : "");
}

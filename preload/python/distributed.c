// SPDX-License-Identifier: Apache-2.0
/*
 * distributed.c - notes the rank of this process and its process groups, as torch.profiler asks torch.distributed
 *
 * Called by: boot.c through source.h; CPython's main thread (Py_AddPendingCall); the thread that steps
 * Owns:      a reference to torch's dict of groups, never dropped; how many groups were read; the text, under the GIL
 * Locks:     the GIL. The thread that steps takes it at a window's begin, and when the number of groups has changed
 * Memory:    32 KB for the text. Its JSON is written by hand: the writer of traces is a room above, and allocates
 * On fail:   the rank is the launcher's; the trace lacks what torch's functions would say
 * Safe in:   after fork yes: a child that records has its parent's groups, as it has its variables
 *
 * mp.spawn and Lightning set no RANK before they start a rank. The group alone knows then, once it is made. No function
 * of Python's runs here: a debugger or a coverage of the program would see it. The dicts are read, and what a group
 * itself says is asked of C++. Whether a group came or went tells the dict's own count, by a plain load.
 */
#include <string.h>
#include <unistd.h>

#include "collector/base/kp_config.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"
#include "collector/record/kp_record.h"
#include "preload/guard.h"
#include "preload/python/pycalls.h"
#include "preload/run.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

#define MODULE "torch.distributed.distributed_c10d"
enum { AT_COUNT = 16, SELDOM = 64, TEXT_BYTES = KP_MAX_RECORD - 128, NUMBER_BYTES = 24 };

static _Atomic bool attached, is_asked; /* is_asked: CPython's main thread is to read */
static void *_Atomic map;               /* _pg_map: group -> (backend, store), in the order in which they were made */
static _Atomic uint64_t read_count;     /* groups, when they were read last */
static _Atomic uint32_t looks;          /* questions whether to read */
static _Atomic bool is_read;            /* once, since the spool is there */
static bool is_noted, is_reading;       /* is_noted: a rank is in the spool. With the GIL */

/* ---- the text. With the GIL ---- */

static struct {
    char bytes[TEXT_BYTES];
    size_t used;
    bool is_full;
} text;

static void text_put(const char *what, size_t bytes)
{
    text.is_full |= text.used + bytes + 1 > sizeof text.bytes;
    if (text.is_full) return;
    memcpy(text.bytes + text.used, what, bytes);
    text.used += bytes;
    text.bytes[text.used] = 0;
}

static void text_say(const char *what) { text_put(what, strlen(what)); }

static void number_say(long number)
{
    char digits[NUMBER_BYTES];
    text_put(digits, kp_fmt(digits, sizeof digits, "%ld", number));
}

static void quoted_say(const char *what)
{
    text_say("\"");
    for (; *what; what++) {
        const unsigned char c = (unsigned char)*what;
        if (c == '"' || c == '\\') text_put("\\", 1);
        text_put(c < ' ' ? " " : what, 1);
    }
    text_say("\"");
}

/* ---- what torch has. With the GIL ---- */

/* The value that a loaded module has under a name, borrowed; else NULL. */
static void *module_value(const char *module, const char *name)
{
    void *const dict = kp_pymodule_dict(module);
    return dict ? kp_python_api.dict_get(dict, name) : NULL;
}

static long int_of(void *object)
{
    const long value = object ? kp_python_api.int_value(object) : -1;
    if (value == -1) kp_python_api.forget_error();
    return value;
}

static long call_int(void *function)
{
    void *const answer = function ? kp_python_api.call_with(function, NULL) : NULL;
    const long value = int_of(answer);
    KP_PYTHON_DROP(answer);
    return value;
}

/* The answer of the group's function of C++, -1: it cannot be asked. */
static long group_ask(void *group, const char *name)
{
    void *const function = kp_pyobject_member(group, name);
    const long value = call_int(function);
    KP_PYTHON_DROP(function);
    return value;
}

/* A dict's value for a group, borrowed. Groups are compared as objects, since their own comparison may be Python. */
static void *value_of(const char *dict_name, const void *group)
{
    void *const dict = module_value(MODULE, dict_name), *key, *value;
    intptr_t at = 0;
    if (!kp_pyobject_is(dict, kp_python_api.dict_type)) return NULL;
    while (kp_python_api.dict_next(dict, &at, &key, &value))
        if (key == group) return value;
    return NULL;
}

/* ---- distributedInfo, as torch.profiler makes it ---- */

static void member_say(const char *name, const char *value)
{
    if (!value) return;
    text_say(", ");
    quoted_say(name);
    text_say(": ");
    quoted_say(value);
}

/* The keys of {rank of all: rank in the group}. */
static void ranks_say(void *ranks)
{
    void *key, *value;
    intptr_t at = 0;
    bool any = false;
    text_say(", \"ranks\": [");
    while (kp_pyobject_is(ranks, kp_python_api.dict_type) && !text.is_full &&
           kp_python_api.dict_next(ranks, &at, &key, &value)) {
        if (any) text_say(", ");
        number_say(int_of(key));
        any = true;
    }
    text_say("]");
}

static void group_say(void *group)
{
    const char *const name = kp_pyobject_text(value_of("_pg_names", group));
    void *const said = kp_pyobject_member(group, "group_desc"); /* torch 2.1 has none */
    text_say("{\"pg_name\": ");
    quoted_say(name ? name : "None");
    member_say("pg_desc", kp_pyobject_text(said));
    member_say("backend_config", kp_pyobject_text(value_of("_pg_backend_config", group)));
    text_say(", \"pg_size\": ");
    number_say(group_ask(group, "size"));
    ranks_say(value_of("_pg_group_ranks", group));
    text_say("}");
    KP_PYTHON_DROP(said);
}

/* Thousands of ranks in many groups have no room: then there is no pg_config. */
static void groups_say(void)
{
    void *group, *value;
    intptr_t at = 0;
    const size_t before = text.used;
    text_say(", \"pg_config\": [");
    void *const groups = kp_load_relaxed(&map);
    for (bool any = false; !text.is_full && kp_python_api.dict_next(groups, &at, &group, &value); any = true) {
        if (any) text_say(", ");
        group_say(group);
    }
    text_say("]");
    if (!text.is_full) return;
    text.used = before;
    text.bytes[before] = 0;
    text.is_full = false;
}

static void nccl_say(void)
{
    enum { PART_BITS = 16, PART_MASK = 0xffff };
    char version[NUMBER_BYTES * 3];
    const long number = call_int(module_value("torch._C", "_nccl_version"));
    if (number <= 0) return;
    kp_fmt(version, sizeof version, "%ld.%ld.%ld", number >> 2 * PART_BITS, number >> PART_BITS & PART_MASK,
           number & PART_MASK);
    member_say("nccl_version", version);
}

/* False: there is no group, or it does not say its rank. The first one that was made is that of all ranks. */
static bool info_make(struct kp_rank *place)
{
    void *group = NULL, *value = NULL;
    intptr_t at = 0;
    void *const groups = kp_load_relaxed(&map);
    if (!groups || !kp_python_api.dict_next(groups, &at, &group, &value)) return false;
    const long rank = group_ask(group, "rank"), size = group_ask(group, "size");
    if (rank < 0 || size <= rank || size > UINT32_MAX) return false;
    void *const first = kp_pyobject_is(value, kp_python_api.tuple_type) ? kp_python_api.tuple_item(value, 0) : NULL;
    const char *const backend = kp_pyobject_text(first);
    *place = (struct kp_rank){.rank = (uint32_t)rank, .size = (uint32_t)size};
    text.used = 0;
    text.is_full = false;
    text_say("{\"backend\": ");
    quoted_say(backend ? backend : "undefined");
    text_say(", \"rank\": ");
    number_say(rank);
    text_say(", \"world_size\": ");
    number_say(size);
    text_say(", \"pg_count\": ");
    number_say(int_of(module_value(MODULE, "_group_count")));
    groups_say();
    if (backend && strcmp(backend, "nccl") == 0) nccl_say();
    text_say("}");
    return !text.is_full;
}

static bool place_note(const struct kp_rank *place)
{
    char number[NUMBER_BYTES];
    kp_fmt(number, sizeof number, "%u", place->size);
    if (kp_record_note("env." KP_RANK_GROUP_SIZE, number) != 0) return false;
    kp_fmt(number, sizeof number, "%u", place->rank);
    return kp_record_note("env." KP_RANK_GROUP_RANK, number) == 0;
}

/* Variables that the program set in os.environ since it began are read with the GIL, which setting them takes as
 * well. */
static void info_note(void)
{
    struct kp_rank place;
    const bool is_group = info_make(&place);
    if (!is_group && is_noted) return; /* the group is gone; what it said holds */
    if (!is_group) place = kp_rank_find(kp_config_variable, environ);
    const struct kp_rank known = kp_run_rank();
    if (!is_group && (place.size < 2 || (place.rank == known.rank && place.size == known.size))) return;
    if (!place_note(&place)) return;
    const char *const errors = kp_config_variable(environ, KP_RANK_ERROR_FILE);
    if (errors) (void)kp_record_note("env." KP_RANK_ERROR_FILE, errors);
    if (is_group) (void)kp_record_note("distributed", text.bytes);
    is_noted = true;
    kp_run_set_place(place.rank, place.size);
}

static void map_find(void)
{
    void *const found = module_value(MODULE, "_pg_map");
    if (!kp_pyobject_is(found, kp_python_api.dict_type)) return;
    void *const held = kp_pymodule_member(MODULE, "_pg_map");
    if (held == found) kp_store_relaxed(&map, held); /* never dropped: its count is read at any time */
    else KP_PYTHON_DROP(held);
}

static uint64_t count_now(void)
{
    const uint8_t *const groups = kp_load_relaxed(&map);
    return groups ? kp_load_relaxed((const _Atomic uint64_t *)(groups + AT_COUNT)) : 0;
}

static void groups_read(void)
{
    struct kp_pyaside aside;
    kp_store_relaxed(&is_asked, false);
    if (kp_python_is_over() || !kp_record_is_open() || is_reading) return;
    is_reading = true; /* torch's functions may give the GIL away */
    kp_pyaside_begin(&aside, kp_thread_self);
    if (!kp_load_relaxed(&map)) map_find();
    const uint64_t count = count_now();
    if (!kp_load_relaxed(&is_read)) kp_lastexception_watch();
    info_note();
    kp_store_relaxed(&read_count, count);
    kp_store_relaxed(&is_read, true);
    is_reading = false;
    kp_pyaside_end(&aside);
}

/* ---- the source ---- */

/* Groups changed since they were read. Until torch's dict is found: at the 1st, 2nd, 4th ... question. */
static bool is_due(void)
{
    if (!kp_load_acquire(&attached) || !kp_record_is_open()) return false; /* pairs with: attach */
    if (kp_load_relaxed(&map)) return count_now() != kp_load_relaxed(&read_count);
    const uint32_t look = kp_add_relaxed(&looks, 1) + 1;
    return look < SELDOM ? (look & (look - 1)) == 0 : look % SELDOM == 0;
}

static void wait_ready(uint64_t begin_ticks, uint32_t timeout_ms)
{
    (void)begin_ticks;
    if (!kp_load_acquire(&attached) || !kp_record_is_open()) return; /* pairs with: attach */
    const bool is_known = kp_load_relaxed(&is_read) && kp_load_relaxed(&map);
    if (!is_known || count_now() != kp_load_relaxed(&read_count)) (void)kp_python_with_gil(groups_read, timeout_ms > 0);
}

static void step_ended(void)
{
    if (is_due()) (void)kp_python_with_gil(groups_read, true);
}

/* On kprof-tick: a program without steps has the groups, too. */
static void note(void)
{
    if (!is_due() || kp_exchange_acq_rel(&is_asked, true)) return;
    if (!kp_python_later(groups_read)) kp_store_relaxed(&is_asked, false);
}

static bool attach(void)
{
    if (kp_load_relaxed(&attached)) return true;
    if (!kp_python_api_find()) return false;
    kp_store_release(&attached, true); /* pairs with: wait_ready, is_due */
    return true;
}

static void forget(void)
{
    kp_store_relaxed(&is_asked, false);
    kp_store_relaxed(&read_count, 0);
    kp_store_relaxed(&looks, 0);
    kp_store_relaxed(&is_read, false);
    is_noted = is_reading = false;
}

const struct kp_source kp_distributed_source = {
    .name = "distributed",
    .attach = attach,
    .wait_ready = wait_ready,
    .step_ended = step_ended,
    .note = note,
    .forget = forget,
};

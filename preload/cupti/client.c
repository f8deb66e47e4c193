// SPDX-License-Identifier: Apache-2.0
/*
 * client.c - the program's session with CUPTI: which records are its own, and the buffers they are copied into
 *
 * Called by: tee.c on host threads inside the program's CUPTI calls; forward.c on threads that complete a buffer
 * Owns:      the client's callbacks, kinds and filters; up to OPEN_MAX buffers of the client that are being filled
 * Locks:     none. A buffer belongs to the thread that made it BUSY by compare and swap.
 * Memory:    none
 * On fail:   counts records that found no buffer of the client; the client reads them as dropped
 * Safe in:   signal handlers no; after fork no (CUPTI does not support it)
 *
 * While we record, CUPTI fills our buffers. The client's records are copied into buffers that its request callback
 * gave. So the client sees only kinds and calls that it enabled, and only records of its session. Its buffers are dense
 * however often we flush. It may walk them with GetNextRecord or with its own code.
 *
 * Which records belong to the client? The records of a kind or call that it enabled, whose API call began in its
 * session. Work belongs to the API call with the same correlation id. Ids only increase, so the ids [first, after)
 * describe the session. `first` is the lowest id called in it, `after` the lowest called later. Before a mark is known,
 * the start time of the work decides.
 */
#include "preload/cupti/client.h"

#include <pthread.h>
#include <string.h>

#include "collector/base/sys/kp_io.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { OPEN_MAX = 8, WORDS = KP_CALLS / 64, HIDDEN = 8, WAIT_MAX_US = 1000000, WAIT_STEP_US = 100 };
enum { EMPTY, IDLE, BUSY };
#define NO_END UINT64_MAX
#define KNOWN (UINT64_C(1) << 32)

struct open_buffer {
    _Atomic uint32_t state;
    uint8_t *buffer; /* the client's; NULL: none */
    size_t bytes, used, max_records, records;
};

static _Atomic(kp_cupti_request_fn) client_request;
static _Atomic(kp_cupti_complete_fn) client_complete;
static _Atomic uint64_t kinds_now, kinds_of_session; /* bits by kind */
static _Atomic uint64_t begin, end;
static _Atomic uint64_t first, after; /* KNOWN | correlation id; 0: not known yet */
/* The calls that the client set one by one, a bit each, by [is_driver]. is_over: their kind was disabled since. The
 * bits then only tell which records of the past session are the client's. */
static struct {
    _Atomic uint64_t set[WORDS], on[WORDS];
    _Atomic bool is_over;
} singly[2];
static _Atomic uint64_t dropped;
static struct open_buffer opened[OPEN_MAX];
static _Atomic uint32_t hidden[HIDDEN], hidden_next; /* ids of the last few helper threads */

/* --- what the client asked for --- */

void kp_client_register(kp_cupti_request_fn request, kp_cupti_complete_fn complete)
{
    if (kp_load_acquire(&client_complete) != complete) kp_client_hand_over(); /* to the old callback */
    kp_store_release(&client_complete, complete); /* pairs with: client.c:hand_over_one, kp_client_complete */
    kp_store_release(&client_request, request);   /* pairs with: client.c:kp_client_request */
}

static _Atomic(kp_client_clock_fn) client_clock;

kp_client_clock_fn kp_client_clock(void)
{
    return kp_load_acquire(&client_clock); /* pairs with: kp_client_set_clock */
}

void kp_client_set_clock(kp_client_clock_fn clock)
{
    kp_store_release(&client_clock, clock); /* pairs with: kp_client_clock */
}

bool kp_client_is_there(void) { return kp_load_acquire(&client_request) && kp_load_acquire(&client_complete); }

static void singly_forget(bool is_driver)
{
    for (int i = 0; i < WORDS; i++) atomic_store(&singly[is_driver].set[i], 0);
    kp_store_relaxed(&singly[is_driver].is_over, false);
}

void kp_client_forget(void)
{
    kp_store_release(&client_request, NULL); /* pairs with: client.c:kp_client_request */
    atomic_store(&kinds_now, 0);
    kp_store_relaxed(&kinds_of_session, 0);
    singly_forget(false);
    singly_forget(true);
}

static uint64_t bit_of(uint32_t kind) { return kind < 64 ? UINT64_C(1) << kind : 0; }

static bool is_api(uint32_t kind) { return kind == KP_CUPTI_RUNTIME || kind == KP_CUPTI_DRIVER; }

void kp_client_begin(uint64_t now)
{
    kp_store_relaxed(&kinds_of_session, atomic_load(&kinds_now));
    kp_store_relaxed(&begin, now);
    kp_store_relaxed(&end, NO_END);
    kp_store_relaxed(&first, 0);
    kp_store_release(&after, 0); /* pairs with: client.c:is_in_session */
}

/* kinds_now is seq_cst, as are the words of enabled.c. Each side changes its own word, then reads the other's: so a
 * kind that either side wants stays enabled. */
void kp_client_enable(uint32_t kind, uint64_t now)
{
    if (!atomic_load(&kinds_now)) kp_client_begin(now);
    if (is_api(kind)) singly_forget(kind == KP_CUPTI_DRIVER); /* in CUPTI an Enable of the kind overrides them */
    atomic_fetch_or_explicit(&kinds_of_session, bit_of(kind),
                             memory_order_release); /* pairs with: client.c:kp_client_copy */
    atomic_fetch_or(&kinds_now, bit_of(kind));
}

bool kp_client_disable(uint32_t kind, uint64_t now)
{
    if (is_api(kind)) atomic_store(&singly[kind == KP_CUPTI_DRIVER].is_over, true);
    uint64_t before = atomic_fetch_and(&kinds_now, ~bit_of(kind));
    if (before != bit_of(kind)) return false;
    kp_store_relaxed(&end, now ? now : NO_END);
    return true;
}

bool kp_client_has(uint32_t kind) { return atomic_load(&kinds_now) & bit_of(kind); }

bool kp_client_is_active(void) { return atomic_load(&kinds_now) != 0; }

void kp_client_set_call(bool is_driver, uint32_t cbid, bool enabled)
{
    if (cbid >= KP_CALLS) return;
    if (atomic_load(&singly[is_driver].is_over)) singly_forget(is_driver);
    uint64_t bit = UINT64_C(1) << cbid % 64;
    if (enabled) atomic_fetch_or(&singly[is_driver].on[cbid / 64], bit);
    else atomic_fetch_and(&singly[is_driver].on[cbid / 64], ~bit);
    atomic_fetch_or(&singly[is_driver].set[cbid / 64], bit);
}

static bool is_set_singly(bool is_driver, uint32_t cbid, bool *enabled)
{
    if (cbid >= KP_CALLS || !(atomic_load(&singly[is_driver].set[cbid / 64]) >> cbid % 64 & 1)) return false;
    *enabled = atomic_load(&singly[is_driver].on[cbid / 64]) >> cbid % 64 & 1;
    return true;
}

bool kp_client_chose_call(bool is_driver, uint32_t cbid)
{
    bool enabled;
    return !atomic_load(&singly[is_driver].is_over) && is_set_singly(is_driver, cbid, &enabled);
}

bool kp_client_has_call(bool is_driver, uint32_t cbid)
{
    bool enabled;
    if (!atomic_load(&singly[is_driver].is_over) && is_set_singly(is_driver, cbid, &enabled)) return enabled;
    return kp_client_has(is_driver ? KP_CUPTI_DRIVER : KP_CUPTI_RUNTIME);
}

static bool has_calls(void)
{
    for (int driver = 0; driver < 2; driver++)
        for (int i = 0; i < WORDS && !atomic_load(&singly[driver].is_over); i++)
            if (atomic_load(&singly[driver].set[i]) & atomic_load(&singly[driver].on[i])) return true;
    return false;
}

bool kp_client_wants_any(void) { return kp_client_is_active() || has_calls(); }

void kp_client_clock_changed(void) { kp_store_relaxed(&begin, 0); }

/* --- which records are the client's --- */

static uint32_t u32_at(const uint8_t *record, uint32_t offset)
{
    uint32_t v;
    memcpy(&v, record + offset, sizeof v);
    return v;
}

static uint64_t u64_at(const uint8_t *record, uint32_t offset)
{
    uint64_t v;
    memcpy(&v, record + offset, sizeof v);
    return v;
}

/* Offsets of start time and correlation id, by kind; 0: it has none. Kinds by number have no row in layout.def. */
#define BOTH(kind) KP_AT_##kind##_start, KP_AT_##kind##_correlationId
static const struct {
    uint8_t start, correlation;
} fields[KP_CUPTI_KINDS] = {
    [KP_CUPTI_MEMCPY] = {BOTH(MEMCPY)},
    [KP_CUPTI_MEMSET] = {BOTH(MEMSET)},
    [KP_CUPTI_KERNEL] = {BOTH(KERNEL)},
    [KP_CUPTI_DRIVER] = {BOTH(API)},
    [KP_CUPTI_RUNTIME] = {BOTH(API)},
    [KP_CUPTI_CONCURRENT_KERNEL] = {BOTH(KERNEL)},
    [KP_CUPTI_OVERHEAD] = {KP_AT_OVERHEAD_start, 0},
    [KP_CUPTI_MEMCPY2] = {BOTH(MEMCPY2)},
    [KP_CUPTI_CUDA_EVENT] = {0, KP_AT_CUDA_EVENT_correlationId},
    [KP_CUPTI_SYNCHRONIZATION] = {BOTH(SYNCHRONIZATION)},
    [KP_CUPTI_GRAPH_TRACE] = {BOTH(GRAPH_TRACE)},
    [KP_CUPTI_EXTERNAL_CORRELATION] = {0, 16},
    [48] = {8, 32},
    [49] = {32, 12},
    [50] = {56, 12},
    [52] = {16, 32},
};

static bool is_lower(uint32_t a, uint32_t b) /* ids are 32 bits and wrap */ { return (int32_t)(a - b) < 0; }

static void lower_mark(_Atomic uint64_t *mark, uint32_t correlation)
{
    uint64_t seen = kp_load_relaxed(mark);
    while (!seen || is_lower(correlation, (uint32_t)seen))
        if (kp_cas_acq_rel(mark, &seen, KNOWN | correlation)) return;
}

/* Ignores a start time outside [begin, now], which may be of another clock than the session's. */
static void mark_call(const uint8_t *record, uint64_t now)
{
    uint64_t start = u64_at(record, KP_AT_API_start), from = kp_load_relaxed(&begin), to = kp_load_relaxed(&end);
    uint32_t correlation = u32_at(record, KP_AT_API_correlationId);
    if (!correlation || !from || start < from || (now && start > now)) return;
    lower_mark(start > to ? &after : &first, correlation);
}

static bool is_in_time(uint64_t start, uint64_t now)
{
    uint64_t from = kp_load_relaxed(&begin);
    return start >= from && (!now || !from || start <= now);
}

static bool is_in_session(const uint8_t *record, uint32_t kind, uint64_t now)
{
    uint32_t correlation = fields[kind].correlation ? u32_at(record, fields[kind].correlation) : 0;
    uint64_t start = fields[kind].start ? u64_at(record, fields[kind].start) : 0;
    uint64_t first_mark = kp_load_acquire(&first),
             after_mark = kp_load_acquire(&after); /* pairs with: client.c:kp_client_begin */
    if (!kp_load_relaxed(&begin) || (!correlation && !start)) return true;
    if (is_api(kind)) return is_in_time(start, now) && start <= kp_load_relaxed(&end);
    if (!correlation) return is_in_time(start, now) && start <= kp_load_relaxed(&end);
    if (after_mark && !is_lower(correlation, (uint32_t)after_mark)) return false;
    if (first_mark) return !is_lower(correlation, (uint32_t)first_mark);
    return !start || is_in_time(start, now);
}

void kp_client_hide_this_thread(void)
{
    uint32_t ids[2] = {(uint32_t)(uintptr_t)pthread_self(), kp_io_tid()};
    uint32_t at = kp_add_relaxed(&hidden_next, 2) % HIDDEN;
    kp_store_relaxed(&hidden[at], ids[0]);
    kp_store_relaxed(&hidden[at + 1], ids[1]);
}

static bool is_hidden(const uint8_t *record)
{
    uint32_t id = u32_at(record, KP_AT_API_threadId);
    for (int i = 0; i < HIDDEN; i++)
        if (kp_load_relaxed(&hidden[i]) == id) return id != 0;
    return false;
}

static bool is_asked_for(const uint8_t *record, uint32_t kind)
{
    bool enabled, is_said;
    /* CUPTI gives CUDA_EVENT records with SYNCHRONIZATION; they have no Enable. */
    uint32_t enabled_by = kind == KP_CUPTI_CUDA_EVENT ? KP_CUPTI_SYNCHRONIZATION : kind;
    bool has_kind = kp_load_relaxed(&kinds_of_session) & bit_of(enabled_by);
    if (kind == KP_CUPTI_KERNEL || kind == KP_CUPTI_CONCURRENT_KERNEL)
        return kp_load_relaxed(&kinds_of_session) & (bit_of(KP_CUPTI_KERNEL) | bit_of(KP_CUPTI_CONCURRENT_KERNEL));
    if (!is_api(kind)) return has_kind;
    if (is_hidden(record)) return false;
    is_said = is_set_singly(kind == KP_CUPTI_DRIVER, u32_at(record, KP_AT_API_cbid), &enabled);
    return is_said ? enabled : has_kind;
}

static bool is_the_clients(const uint8_t *record, uint32_t kind, uint64_t now)
{
    return kind < 64 && is_asked_for(record, kind) && is_in_session(record, kind, now);
}

/* Moves *at over a hole of zeroes and returns the bytes of the record there. 0: the end, or an unknown kind. */
static uint32_t record_at(const uint8_t *buffer, size_t valid, size_t *at)
{
    while (*at + 8 <= valid && u32_at(buffer, (uint32_t)*at) == 0) *at += 8;
    if (*at + 8 > valid) return 0;
    uint32_t bytes = kp_record_bytes(u32_at(buffer, (uint32_t)*at));
    return bytes && *at + bytes <= valid ? bytes : 0;
}

static void mark_calls(const uint8_t *buffer, size_t valid, uint64_t now)
{
    uint32_t bytes;
    for (size_t at = 0; (bytes = record_at(buffer, valid, &at)) != 0; at += bytes)
        if (is_api(u32_at(buffer, (uint32_t)at))) mark_call(buffer + at, now);
}

/* --- what the client gets --- */

bool kp_client_request(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
    kp_cupti_request_fn request = kp_load_acquire(&client_request); /* pairs with: client.c:kp_client_register */
    *buffer = NULL;
    *bytes = *max_records = 0;
    if (!request) return false;
    request(buffer, bytes, max_records);
    return *buffer && *bytes;
}

void kp_client_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes,
                        bool may_have_more)
{
    kp_cupti_complete_fn complete = kp_load_acquire(&client_complete); /* pairs with: client.c:kp_client_register */
    size_t keep = 0, at = 0;
    uint32_t n;
    if (may_have_more) {
        while ((n = record_at(buffer, valid_bytes, &at)) != 0) {
            if (is_asked_for(buffer + at, u32_at(buffer, (uint32_t)at))) {
                if (keep != at) memmove(buffer + keep, buffer + at, n);
                keep += n;
            }
            at += n;
        }
        if (at < valid_bytes)
            memmove(buffer + keep, buffer + at,
                    valid_bytes - at); /* passes an unknown kind and all behind it unchanged */
        valid_bytes = keep + (valid_bytes - at);
    }
    if (complete) complete(context, stream, buffer, bytes, valid_bytes);
}

static void hand_over_one(struct open_buffer *o)
{
    kp_cupti_complete_fn complete = kp_load_acquire(&client_complete); /* pairs with: client.c:kp_client_register */
    uint8_t *buffer = o->buffer;
    o->buffer = NULL;
    if (buffer && complete) complete(NULL, 0, buffer, o->bytes, o->used);
}

static bool refill(struct open_buffer *o)
{
    o->used = o->records = 0;
    return kp_client_request(&o->buffer, &o->bytes, &o->max_records);
}

static struct open_buffer *take_in_state(uint32_t state)
{
    for (int i = 0; i < OPEN_MAX; i++) {
        uint32_t seen = state;
        if (kp_cas_acq_rel(&opened[i].state, &seen, BUSY)) return &opened[i]; /* pairs with: client.c:put_back */
    }
    return NULL;
}

static struct open_buffer *take(void)
{
    struct open_buffer *o = take_in_state(IDLE);
    return o ? o : take_in_state(EMPTY);
}

static void put_back(struct open_buffer *o)
{
    kp_store_release(&o->state, o->buffer ? IDLE : EMPTY); /* pairs with: client.c:take_in_state */
}

/* Replaces a full buffer at once, since Kineto flushes only while it has given one. */
static bool make_room(struct open_buffer *o, uint32_t bytes)
{
    if (o->buffer && o->used + bytes <= o->bytes && (!o->max_records || o->records < o->max_records)) return true;
    hand_over_one(o);
    if (!refill(o)) o->buffer = NULL;
    return o->buffer && bytes <= o->bytes;
}

void kp_client_copy(const uint8_t *buffer, size_t valid_bytes, uint64_t now)
{
    struct open_buffer *o = NULL;
    uint32_t bytes;
    if (!kp_load_acquire(&kinds_of_session)) return; /* pairs with: client.c:kp_client_enable */
    mark_calls(buffer, valid_bytes, now);
    for (size_t at = 0; (bytes = record_at(buffer, valid_bytes, &at)) != 0; at += bytes) {
        if (!is_the_clients(buffer + at, u32_at(buffer, (uint32_t)at), now)) continue;
        if (!o) o = take();
        if (!o || !make_room(o, bytes)) {
            kp_add_relaxed(&dropped, 1);
            continue;
        }
        memcpy(o->buffer + o->used, buffer + at, bytes);
        o->used += bytes;
        o->records++;
    }
    if (o) put_back(o);
}

void kp_client_have_buffer(void)
{
    for (int i = 0; i < OPEN_MAX; i++)
        if (kp_load_relaxed(&opened[i].state) != EMPTY) return;
    struct open_buffer *o = take_in_state(EMPTY);
    if (!o) return;
    if (!refill(o)) o->buffer = NULL;
    put_back(o);
}

static bool is_any_busy(void)
{
    for (int i = 0; i < OPEN_MAX; i++)
        if (kp_load_acquire(&opened[i].state) == BUSY) return true; /* pairs with: client.c:put_back */
    return false;
}

void kp_client_hand_over(void)
{
    struct open_buffer *o;
    for (unsigned waited = 0; is_any_busy() && waited < WAIT_MAX_US; waited += WAIT_STEP_US)
        kp_io_nap(WAIT_STEP_US * 1000);
    for (int i = 0; i < OPEN_MAX; i++) {
        uint32_t seen = IDLE;
        o = &opened[i];
        if (!kp_cas_acq_rel(&o->state, &seen, BUSY)) continue;   /* pairs with: client.c:put_back */
        if (o->used || !kp_client_is_active()) hand_over_one(o); /* keeps an empty one for later records */
        put_back(o);
    }
}

uint64_t kp_client_take_dropped(void) { return kp_exchange_acq_rel(&dropped, 0); }

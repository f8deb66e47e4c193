// SPDX-License-Identifier: Apache-2.0
/* tee_sides.h - for the tests of tee.c: our half, as control.c, buffer.c and lane.c have it, and the program's half,
 * as Kineto does it */
#pragma once

#include "preload/hook/hook.h"
#include "test/unit/cupti/tee_cupti.h"

enum { POOL = 16, POOL_BYTES = 1 << 16, CLIENTS = 64, SEEN_MAX = 4096 };

/* ---- our half: what control.c, buffer.c and lane.c stand for ---- */

struct seen {
    uint32_t count, kind[SEEN_MAX], correlation[SEEN_MAX];
    uint64_t end[SEEN_MAX];
};
static struct seen ours, theirs;
struct kp_cupti kp_cupti;
static enum kp_cupti_state state;
static uint64_t our_kinds, our_dropped;
static int our_noise = -1, finalized_told, clock_told, aside, back, flushed_back, quiet_anew;
static bool is_session_aside;
static uint64_t counter(void) { return 7; }
struct kp_cupti_call kp_calls[2][KP_CALLS];
static uint8_t pool[POOL][POOL_BYTES];
static bool pool_out[POOL];

enum kp_cupti_state kp_cupti_state(void) { return state; }
bool kp_cupti_may_call(void);
bool kp_cupti_wants(uint32_t kind) { return our_kinds >> kind & 1 && kp_cupti_may_call(); }
bool kp_cupti_wants_call(bool is_driver, uint32_t cbid)
{
    if (!kp_cupti_may_call()) return false;
    if (is_driver)
        return our_kinds >> DRIVER & 1 && kp_calls[1][cbid].name && !(kp_calls[1][cbid].what & KP_CALL_NOISE);
    return our_kinds >> RUNTIME & 1 && (int)cbid != our_noise;
}
void kp_buffer_quiet_anew(void) { quiet_anew++; }
void kp_buffer_finalized(void) {}
static int queries_told;
void kp_cupti_queries_again(void) { queries_told++; }
void kp_rules_session(void) {}
uint64_t kp_cupti_dropped(void) { return our_dropped; }
void kp_cupti_dropped_more(uint64_t n) { our_dropped += n; }
void kp_cupti_clock_changing(void) {}
bool kp_cupti_see_cuinit(void) { return true; }
void kp_cupti_helper_rest(bool begins) { (void)begins; }
bool kp_watchdog_take_control(void) { return is_control_taken ? false : (is_control_taken = true); }
void kp_watchdog_give_control(void) { is_control_taken = false; }
bool kp_watchdog_call_begins(void) { return true; }
static int checks;
bool kp_cupti_may_call(void) { return state != KP_CUPTI_STATE_STALLED && state != KP_CUPTI_STATE_DEAD; }
bool kp_cupti_helper_check(void) { return checks++, !kp_cupti_may_call(); }
void kp_watchdog_call_ends(void) {}
void kp_cupti_clock_changed(void) { clock_told++; }
void kp_cupti_finalized(void) { finalized_told++, our_kinds = 0, state = KP_CUPTI_STATE_FOUND; }
void kp_cupti_stand_aside(bool is_session, const void *code);
void kp_cupti_come_back(bool is_flushed) { is_flushed ? flushed_back++ : back++; }
static bool has_counter; /* registered by us, before all else */
bool kp_domain_is_counter(uint64_t (*clock)(void)) { return has_counter && clock == counter; }
uint64_t kp_domain_time(void) { return kp_forward_timestamp(); }
uint64_t kp_buffer_mark(void) { return 0; }
bool kp_buffer_is_older_out(uint64_t mark)
{
    (void)mark;
    for (int i = 0; i < POOL; i++)
        if (pool_out[i]) return true;
    return false;
}
bool kp_buffer_is_ours(const uint8_t *b) { return b >= pool[0] && b < pool[0] + sizeof pool; }

static void look(struct seen *s, const uint8_t *buffer, size_t valid)
{
    uint32_t kind, n;
    for (size_t at = 0; at < valid; at += n) {
        memcpy(&kind, buffer + at, 4);
        n = kp_record_bytes(kind);
        assert_int_not_equal(n, 0);
        assert_true(s->count < SEEN_MAX);
        s->kind[s->count] = kind;
        memcpy(&s->correlation[s->count],
               buffer + at +
                   (kind == KERNEL  ? 92
                    : kind == SYNC  ? 24
                    : kind == EVENT ? 4
                                    : 32),
               4);
        memcpy(&s->end[s->count++], buffer + at + (kind == KERNEL ? 24 : 16), 8);
    }
}

void kp_buffer_request(uint8_t **buffer, size_t *bytes, size_t *most)
{
    if (kp_client_is_there() && kp_forward_request(buffer, bytes, most)) return;
    for (int i = 0; i < POOL; i++)
        if (!pool_out[i]) {
            pool_out[i] = true;
            *buffer = pool[i], *bytes = POOL_BYTES, *most = 0;
            return;
        }
    *buffer = NULL;
}

void kp_buffer_complete(void *c, uint32_t s, uint8_t *buffer, size_t bytes, size_t valid)
{
    bool is_ours = kp_buffer_is_ours(buffer);
    if (our_kinds) look(&ours, buffer, valid);
    if (!is_ours || kp_client_is_there()) kp_forward_complete(c, s, buffer, bytes, valid, is_ours);
    if (is_ours) pool_out[(buffer - pool[0]) / POOL_BYTES] = false;
}

static int set_single(bool is_driver, uint32_t cbid, bool enabled)
{
    return (is_driver ? kp_cupti.enable_driver_api : kp_cupti.enable_runtime_api)(cbid, enabled);
}

static void arm(void)
{
    static const uint32_t kinds[] = {RUNTIME, DRIVER, KERNEL, SYNC};
    kp_tee_arming();
    kp_cupti.register_callbacks(kp_buffer_request, kp_buffer_complete);
    for (int i = 0; i < 4; i++) our_kinds |= UINT64_C(1) << kinds[i], kp_cupti.enable((int)kinds[i]);
    assert_int_equal(kp_filter_apply(false, KP_FILTER_ALL_ON, set_single), 0);
    assert_int_equal(kp_filter_apply(true, KP_FILTER_ALL_ON, set_single), 0);
    state = KP_CUPTI_STATE_ARMED;
}

static void disarm(void)
{
    static const uint32_t kinds[] = {RUNTIME, DRIVER, KERNEL, SYNC};
    uint64_t mine = our_kinds;
    cupti_flush(0);
    our_kinds = 0;
    for (int i = 0; i < 4; i++)
        if (mine >> kinds[i] & 1 && !kp_client_has(kinds[i])) kp_cupti.disable((int)kinds[i]);
    for (int domain = 0; domain < 2; domain++)
        assert_int_equal(
            kp_filter_apply(domain, kp_client_has(domain ? DRIVER : RUNTIME) ? KP_FILTER_AS_SET : KP_FILTER_ALL_OFF,
                            set_single),
            0);
    state = KP_CUPTI_STATE_FOUND;
    kp_tee_disarmed();
}

void kp_cupti_stand_aside(bool is_session, const void *code)
{
    (void)code;
    aside++;
    is_session_aside = is_session;
    if (state == KP_CUPTI_STATE_ARMED) disarm();
    state = KP_CUPTI_STATE_SHARED;
}

/* ---- the program's half, as Kineto does it ---- */

static struct kp_tap program[16]; /* through what its calls go */
static uint32_t program_count;
int kp_hook_add_taps(const struct kp_tap *taps, uint32_t n)
{
    memcpy(program, taps, n * sizeof *taps);
    program_count = n;
    return 0;
}
static void *called(const char *name)
{
    for (uint32_t i = 0; i < program_count; i++)
        if (strcmp(program[i].symbol, name) == 0) return program[i].tap;
    fail_msg("no tap on %s", name);
    return NULL;
}
#define CALL(name, type) ((type)(uintptr_t)called(name))

static uint8_t client_memory[CLIENTS][1 << 14];
static size_t client_bytes = 1 << 14;
static int client_state[CLIENTS]; /* 0 free, 1 given, 2 back */
static size_t client_valid[CLIENTS];
static int client_refuses;

static void client_request(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *buffer = NULL, *bytes = client_bytes, *most = 0;
    for (int i = 0; i < CLIENTS && !client_refuses; i++)
        if (client_state[i] == 0) {
            client_state[i] = 1;
            *buffer = client_memory[i];
            return;
        }
}
static void client_complete(void *c, uint32_t s, uint8_t *buffer, size_t bytes, size_t valid)
{
    (void)c, (void)s;
    size_t i = (size_t)(buffer - client_memory[0]) / sizeof client_memory[0];
    assert_in_range(i, 0, CLIENTS - 1);
    assert_int_equal(client_state[i], 1);
    assert_in_range(valid, 0, bytes);
    client_state[i] = 2;
    client_valid[i] = valid;
    look(&theirs, buffer, valid);
}
static int client_given(void)
{
    int n = 0;
    for (int i = 0; i < CLIENTS; i++) n += client_state[i] == 1;
    return n;
}

static void client_start(void)
{
    assert_int_equal(CALL("cuptiActivityRegisterCallbacks",
                          int (*)(kp_cupti_request_fn, kp_cupti_complete_fn))(client_request, client_complete),
                     0);
    assert_int_equal(CALL("cuptiActivityEnable", int (*)(int))(KERNEL), 0);
    assert_int_equal(CALL("cuptiActivityEnable", int (*)(int))(RUNTIME), 0);
}
static void client_flush(uint32_t flag)
{
    if (client_given()) assert_int_equal(CALL("cuptiActivityFlushAll", int (*)(uint32_t))(flag), 0); /* Kineto's rule */
}
static void client_stop(void)
{
    assert_int_equal(CALL("cuptiActivityDisable", int (*)(int))(KERNEL), 0);
    assert_int_equal(CALL("cuptiActivityDisable", int (*)(int))(RUNTIME), 0);
    client_flush(1);
    assert_int_equal(client_given(), 0);
    for (int i = 0; i < CLIENTS; i++) client_state[i] = 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * libtorch_double.c - a torch of one file for tests: RecordFunction under torch's own names, laid out as in 2.15
 *
 * Built as libtorch_cpu.so. It has no tensors, so an attached profiler records everything but inputs. With
 * -DMINI_MOVED=N (a multiple of 8) it is a torch 2.99 whose fields all lie N bytes further, those from the name on
 * twice as far. Callbacks live in four slots and are never moved: a range ends with the callbacks it began with, as in
 * torch.
 */
#include "test/doubles/libtorch_double.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef MINI_MOVED
enum { MOVED = MINI_MOVED, MINOR = 99 };
#else
enum { MOVED = 0, MINOR = 15 };
#endif
enum {
    RF_THREAD = 88 + MOVED,
    RF_SCOPE = 96 + MOVED,
    RF_FN = 160 + 2 * MOVED,
    RF_SCHEMA = RF_FN + 32,
    RF_SEQ = RF_FN + 40,
    RF_INPUTS = RF_FN + 48,
    RF_FWD = RF_FN + 144,
    RF_HANDLE = RF_FN + 152,
    RF_ASYNC = RF_FN + 160,
    RF_BYTES = RF_FN + 184,
    CALLBACKS = 4
};

/* A std::unique_ptr is returned as what is too large for registers: into a place that the caller names. */
struct in_place {
    void *context, *unused[2];
};
struct callback {
    struct in_place (*start)(const uint8_t *rf);
    void (*end)(const uint8_t *rf, void *context);
    double sampling;
    uint8_t scopes[10], needs[6];
};
struct view {
    size_t len;
    const char *text;
    uint8_t index, pad[7];
};
/* A FunctionSchema: name and overload name, each a std::string of 32 bytes. */
struct schema {
    const char *name;
    size_t name_len;
    uint64_t room[2];
    const char *overload;
    size_t overload_len;
    uint64_t more[2];
};

static struct {
    struct callback callback;
    _Atomic int in_use;
} slots[CALLBACKS];
static _Atomic uint64_t made, threads, handles;
static _Thread_local uint64_t thread_id;
static _Thread_local bool is_off;

#define NAMED(text) __asm__(text)

uint64_t mini_add(struct callback callback) NAMED("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
void mini_remove(uint64_t handle) NAMED("_ZN2at14removeCallbackEm");
const char *mini_name(const uint8_t *rf) NAMED("_ZNK2at14RecordFunction4nameEv");
const char *mini_overload(const uint8_t *rf) NAMED("_ZNK2at14RecordFunction13overload_nameEv");
size_t mini_inputs(const uint8_t *rf) NAMED("_ZNK2at14RecordFunction10num_inputsEv");
bool mini_is_async(const uint8_t *rf) NAMED("_ZNK2at14RecordFunction7isAsyncEv");
void mini_set_async(uint8_t *rf) NAMED("_ZN2at14RecordFunction9_setAsyncEv");
void mini_make(uint8_t *rf, uint8_t scope) NAMED("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
void mini_unmake(uint8_t *rf) NAMED("_ZN2at14RecordFunctionD1Ev");
void mini_before(uint8_t *rf, struct view name, int64_t seq)
    NAMED("_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_"
          "wrapperIKN3c1014FunctionSchemaEEEEl");
uint64_t mini_thread(void) NAMED("_ZN2at14RecordFunction15currentThreadIdEv");
void mini_enable(bool on) NAMED("_ZN2at20enableRecordFunctionEb");
bool mini_is_enabled(void) NAMED("_ZN2at23isRecordFunctionEnabledEv");
uint64_t mini_abi(void) NAMED("aoti_torch_abi_version");
void mini_show_config(void) NAMED("_ZN2at11show_configB5cxx11Ev");
void mini_report(void *block, int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
    NAMED("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void mini_report_oom(int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
    NAMED("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
extern char mini_undefined[64] NAMED("_ZN3c1019UndefinedTensorImpl10_singletonE");
char mini_undefined[64];

/* Like a static object of C++: gone once exit() has run its handlers, before any library's destructor. */
static atomic_bool is_destroyed;
static atomic_flag is_made = ATOMIC_FLAG_INIT;
static void destroy(void) { atomic_store(&is_destroyed, true); }
static void nap(void) { usleep(20000); }
/* MINI_HANDLERS=N: the object is made when the library is loaded, and N others are destroyed after it, 20 ms each. */
__attribute__((constructor)) static void make_early(void)
{
    const char *const handlers = getenv("MINI_HANDLERS");
    if (!handlers) return;
    for (int i = atoi(handlers); i > 0; i--) atexit(nap);
    if (!atomic_flag_test_and_set(&is_made)) atexit(destroy);
}
static void registry_use(void)
{
    static const char text[] = "mini torch: the list of callbacks is used after its destruction\n";
    if (!atomic_flag_test_and_set(&is_made)) atexit(destroy);
    if (atomic_load(&is_destroyed) && write(2, text, sizeof text - 1) < 0) return;
}

uint64_t mini_add(struct callback callback)
{
    registry_use();
    for (uint64_t i = 0; i < CALLBACKS; i++) {
        int free_slot = 0;
        if (!atomic_compare_exchange_strong(&slots[i].in_use, &free_slot, 1)) continue;
        slots[i].callback = callback;
        atomic_store(&slots[i].in_use, 2);
        return i + 1;
    }
    return 0;
}
void mini_remove(uint64_t handle)
{
    registry_use();
    if (handle >= 1 && handle <= CALLBACKS) atomic_store(&slots[handle - 1].in_use, 0);
}
int mini_is_watched(void)
{
    for (int i = 0; i < CALLBACKS; i++)
        if (atomic_load(&slots[i].in_use) == 2) return 1;
    return 0;
}
static const struct schema *schema_of(const uint8_t *rf)
{
    return rf[RF_SCHEMA] == 1 ? *(const struct schema *const *)(rf + RF_FN) : NULL;
}
const char *mini_name(const uint8_t *rf)
{
    const struct schema *schema = schema_of(rf);
    return schema ? schema->name : *(const char *const *)(rf + RF_FN);
}
const char *mini_overload(const uint8_t *rf)
{
    const struct schema *schema = schema_of(rf);
    return schema ? schema->overload : "";
}
size_t mini_inputs(const uint8_t *rf) { return *(const size_t *)(rf + RF_INPUTS + 8); }
bool mini_is_async(const uint8_t *rf) { return rf[RF_ASYNC]; }
void mini_set_async(uint8_t *rf) { rf[RF_ASYNC] = 1; }
uint64_t mini_thread(void)
{
    if (!thread_id) thread_id = atomic_fetch_add(&threads, 1) + 1;
    return thread_id;
}
void mini_make(uint8_t *rf, uint8_t scope)
{
    uint64_t id = mini_thread();
    memset(rf, 0, RF_BYTES);
    memcpy(rf + RF_THREAD, &id, sizeof id);
    rf[RF_SCOPE] = scope;
    memset(rf + RF_SEQ, 0xff, 8);
}
void mini_unmake(uint8_t *rf) { memset(rf, 0xdd, RF_BYTES); }
void mini_before(uint8_t *rf, struct view name, int64_t seq)
{
    memcpy(rf + RF_FN, &name.text, sizeof name.text);
    memcpy(rf + RF_FN + 8, &name.len, sizeof name.len);
    memcpy(rf + RF_SEQ, &seq, sizeof seq);
}
void mini_enable(bool on) { is_off = !on; }
bool mini_is_enabled(void) { return !is_off; }
uint64_t mini_abi(void) { return 2ull << 56 | (uint64_t)MINOR << 48; }
void mini_show_config(void) {}
void mini_report(void *block, int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
{
    (void)block, (void)bytes, (void)allocated, (void)reserved, (void)device;
}
void mini_report_oom(int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
{
    (void)bytes, (void)allocated, (void)reserved, (void)device;
}

void mini_begin(struct mini_range *range, const char *name, int user)
{
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    mini_make(range->rf, user ? 7 : 0);
    mini_before(range->rf, (struct view){.len = strlen(name), .text = name}, -1);
    range->callbacks = 0;
    for (int i = 0; i < CALLBACKS && !is_off; i++) {
        if (atomic_load_explicit(&slots[i].in_use, memory_order_acquire) != 2) continue;
        if (!slots[i].callback.scopes[user ? 7 : 0]) continue;
        range->callbacks |= 1u << i;
        range->contexts[i] = slots[i].callback.start(range->rf).context;
    }
    if (range->callbacks) {
        uint64_t handle = atomic_fetch_add_explicit(&handles, 1, memory_order_relaxed) + 1;
        memcpy(range->rf + RF_HANDLE, &handle, sizeof handle);
    }
}

void mini_end(struct mini_range *range)
{
    for (int i = 0; i < CALLBACKS; i++) {
        if (!(range->callbacks >> i & 1)) continue;
        slots[i].callback.end(range->rf, range->contexts[i]);
        if (range->contexts[i]) (*(void (***)(void *))range->contexts[i])[1](range->contexts[i]);
    }
    mini_unmake(range->rf);
}

void mini_op(const char *name)
{
    struct mini_range range;
    mini_begin(&range, name, 0);
    mini_end(&range);
}

uint64_t mini_ops_made(void) { return atomic_load(&made); }

void mini_run_out(void)
{
    enum { CUDA = 1, MB = 1 << 20 };
    static char block;
    mini_report(&block, MB, MB, 2 * MB, CUDA);
    mini_report_oom(INT64_C(1) << 40, MB, 2 * MB, CUDA);
}

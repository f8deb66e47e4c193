// SPDX-License-Identifier: Apache-2.0
/*
 * torch.h - shared by the files of preload/torch: torch's functions, the layout of its fields, the slots
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/record/kp_record.h"

struct kp_torch_slot;

/* at::RecordFunctionCallback: trivially copyable and 40 bytes long, so the ABI passes it by value on the stack. */
struct kp_torch_callback {
    void **(*start)(void **context, const uint8_t *rf);
    void (*end)(const uint8_t *rf, struct kp_torch_slot *slot);
    double sampling;
    uint8_t scopes[10];
    uint8_t needs_inputs, needs_outputs, needs_ids;
};
_Static_assert(sizeof(struct kp_torch_callback) == 40, "torch passes 40 bytes");
enum { KP_TORCH_SCOPES = 10, KP_TORCH_BACKWARD_SCOPE = 1, KP_TORCH_SCRIPT_SCOPE = 2, KP_TORCH_USER_SCOPE = 7 };

/* std::variant<std::string_view, std::reference_wrapper<FunctionSchema>> as libstdc++ lays it out. */
struct kp_torch_view {
    size_t len;
    const char *text;
    uint8_t index, pad[7];
};

/* Functions of libtorch_cpu and libc10; the rows of torch_symbols.def, NULL where a version lacks one. */
struct kp_torch_api {
#define KP_TORCH_SYMBOL(declaration, member, text) declaration;
#include "preload/torch/find/torch_symbols.def"
#undef KP_TORCH_SYMBOL
    void *(*build_options)(void);
    /* torch::jit::currentModuleHierarchy, ~string, operator delete, _Unwind_SetGR and _SetIP, __cxa_begin/end_catch */
    void (*modules)(void *texts);
    void (*text_drop)(void *string);
    void (*block_drop)(void *block);
    void (*set_register)(void *context, int number, uintptr_t value);
    void (*set_place)(void *context, uintptr_t address);
    void *(*catch_begin)(void *exception);
    void (*catch_end)(void);
};

/* Bits of kp_torch_layout.dropped: what is not recorded because its layout could not be proved. */
enum {
    KP_TORCH_NO_SCOPE = 1u << 0,
    KP_TORCH_NO_THREAD = 1u << 1,
    KP_TORCH_NO_SEQ = 1u << 2,
    KP_TORCH_NO_FWD = 1u << 3,
    KP_TORCH_NO_ASYNC = 1u << 4,
    KP_TORCH_NO_SCHEMA = 1u << 5, /* overload names */
    KP_TORCH_NO_INPUTS = 1u << 6, /* all of record_shapes */
    KP_TORCH_NO_TENSORS = 1u << 7,
    KP_TORCH_NO_LISTS = 1u << 8,
    KP_TORCH_NO_SCALARS = 1u << 9,
};

/* Offsets in bytes. layout.c fills every field; selfcheck.c proves or corrects it. */
struct kp_torch_layout {
    _Alignas(KP_LINE) uint32_t dropped; /* an op without inputs needs this line alone */
    uint32_t version, string_bytes;     /* major * 100 + minor; sizeof(std::string) of this build: 8 or 32 */
    uint16_t rf_thread, rf_scope, rf_fn, rf_schema, rf_seq, rf_inputs, rf_fwd, rf_handle, rf_async, rf_bytes;
    uint16_t schema_overload;
    uint16_t list_items, list_type, string_text;
    uint16_t ti_ndim, ti_dtype, ti_policy, ti_keys;
    uint64_t unstrided; /* dispatch keys of tensors that have no strides: sparse, mkldnn; ~0 when not known */
    uint8_t tag_tensor, tag_double, tag_complex, tag_int, tag_symint, tag_symfloat, tag_symbool;
    uint8_t tag_bool, tag_string, tag_list;
    const void *undefined_tensor; /* UndefinedTensorImpl singleton */
    const void *tensor_type;      /* Type object of Tensor; list_type of a TensorList points to it */
};

struct kp_torch {
    struct kp_torch_api api;
    struct kp_torch_layout layout;
    char version_text[24];
};
/* --- torch_state.c --- */
extern struct kp_torch kp_torch;                              /* filled by attach, constant afterwards */
extern bool kp_torch_marks_ops;                               /* the step rule names an op, not a user range */
bool kp_torch_peek(const void *from, void *to, size_t bytes); /* copies memory; false if it cannot be read */

/* torch_find.c: true once libtorch_cpu is loaded and initialised; fills the api. Until then it only reads dlpi_adds. */
bool kp_torch_find(struct kp_torch_api *api);
/* version.c: major * 100 + minor, 0 if unknown. `text` gets the version as torch prints it. */
uint32_t kp_torch_version(const struct kp_torch_api *api, uint32_t string_bytes, char *text, size_t text_bytes);
void *kp_torch_symbol(const char *symbol); /* torch_find.c: of libtorch_cpu, or of a library it links; NULL: none */
bool kp_torch_has(const char *symbol);
/* layout.c: the layout of a known version; a newer one gets that of the newest known. */
void kp_torch_layout_make(struct kp_torch_layout *layout, uint32_t version, uint32_t string_bytes);
enum { KP_TORCH_OLDEST = 113, KP_TORCH_NEWEST = 215 };
static inline bool kp_torch_is_known(uint32_t version)
{
    return version == KP_TORCH_OLDEST || (version >= 200 && version <= KP_TORCH_NEWEST);
}
/* fork_lock.c: the mutex of torch's callback list. */
void kp_torch_lock_find(const struct kp_torch_api *api); /* once, after find */
bool kp_torch_lock_take(void);                           /* before fork; waits 5 s at most. true: held, or no mutex */
void kp_torch_lock_give(void);                           /* only after true; in the parent and in the child */
/* selfcheck.c: proves the layout against the live library; sets dropped. */
void kp_torch_selfcheck(const struct kp_torch_api *api, struct kp_torch_layout *layout);
void kp_torch_selfcheck_values(const struct kp_torch_api *api, struct kp_torch_layout *layout);

/* slots.c: the observer contexts that a start callback gives to torch. */
enum { KP_TORCH_SLOTS = 32 };
struct kp_torch_slot {
    _Alignas(KP_LINE) const void *vptr; /* torch calls the destructor through it */
    struct kp_thread *owner;            /* it belongs to this thread's pool */
    struct kp_torch_slot *next;
    struct kp_rec_op *rec; /* its end time is filled in at the op's end; NULL: not recorded */
    uint64_t start;        /* of rec, which the caches may have lost by then */
    uint32_t cycle;        /* the cycle of `rec`; in a later cycle `rec` is void, its chunk was taken back */
    uint32_t mark;         /* step mark of the range, 0: none */
    uint32_t phase;        /* of the phase that began with the range, the depth + 1 (kp_run_phase_end); 0: none */
    uint32_t script;       /* of a module of TorchScript: how deep it lies in others, from 1 on; 0: it is none */
    uint64_t around;       /* of forwardline.c, where that is wanted */
};
/* Lies in kp_thread.near. The idle slots hang on the thread's source_state, which the owner's thread alone uses. */
struct kp_torch_pool {
    _Alignas(KP_LINE) _Atomic(struct kp_torch_slot *) returned; /* slots that other threads gave back */
    char *buffer;                                               /* of script_modules.c; NULL: not allocated yet */
    bool has_first;                                             /* `first` was handed out */
    struct kp_torch_slot first[KP_TORCH_SLOTS];
};
_Static_assert(sizeof(struct kp_torch_pool) <= sizeof(((struct kp_thread *)0)->near),
               "a thread's state holds its pool");
static inline struct kp_torch_pool *kp_torch_pool_of(struct kp_thread *t)
{
    return (struct kp_torch_pool *)(void *)t->near;
}
KP_COLD struct kp_torch_slot *kp_torch_slot_take_slowly(struct kp_thread *t);
/* Returns NULL, and counts a loss, when memory is out. */
static inline struct kp_torch_slot *kp_torch_slot_take(struct kp_thread *t)
{
    struct kp_torch_slot *slot = t->source_state[KP_STATE_TORCH];
    if (KP_UNLIKELY(!slot)) return kp_torch_slot_take_slowly(t);
    t->source_state[KP_STATE_TORCH] = slot->next;
    return slot;
}

/* ops.c: the callbacks. A start callback returns its `context`. */
KP_HOT void **kp_torch_op_start(void **context, const uint8_t *rf);
KP_HOT void kp_torch_op_end(const uint8_t *rf, struct kp_torch_slot *slot);
void **kp_torch_step_start(void **context, const uint8_t *rf);
void kp_torch_step_end(const uint8_t *rf, struct kp_torch_slot *slot);
/* memory.c: taps torch's allocators; the taps are never removed. Once, after find. */
void kp_torch_memory_attach(const struct kp_torch_api *api, bool is_oom_watched);
void kp_torch_memory_window(uint64_t begin_ticks); /* lists what was allocated before a window, once for each */
/* opnames.c */
KP_HOT uint32_t kp_torch_name_find(struct kp_thread *t,
                                   const uint8_t *rf);                   /* for a name that the thread's cache lacks */
KP_COLD uint32_t kp_torch_step_mark(const uint8_t *rf, bool user_scope); /* 0: no step mark */
/* inputs.c: encodes an op's inputs at `at`. Returns the address behind them, NULL if they do not fit before `end`. */
KP_HOT uint8_t *kp_torch_inputs_encode(const struct kp_torch_layout *layout, const uint8_t *rf, const void *arguments,
                                       uint8_t *at, uint8_t *end, uint32_t *count);
/*
 * Appends the inputs (count, entries) to the OP record at *rec, whose fixed part takes `head_bytes`. May move the
 * record to another chunk. Returns the record's whole size, 0 when the inputs are too large (counted).
 */
KP_HOT uint32_t kp_torch_inputs_put(struct kp_thread *t, uint64_t gate, const uint8_t *rf, uint8_t **rec,
                                    uint32_t head_bytes);

/* torch_comms.c: the arguments of collectives. */
void kp_torch_comms_attach(const struct kp_torch_api *api, const struct kp_torch_layout *layout); /* once, after find */
extern _Atomic uint32_t kp_torch_comms_id; /* of "record_param_comms"; 0: not interned yet; UINT32_MAX: never read */
KP_COLD uint32_t kp_torch_comms_intern(struct kp_thread *t);         /* sets and returns kp_torch_comms_id; never 0 */
void kp_torch_comms_forget(void);                                    /* clears the id, for a new spool */
KP_COLD void kp_torch_comms_put(struct kp_thread *t, uint64_t gate); /* a COMMS record, if it is in a collective */

/* script_modules.c: the "Module Hierarchy" of TorchScript, for KPROF_WITH_MODULES. */
void kp_torch_modules_attach(const struct kp_torch_api *api, const char *version); /* once, after find */
uint32_t kp_torch_modules_id(struct kp_thread *t); /* string id; 0: the calling thread runs no TorchScript */
void *kp_torch_call_caught(void (*fn)(void *), void *argument); /* returns the C++ exception that fn threw, or NULL */

/* Begins the range of a RecordFunction that api->make built. The text must stay until it ends. */
static inline void kp_torch_before(const struct kp_torch_api *api, void *rf, const char *name, int64_t seq)
{
    if (api->before_view)
        api->before_view(rf, (struct kp_torch_view){.len = __builtin_strlen(name), .text = name}, seq);
    else api->before_text(rf, name, seq);
}

static inline uint64_t kp_torch_word(const void *base, size_t offset)
{
    return *(const uint64_t *)((const uint8_t *)base + offset);
}
static inline const void *kp_torch_pointer(const void *base, size_t offset)
{
    return *(const void *const *)((const uint8_t *)base + offset);
}

/* Is `name` the id of "record_param_comms", the op around each collective? */
static inline bool kp_torch_is_comms(struct kp_thread *t, uint32_t name)
{
    uint32_t id = kp_load_relaxed(&kp_torch_comms_id);
    if (__builtin_expect(!id, 0)) id = kp_torch_comms_intern(t);
    return __builtin_expect(name == id, 0);
}

/* Id of an op's name: from the thread's cache by the address of its schema, else by its text. */
static inline uint32_t kp_torch_name_id(struct kp_thread *t, const uint8_t *rf)
{
    const struct kp_torch_layout *l = &kp_torch.layout;
    if (KP_LIKELY(!(l->dropped & KP_TORCH_NO_SCHEMA) && rf[l->rf_schema] == 1)) {
        uint32_t id = kp_name_cached(t, kp_torch_pointer(rf, l->rf_fn));
        if (__builtin_expect(id != 0, 1)) return id;
    }
    return kp_torch_name_find(t, rf);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * script_modules.c - asks torch's interpreter in which method of which TorchScript module an op runs
 *
 * Called by: ops.c when an op starts, with KPROF_WITH_MODULES (inside a hook); torch_source.c at attach
 * Owns:      a buffer per thread that runs TorchScript
 * Locks:     none. Memory: only that buffer; torch allocates the answer, and drop() frees it.
 * On fail:   no text; the op itself is recorded. A torch that lacks a function needed is logged once: never a text.
 *
 * torch::jit::currentModuleHierarchy() is C++. It returns a std::vector<std::string> in memory that the caller
 * provides, and may throw (out of memory, a node it does not know). kp_torch_call_caught catches the exception. The
 * personality routine of its frame, kp_torch_catch, makes the unwinder resume behind the call. If there is no
 * TorchScript the vector is empty: three words.
 */
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

enum { TEXT_BYTES = 8192 };

/* std::vector<std::string>; each string takes 8 or 32 bytes. */
struct texts {
    uint8_t *begin, *end, *room_end;
};

static bool is_usable;

void kp_torch_modules_attach(const struct kp_torch_api *api, const char *version)
{
    is_usable = api->modules && api->text_drop && api->block_drop && api->set_register && api->set_place &&
                api->catch_begin && api->catch_end;
    if (!is_usable) kp_log(0, "torch %s has no currentModuleHierarchy: recorded without Module Hierarchy", version);
}

/* ---- exceptions ---- */

/* Numbers of the C++ ABI: _UA_*, _URC_* and a register. */
enum {
    SEARCHING = 1,
    IS_HANDLER = 4,
    IS_FORCED = 8,
    FOUND = 6,
    INSTALL = 7,
    GO_ON = 8,
    REGISTER_RESULT = 0 /* rax, x0 */
};

extern const char kp_torch_landing[] __attribute__((visibility("hidden")));
int kp_torch_catch(int version, int actions, uint64_t class, void *exception, void *context);

/* Personality routine of kp_torch_call_caught: catches all but forced unwinding (pthread_exit, cancellation). */
__attribute__((visibility("hidden"), used)) int kp_torch_catch(int version, int actions, uint64_t class,
                                                               void *exception, void *context)
{
    (void)version, (void)class;
    if (actions & IS_FORCED) return GO_ON;
    if (actions & SEARCHING) return FOUND;
    if (!(actions & IS_HANDLER)) return GO_ON;
    kp_torch.api.set_register(context, REGISTER_RESULT, (uintptr_t)exception);
    kp_torch.api.set_place(context, (uintptr_t)kp_torch_landing);
    return INSTALL;
}

/* void *kp_torch_call_caught(void (*fn)(void *), void *place) returns the exception, or NULL. fn returns its object in
 * `place`. */
#define CALL_CAUGHT_BEGIN                              \
    ".pushsection .text\n"                             \
    ".balign 16\n"                                     \
    ".hidden kp_torch_call_caught, kp_torch_landing\n" \
    ".globl kp_torch_call_caught, kp_torch_landing\n"  \
    ".type kp_torch_call_caught, %function\n"          \
    "kp_torch_call_caught:\n"                          \
    "    .cfi_startproc\n"                             \
    "    .cfi_personality 0x1b, kp_torch_catch\n" /* 4 bytes, relative: no relocation */
#define CALL_CAUGHT_END                                      \
    "    .cfi_endproc\n"                                     \
    ".size kp_torch_call_caught, . - kp_torch_call_caught\n" \
    ".popsection\n"

#if defined(__x86_64__)
__asm__(CALL_CAUGHT_BEGIN "    push %rbp\n"
                          "    .cfi_def_cfa_offset 16\n"
                          "    .cfi_offset %rbp, -16\n"
                          "    mov %rsp, %rbp\n"
                          "    .cfi_def_cfa_register %rbp\n"
                          "    mov %rdi, %rax\n"
                          "    mov %rsi, %rdi\n"
                          "    call *%rax\n"
                          "    xor %eax, %eax\n"
                          "kp_torch_landing:\n" /* the exception in rax */
                          "    endbr64\n"
                          "    pop %rbp\n"
                          "    .cfi_def_cfa %rsp, 8\n"
                          "    ret\n" CALL_CAUGHT_END);
#elif defined(__aarch64__)
__asm__(CALL_CAUGHT_BEGIN "    hint #34\n" /* bti c */
                          "    stp x29, x30, [sp, #-16]!\n"
                          "    .cfi_def_cfa_offset 16\n"
                          "    .cfi_offset 29, -16\n"
                          "    .cfi_offset 30, -8\n"
                          "    mov x29, sp\n"
                          "    mov x9, x0\n"
                          "    mov x8, x1\n" /* C++ returns objects at x8 */
                          "    mov x0, x1\n" /* argument of a C function (tests) */
                          "    blr x9\n"
                          "    mov x0, #0\n"
                          "kp_torch_landing:\n" /* the exception in x0 */
                          "    hint #36\n"      /* bti j */
                          "    ldp x29, x30, [sp], #16\n"
                          "    .cfi_restore 29\n"
                          "    .cfi_restore 30\n"
                          "    .cfi_def_cfa_offset 0\n"
                          "    ret\n" CALL_CAUGHT_END);
#else
#error "how C++ returns objects here is not known"
#endif

/* ---- the text ---- */

/* Joins the texts as torch.profiler does: a point behind each. A text that does not fit ends the list. */
static size_t join(char *to, const struct texts *texts)
{
    size_t used = 0;
    for (const uint8_t *s = texts->begin; s != texts->end; s += kp_torch.layout.string_bytes) {
        const char *text = kp_torch_pointer(s, 0);
        /* The older std::string keeps its length in front of the characters. */
        const size_t len = kp_torch.layout.string_bytes == 32 ? kp_torch_word(s, 8) : kp_torch_word(text - 24, 0);
        if (len >= TEXT_BYTES - used) break;
        memcpy(to + used, text, len);
        used += len;
        to[used++] = '.';
    }
    return used;
}

static void drop(struct texts *texts)
{
    for (uint8_t *s = texts->begin; s != texts->end; s += kp_torch.layout.string_bytes) kp_torch.api.text_drop(s);
    if (texts->begin) kp_torch.api.block_drop(texts->begin);
}

static __attribute__((noinline)) uint32_t intern(struct kp_thread *t, struct texts *texts)
{
    char **buffer = &kp_torch_pool_of(t)->buffer;
    uint32_t id = 0;
    if (!*buffer) *buffer = kp_arena_alloc(TEXT_BYTES);
    if (*buffer) id = kp_name_intern(t, *buffer, (uint32_t)join(*buffer, texts));
    drop(texts);
    return id;
}

static uint32_t ask(struct kp_thread *t)
{
    struct texts texts = {0};
    void *thrown = kp_torch_call_caught(kp_torch.api.modules, &texts);
    if (__builtin_expect(thrown != NULL, 0)) {
        kp_torch.api.catch_begin(thrown);
        kp_torch.api.catch_end();
        return 0;
    }
    return texts.begin == texts.end ? 0 : intern(t, &texts);
}

/* kp_in_profiler keeps torch's allocations for the answer out of the host's malloc records. */
uint32_t kp_torch_modules_id(struct kp_thread *t)
{
    if (!is_usable) return 0;
    const bool was_ours = kp_in_profiler;
    kp_in_profiler = true;
    const uint32_t id = ask(t);
    kp_in_profiler = was_ours;
    return id;
}

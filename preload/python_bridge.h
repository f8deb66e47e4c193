// SPDX-License-Identifier: Apache-2.0
/*
 * python_bridge.h - what a source may ask about the Python interpreter on its thread
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_hot.h"

/* Looks for an interpreter in this process. Call it before the functions below, outside hooks, one call at a time; it
 * may be repeated. */
void kp_caller_find(void);
/*
 * Inside a hook, at the end of a range of Optimizer.step: the optimizer, as a value with the bit KP_STEP_IDENTITY. One
 * object always has one value. An object created in the memory of a freed one may have its value, too;
 * kp_steps_optimizer_gone was called in between. 0: not known.
 */
uint64_t kp_caller_optimizer(void);
/* Was that object freed? True from the moment of its free, until its memory is used by an object of its class. */
bool kp_caller_is_gone(uint64_t optimizer);

/* Inside a hook: the calling thread's Python call stack as an id (collector/format/kp_python.h). 0: none, or it cannot
 * be read. */
struct kp_thread;
uint32_t kp_caller_stack(struct kp_thread *thread);
/* Inside a hook, where Python's calls are recorded: the line that the innermost call of Python runs, as an id
 * (kp_python.h). 0: a call of C is open in it, whose site has the line, or it cannot be read. */
uint32_t kp_caller_line(struct kp_thread *thread, uint64_t gate);
/* kp_caller_stack for a thread that may be anywhere, as inside malloc. 0 also when the interpreter ends. With
 * KPROF_MALLOC=trace alone. */
uint32_t kp_caller_stack_anywhere(struct kp_thread *thread);
/* Does the interpreter end, and free what the program kept? False where stacks are not read. */
bool kp_caller_is_ending(void);

/*
 * callsite.c: the line of the program that the calling thread is called from, as a number below KP_CALLSITES, for a
 * thread inside a call that Python made. 0: none, or not known. With KPROF_ON_OOM alone.
 */
enum { KP_CALLSITES = 4096 };
struct kp_callsite {
    int line;
    const char *category; /* of its blocks: "activations", "gradients", "optimizer state", by what calls it; "": none */
    char file[200], function[64];
    char module[96]; /* "Net.Block.Linear": classes of nn.Modules around it, by their forward; "": none */
};
bool kp_callsites_setup(void); /* maps the tables; false: no memory */
KP_HOT uint32_t kp_callsite(void);
uint32_t kp_callsite_gradient(uint32_t site); /* the same line for the gradients of what it computed; 0: none */
const struct kp_callsite *kp_callsite_get(uint32_t number); /* NULL: none */

/* Whether Python and pip put files there, and no program; is it a file of the program? */
static inline bool kp_pyfile_is_installed(const char *path)
{
    return __builtin_strstr(path, "site-packages/") || __builtin_strstr(path, "dist-packages/") ||
           __builtin_strstr(path, "/lib/python3") || __builtin_strstr(path, "/lib64/python3");
}
static inline bool kp_pyfile_is_own(const char *file)
{
    return file[0] && file[0] != '<' && !kp_pyfile_is_installed(file);
}

/* The process groups of torch.distributed as JSON, as they were when the window began or warmed up. NULL: none. With
 * KPROF_EXECUTION_TRACE alone. The text stays. */
const char *kp_caller_groups(void);

/*
 * applied.c: inside a hook, where the op of a Python autograd function starts. The object that the calling thread
 * applies the function `op` to, in the order of its call; NULL: this is no such op. Asked once. Until the hook ends.
 */
enum kp_applied_kind {
    KP_APPLIED_LEFT_OUT, /* torch.profiler does not show it */
    KP_APPLIED_NONE,     /* shown without a value: None, tuples, dicts */
    KP_APPLIED_BOOL,
    KP_APPLIED_INT,
    KP_APPLIED_DOUBLE,
    KP_APPLIED_COMPLEX,
    KP_APPLIED_LIST,
    KP_APPLIED_TENSOR
};
struct kp_applied {
    enum kp_applied_kind kind;
    uint32_t count;     /* of a list */
    const void *object; /* the list */
    int64_t integer;
    double real, imaginary;
};
extern _Thread_local const void *kp_applied_arguments /* NULL: there is nothing to ask */
    __attribute__((tls_model("initial-exec")));
const void *kp_applied_to(const char *op);
uint32_t kp_applied_count(const void *arguments);
void kp_applied_get(const void *arguments, uint32_t at, struct kp_applied *out);
void kp_applied_item(const struct kp_applied *list, uint32_t at, struct kp_applied *out); /* one of a list's items */

/* lastexception.c, any thread: Python's main thread is to note the exception that ends the program, whether or not
 * anything is recorded. False: not asked yet. */
bool kp_lastexception_ask(void);
/* At exit, or before _exit: if a SystemExit asked for this status, the exception that was handled ends the program.
 * Returns " at train.py:41 main (in argparse.py:2640 exit)", the line that made it, or "". */
const char *kp_lastexception_leave(int status);

/*
 * pywhere.c: where the threads of Python stand, for a helper thread, which is none of them. It takes no lock and stops
 * no thread. One call at a time.
 */
enum { KP_PYWHERE_FRAMES = 128, KP_PYWHERE_TEXT = 200 };
struct kp_pywhere_thread {
    uint64_t state; /* its PyThreadState */
    uint32_t tid;   /* 0: not known */
};
struct kp_pywhere_frame {
    int line; /* below 0: it has none */
    char file[KP_PYWHERE_TEXT], function[KP_PYWHERE_TEXT];
};
struct kp_pywhere_stack {
    uint32_t count;                                    /* 0: it runs no Python code */
    bool is_cut, has_moved;                            /* further out there are more; the thread ran meanwhile */
    struct kp_pywhere_frame frames[KP_PYWHERE_FRAMES]; /* innermost first */
};
/* Lists the threads of the main interpreter. NULL, or why they cannot be read; no Python: NULL, and no thread. */
const char *kp_pywhere_threads(struct kp_pywhere_thread *out, uint32_t most, uint32_t *count);
void kp_pywhere_stack(const struct kp_pywhere_thread *thread, struct kp_pywhere_stack *out);
/* The innermost frame of the calling thread, which may be in a signal handler. False: it has none that can be read. */
bool kp_pywhere_here(struct kp_pywhere_frame *out);
bool kp_pywhere_own(struct kp_pywhere_frame *out); /* the innermost of the program's own */
/* endplace.c: writes the calling thread's " at train.py:12 main", and behind it " (in argparse.py:2620 exit)" if it
 * runs a library; "": none that can be read. Also in a signal handler. */
#define KP_ENDPLACE_WITHIN " (in "
enum { KP_ENDPLACE_BYTES = 400 };
void kp_endplace_put(char *out, size_t bytes);
/* A thread of a child with the same interpreter; `tid` is `pid` of its main one. No frame: it cannot be read. True: the
 * child was forked and runs no other program. */
bool kp_pywhere_child(uint32_t pid, uint32_t tid, struct kp_pywhere_stack *out);
/* The thread that holds the GIL for which another waits at this futex. 0: that is no GIL, or no thread holds it. */
uint32_t kp_pywhere_gil_holder(uintptr_t futex, const struct kp_pywhere_thread *threads, uint32_t count);
uint32_t kp_pywhere_version(void); /* 311: Python 3.11; 0: none that is known */

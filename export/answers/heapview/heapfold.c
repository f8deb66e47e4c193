// SPDX-License-Identifier: Apache-2.0
/* heapfold.c - which frames of a block's call stack are Python's interpreter, calling one function after another */
#include "export/answers/heapview/heapfold.h"

#include <string.h>

#include "collector/base/sys/kp_path.h"

/* By their beginnings, since compilers add endings (.lto_priv.0). Functions that begin with Py are its in any
 * module. */
static const char *const calls[] = {"_PyEval_",
                                    "PyEval_",
                                    "_PyFunction_",
                                    "_PyObject_Call",
                                    "_PyObject_Fast",
                                    "_PyObject_Vectorcall",
                                    "_PyObject_MakeT",
                                    "PyObject_Call",
                                    "PyObject_Vectorcall",
                                    "PyVectorcall_",
                                    "_PyVectorcall",
                                    "_PyGen_",
                                    "_PyRun_",
                                    "PyRun_",
                                    "Py_RunMain",
                                    "Py_BytesMain",
                                    "Py_Main",
                                    "method_vectorcall",
                                    "cfunction_",
                                    "type_call",
                                    "slot_tp_",
                                    "object_vacall",
                                    "function_code_",
                                    "builtin_exec",
                                    "run_mod",
                                    "run_eval_code_obj",
                                    "pyrun_",
                                    "pymain_",
                                    "gen_send_ex",
                                    "wrapperdescr_",
                                    "vectorcall_",
                                    "method_call",
                                    "do_call_core",
                                    "call_function",
                                    "partial_vectorcall"};

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool is_call(const char *function)
{
    if (strstr(function, "PyObject_Calloc")) return false; /* allocates */
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (begins(function, calls[i])) return true;
    return false;
}

/* libpython3.11.so.1.0, python3, python3.11d. */
static bool is_interpreter(const char *path)
{
    const char *const name = kp_path_base(path);
    if (begins(name, "libpython")) return true;
    if (!begins(name, "python")) return false;
    const char *const end = name + 6 + strspn(name + 6, "0123456789.");
    return !end[strspn(end, "dmut")];
}

void kp_heapfold_pass(struct kp_heapfold *f) { f->is_calls = true; }

bool kp_heapfold_take(struct kp_heapfold *f, const char *module, const char *function)
{
    const bool calls_on = function && is_call(function);
    if (f->is_all) return false;
    if (!is_interpreter(module) && !(calls_on && (begins(function, "Py") || begins(function, "_Py")))) {
        f->is_calls = true;
        return false;
    }
    f->is_calls |= calls_on;
    f->run += f->is_calls;
    return f->is_calls;
}

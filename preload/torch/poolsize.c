// SPDX-License-Identifier: Apache-2.0
/*
 * poolsize.c - notes in the spool how many threads torch computes an op with: the report and kprof advise tell these
 * from other threads of the program
 *
 * Called by: torch_source.c (attach; a step ends, on its thread; before a trace is written)
 * Owns:      the number
 * Locks:     none
 * On fail:   there is no note, and kprof advise guesses by OMP_NUM_THREADS and by the threads that ran
 * Safe in:   a callback of torch: libgomp reads a variable of the calling thread
 *
 * torch.set_num_threads() sets OpenMP's number for the calling thread, and torch itself sets it before its first op
 * that several threads share. Only libgomp of the runtimes of OpenMP is asked, which comes with torch's wheels: others
 * may start up in this call.
 */
#include "preload/torch/poolsize.h"

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/hook/hook.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

static int (*threads_most)(void); /* set once, before the first look */
static _Atomic uint32_t looked, noted;

void kp_torch_poolsize_attach(void)
{
    void *const found = kp_torch_symbol("omp_get_max_threads");
    if (found && kp_library_has("libgomp", found)) *(void **)&threads_most = found;
}

void kp_torch_poolsize_look(void)
{
    const int threads = threads_most ? threads_most() : 0;
    if (threads > 0) kp_store_relaxed(&looked, (uint32_t)threads);
}

void kp_torch_poolsize_note(void)
{
    char text[16];
    const uint32_t threads = kp_load_relaxed(&looked);
    if (threads == kp_load_relaxed(&noted)) return;
    kp_fmt(text, sizeof text, "%u", threads);
    if (kp_record_note("torch_threads", text) == 0) kp_store_relaxed(&noted, threads);
}

void kp_torch_poolsize_forget(void)
{
    kp_store_relaxed(&looked, 0);
    kp_store_relaxed(&noted, 0);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * gate.c - the gate word and the page it lives on
 *
 * Until kp_gate_init succeeds the pointer shows a constant zero word: hooks see "off", and kp_gate_set does nothing.
 */
#include "collector/base/kp_gate.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_poison.h"

static _Atomic uint64_t shut; /* never written */
_Atomic uint64_t *kp_gate_word = &shut;

int kp_gate_init(void)
{
    void *page;
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (kp_gate_word != &shut) return 0;
    int rc = kp_io_mmap(&page, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rc < 0) return rc;
    rc = kp_io_fail_point("wipeonfork");
    if (rc == 0 && madvise(page, bytes, MADV_WIPEONFORK) != 0) rc = -errno;
    if (rc < 0) {
        /* without the wipe a child made by a raw clone would go on recording into its parent's file */
        kp_io_munmap(page, bytes);
        return rc;
    }
    kp_gate_word = page;
    return 0;
}

void kp_gate_set(uint64_t gate)
{
    if (kp_gate_word == &shut) return;
    /* pairs with: kp_gate.h:kp_gate_get */
    kp_store_release(kp_gate_word, gate);
}

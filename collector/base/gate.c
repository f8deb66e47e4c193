// SPDX-License-Identifier: Apache-2.0
/*
 * gate.c - the gate word and its page
 *
 * Until kp_gate_init succeeds, the pointer leads to a constant zero word: hooks read "off", and kp_gate_set does
 * nothing.
 */
#include "collector/base/kp_gate.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_hot.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

static _Atomic uint64_t shut; /* never written */
KP_HOT_DATA _Atomic uint64_t *kp_gate_word = &shut;

/*
 * Finds emulators that accept every advice and follow none (qemu-user 7.2). A kernel refuses MADV_WIPEONFORK for a
 * shared page.
 */
static int wipe_prove(size_t bytes)
{
    void *page;
    int rc = kp_io_mmap(&page, bytes, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rc < 0) return rc;
    rc = kp_fail_point("wipeproof");
    if (rc == 0 && kp_io_madvise(page, bytes, MADV_WIPEONFORK) == 0) rc = -EOPNOTSUPP;
    kp_io_munmap(page, bytes);
    return rc;
}

static int wipe_ask(void *page, size_t bytes)
{
    int rc = kp_fail_point("wipeonfork");
    if (rc == 0) rc = kp_io_madvise(page, bytes, MADV_WIPEONFORK);
    return rc ? rc : wipe_prove(bytes);
}

int kp_gate_init(void)
{
    void *page;
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (kp_gate_word != &shut) return 0;
    int rc = kp_io_mmap(&page, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rc < 0) return rc;
    rc = wipe_ask(page, bytes);
    /* For tests under an emulator: they call fork() only, and then boot.c's handler shuts the gate. */
    if (rc < 0 && kp_fail_point("unwiped") < 0) rc = 0;
    if (rc < 0) {
        /* if it were not wiped, a child made by a raw clone would record into its parent's file */
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

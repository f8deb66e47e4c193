// SPDX-License-Identifier: Apache-2.0
/* support.c - small helpers shared by the unit tests */
#include "test/support/support.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collector/base/sys/kp_fail.h"

static pid_t maker;

/* As the library's constructor does: where an emulator lacks something, test/arm64 says so in KPROF_TEST_FAIL. */
__attribute__((constructor)) static void failures_begin(void) { kp_fail_set(getenv("KPROF_TEST_FAIL")); }

static int entry_remove(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

/* Runs when the test program ends: the folder goes when every test passed. */
static void tmpdir_remove(int status, void *dir)
{
    if (status == 0 && getpid() == maker) nftw(dir, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

const char *kp_test_tmpdir(void)
{
    static char dir[256];
    const char *base = getenv("TMPDIR");
    if (dir[0]) return dir;
    snprintf(dir, sizeof dir, "%s/kprof-unit-XXXXXX", base && *base ? base : "/tmp");
    if (mkdtemp(dir) == NULL) return NULL;
    maker = getpid();
    on_exit(tmpdir_remove, dir);
    return dir;
}

bool kp_test_has_other_users(void)
{
    char path[300];
    snprintf(path, sizeof path, "%s/of-another", kp_test_tmpdir());
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const bool has = fd >= 0 && geteuid() == 0 && fchown(fd, 4242, 4242) == 0;
    if (fd >= 0) close(fd);
    unlink(path);
    return has;
}

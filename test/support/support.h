// SPDX-License-Identifier: Apache-2.0
/* support.h - small helpers shared by the unit tests */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A fresh folder for this test program, made on first use; left behind on purpose when a test fails. */
const char *kp_test_tmpdir(void);

/* Whether files can be given to other users: by root, unless of a user namespace that has one user. */
bool kp_test_has_other_users(void);
#define KP_NEEDS_OTHER_USERS()                                                   \
    do {                                                                         \
        if (!kp_test_has_other_users()) KP_SKIP("needs root, and another user"); \
    } while (0)

/* A test that cannot run says why. */
#define KP_SKIP(why)                         \
    do {                                     \
        print_message("skipped: %s\n", why); \
        skip();                              \
    } while (0)

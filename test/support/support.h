// SPDX-License-Identifier: Apache-2.0
/* support.h - small helpers shared by the unit tests */
#ifndef KP_TEST_SUPPORT_H
#define KP_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A fresh folder for this test program, made on first use; left behind on purpose when a test fails. */
const char *kp_test_tmpdir(void);

/* A test that cannot run says why. */
#define KP_SKIP(why)                      \
    do {                                  \
        print_message("skipped: %s\n", why); \
        skip();                           \
    } while (0)

#endif

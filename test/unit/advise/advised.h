// SPDX-License-Identifier: Apache-2.0
/* advised.h - what is advised of a trace of a few events, for tests of the rules */
#ifndef KP_TEST_ADVISED_H
#define KP_TEST_ADVISED_H

#include "export/advise/advise.h"
#include "test/unit/report/little_trace.h"

#define WORKERS "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

static struct kp_advice advise(struct little *t)
{
    struct kp_advice advice;
    assert_int_equal(choose(t, &everything), 0);
    kp_advice_make(&advice, &t->tree, &t->chosen);
    return advice;
}

#define LITTLE(test) cmocka_unit_test_setup_teardown(test, little_setup, little_teardown)

#endif

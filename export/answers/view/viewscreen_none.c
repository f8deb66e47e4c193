// SPDX-License-Identifier: Apache-2.0
/* viewscreen_none.c - in place of viewscreen.c where ncurses was not there when kprof was built */
#include <errno.h>
#include <stdio.h>

#include "export/answers/view/view.h"

int kp_view_run(struct kp_tree *tree, const struct kp_advice *advice, const char *label, struct kp_view_among *among,
                char *why, size_t why_bytes)
{
    (void)tree;
    (void)advice;
    (void)among;
    (void)label;
    snprintf(why, why_bytes,
             "this kprof was built without ncurses (libncurses-dev); kprof report and kprof html show it");
    return -ENOSYS;
}

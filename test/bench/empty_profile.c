// SPDX-License-Identifier: Apache-2.0
/* empty_profile.c - a profile function that does nothing: what is left is CPython's own part of a call that is
 * profiled */
__attribute__((visibility("default"))) int empty_profile(void *object, void *frame, int what, void *arg);

int empty_profile(void *object, void *frame, int what, void *arg)
{
    (void)object, (void)frame, (void)what, (void)arg;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * empty_profile.c - functions that do nothing: what is left is CPython's own part of a profiled call, and torch's own
 * part of a pair of callbacks
 */
#define SEEN __attribute__((visibility("default")))
SEEN int empty_profile(void *object, void *frame, int what, void *arg);
SEEN void **empty_start(void **context, const void *range);
SEEN void empty_end(const void *range, void *context);
SEEN void **counted_start(void **context, const void *range);
SEEN extern long counted;

long counted;

int empty_profile(void *object, void *frame, int what, void *arg)
{
    (void)object, (void)frame, (void)what, (void)arg;
    return 0;
}

/* C++ returns an object in memory that the caller provides: x86-64 passes and returns its address. */
void **empty_start(void **context, const void *range)
{
    (void)range;
    *context = 0;
    return context;
}

void **counted_start(void **context, const void *range)
{
    (void)range;
    counted++;
    *context = 0;
    return context;
}

void empty_end(const void *range, void *context) { (void)range, (void)context; }

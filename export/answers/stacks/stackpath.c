// SPDX-License-Identifier: Apache-2.0
/* stackpath.c - turns texts of call stacks, "inner;outer;", into paths of a call tree */
#include "export/answers/stacks/stackpath.h"

#include <string.h>

#include "export/read/frames/framename.h"
#include "export/read/frames/workerframe.h"
#include "export/read/store/stringtable.h"

size_t kp_stackpath_bytes(const char *stack)
{
    const size_t bytes = strlen(stack);
    return kp_workerframe_since_fork(stack, bytes && stack[bytes - 1] == ';' ? bytes - 1 : bytes);
}

/* Does a frame begin where the last `tail` bytes do? */
static bool is_edge(const char *stack, size_t bytes, size_t tail)
{
    return tail == bytes || stack[bytes - tail - 1] == ';';
}

size_t kp_stackpath_common(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    size_t same = 0;
    while (same < a_bytes && same < b_bytes && a[a_bytes - 1 - same] == b[b_bytes - 1 - same]) same++;
    while (same && !(is_edge(a, a_bytes, same) && is_edge(b, b_bytes, same))) same--;
    return same;
}

/* Copies the frame that ends at `end` into `out`. Returns where it begins. */
static size_t frame_before(struct kp_frametext *out, const char *stack, size_t end)
{
    size_t from = end;
    while (from > 0 && stack[from - 1] != ';') from--;
    out->data = kp_kineto_grow(out->data, &out->capacity, end - from + 1, 1);
    memcpy(out->data, stack + from, end - from);
    out->data[end - from] = 0;
    return from;
}

uint32_t kp_stackpath_add(struct kp_calltree *tree, uint32_t base, const char *stack, size_t bytes)
{
    struct kp_frametext frame = {0};
    for (size_t end = bytes, from; end > 0; end = from ? from - 1 : 0) {
        from = frame_before(&frame, stack, end);
        if (from < end && !kp_framename_is_interpreter(frame.data)) base = kp_calltree_child(tree, base, frame.data);
    }
    kp_frametext_fini(&frame);
    return base;
}

uint32_t kp_stackpath_between(struct kp_calltree *tree, uint32_t base, const char *a, const char *b)
{
    const size_t a_bytes = kp_stackpath_bytes(a), b_bytes = kp_stackpath_bytes(b);
    const size_t common = kp_stackpath_common(a, a_bytes, b, b_bytes);
    base = kp_stackpath_add(tree, base, a + a_bytes - common, common);
    if (common + 1 >= a_bytes || common + 1 >= b_bytes) return base;
    struct kp_frametext of_a = {0}, of_b = {0}, text = {0};
    frame_before(&of_a, a, common ? a_bytes - common - 1 : a_bytes);
    frame_before(&of_b, b, common ? b_bytes - common - 1 : b_bytes);
    const char *both = kp_framename_between(&text, of_a.data, of_b.data);
    if (both) base = kp_calltree_child(tree, base, both);
    kp_frametext_fini(&of_a);
    kp_frametext_fini(&of_b);
    kp_frametext_fini(&text);
    return base;
}

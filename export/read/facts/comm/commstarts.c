// SPDX-License-Identifier: Apache-2.0
/*
 * commstarts.c - which op of the program started what a backend does on a thread of its own
 *
 * A backend such as gloo takes collectives in the order in which ops of torch give them, so the first op that has no
 * range yet, and has its name, started a range.
 */
#include "export/read/facts/comm/commstarts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/facts/namefacts.h"
#include "export/read/tree/chosen.h"

enum { LOOKED_AT_MOST = 64 }; /* ops: an older one started nothing, as a collective of one rank */

struct starts {
    const struct kp_tree *tree;
    int32_t *ops; /* -1: it has its range */
    size_t from, count, capacity;
};

/* The next letter of a name; 0: none. */
static int letter_next(const char **at)
{
    while (**at && !isalnum((unsigned char)**at)) ++*at;
    return **at ? tolower((unsigned char)*(*at)++) : 0;
}

/* Begins "allreduce_" with the letters of "all_reduce", underscores aside? Neither is NULL. */
static bool does_begin(const char *op, const char *range)
{
    for (int letter; (letter = letter_next(&range)) != 0;)
        if (letter_next(&op) != letter) return false;
    return true;
}

/* Behind the last colon. */
static const char *bare_name(const struct kp_tree *tree, size_t node)
{
    const char *const name = kp_kineto_text(tree->trace, kp_tree_event(tree, node)->name), *const colon =
                                                                                               strrchr(name, ':');
    return colon ? colon + 1 : name;
}

static bool is_start(const struct kp_tree *tree, size_t node)
{
    const struct kp_node *const n = &tree->nodes[node];
    return kp_tree_event(tree, node)->kind == KP_KINETO_OP && !n->is_async && !n->removed &&
           kp_node_is(tree, node, KP_NAME_COMM_OP) && !kp_node_is_in(tree, n->parent, KP_NAME_COMM_OP);
}

static bool is_range(const struct kp_tree *tree, size_t node)
{
    return kp_tree_event(tree, node)->kind == KP_KINETO_ANNOTATION && !tree->nodes[node].removed &&
           kp_node_is(tree, node, KP_NAME_COLLECTIVE);
}

/* Takes the op that started a range out of those that wait for theirs; -1: none has. */
static int32_t start_take(struct starts *s, size_t range)
{
    const char *const name = bare_name(s->tree, range);
    if (s->count - s->from > LOOKED_AT_MOST) s->from = s->count - LOOKED_AT_MOST;
    while (s->from < s->count && s->ops[s->from] < 0) s->from++;
    for (size_t i = s->from; i < s->count; i++) {
        const int32_t op = s->ops[i];
        if (op < 0 || !does_begin(bare_name(s->tree, (size_t)op), name)) continue;
        s->ops[i] = -1;
        return op;
    }
    return -1;
}

int32_t *kp_commstarts_find(const struct kp_tree *tree)
{
    struct starts s = {.tree = tree};
    int32_t *found = NULL;
    for (size_t i = 0; i < tree->count; i++) {
        if (is_start(tree, i)) *KP_KINETO_NEXT(s.ops, s.count, s.capacity) = (int32_t)i;
        if (!is_range(tree, i)) continue;
        const int32_t op = start_take(&s, i);
        if (op < 0 || kp_tree_stack(tree, &tree->nodes[i])) continue;
        if (!found) {
            found = kp_kineto_room(tree->count + 1, sizeof *found);
            for (size_t n = 0; n < tree->count; n++) found[n] = -1;
        }
        found[i] = op;
    }
    free(s.ops);
    return found;
}

/* The program's own events: neither steps nor ranges of a backend. */
static void others_find(struct kp_spans *out, const struct kp_tree *tree, const struct kp_spans *inside)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const n = &tree->nodes[i];
        if (n->removed || n->on_device || is_range(tree, i) || kp_node_is_step(tree, n)) continue;
        kp_spans_add(out, n->start_ns, n->end_ns);
    }
    kp_spans_settle(out);
    kp_spans_cut(out, inside);
}

int64_t *kp_commstarts_alone(const struct kp_tree *tree, const int32_t *starts, const struct kp_spans *inside)
{
    struct kp_spans others = {0};
    int64_t *const alone = kp_kineto_zeros(tree->count + 1, sizeof *alone);
    int64_t *const from = kp_kineto_zeros(tree->count + 1, sizeof *from);
    int64_t until_ns = INT64_MIN;
    others_find(&others, tree, inside);
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const n = &tree->nodes[i];
        if (starts[i] < 0) continue;
        const bool is_nested = n->parent >= 0 && starts[n->parent] >= 0;
        from[i] = is_nested ? from[n->parent] : n->start_ns > until_ns ? n->start_ns : until_ns;
        const int64_t begin_ns = n->start_ns > from[i] ? n->start_ns : from[i];
        if (n->end_ns > until_ns) until_ns = n->end_ns;
        if (begin_ns >= n->end_ns) continue;
        alone[i] = kp_spans_between(inside, begin_ns, n->end_ns) - kp_spans_between(&others, begin_ns, n->end_ns);
        if (is_nested) alone[n->parent] -= alone[i];
    }
    kp_spans_fini(&others);
    free(from);
    return alone;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * loadunpack.c - items that decompress what they read: in which call of which line, how often, for how much of it
 *
 * Calls of Python tell it (names.def: DECOMPRESSES). The call is the outermost one below the program's own function:
 * what it does beside, as reading a header, is of the same cause.
 */
#include "export/answers/advise/rules/load/loadwaits.h"

#include "export/read/facts/selftime.h"
#include "export/read/frames/framename.h"

#define UNPACK_SHARE 0.30 /* of the loading */
#define UNPACK_MOST 0.50  /* of it: the cause, which workers only spread */

struct unpack_call {
    int64_t ns;
    bool does;
};
struct unpack_line {
    int64_t ns;
    size_t calls;
    int32_t call; /* the first one */
};
struct unpacking {
    const struct kp_costrules *x;
    struct kp_keyindex calls; /* by node; rows: struct unpack_call */
    int64_t all_ns;
};

/* The outermost call around the node that is below the program's own function; -1: none is. */
static int32_t call_of(const struct kp_costrules *x, int32_t node, bool *does)
{
    int32_t call = -1;
    for (int32_t at = node; at >= 0 && at != x->loaders[node]; at = x->tree->nodes[at].parent) {
        const struct kp_node *const n = &x->tree->nodes[at];
        if (n->is_python && kp_ownline_function(x->tree->trace, kp_tree_call_name(x->tree, n))) return call;
        *does |= kp_node_is(x->tree, (size_t)at, KP_NAME_DECOMPRESSES);
        call = at;
    }
    return -1;
}

static void piece_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct unpacking *const u = context;
    const int64_t ns = kp_spans_between(&u->x->chosen->in_steps, from_ns, to_ns);
    bool does = false;
    if (u->x->loaders[node] < 0 || ns <= 0) return;
    u->all_ns += ns;
    const int32_t call = call_of(u->x, (int32_t)node, &does);
    if (call < 0) return;
    struct unpack_call *const row = kp_keyindex_row(&u->calls, (uint64_t)call, &(struct unpack_call){0}, sizeof *row);
    row->ns += ns;
    row->does |= does;
}

/* The line that decompresses most. */
static struct unpack_line most_of(const struct unpacking *u)
{
    const struct unpack_call *const of = u->calls.rows;
    struct kp_keyindex lines = {0};
    struct unpack_line most = {0};
    for (size_t i = 0; i < u->calls.count; i++) {
        const int32_t call = (int32_t)u->calls.keys[i];
        const uint32_t line = kp_ownline_of(u->x->tree->trace, kp_tree_stack(u->x->tree, &u->x->tree->nodes[call]));
        if (!of[i].does || !line) continue;
        struct unpack_line *const row = kp_keyindex_row(&lines, line, &(struct unpack_line){.call = call}, sizeof *row);
        row->ns += of[i].ns;
        row->calls += !(kp_tree_event(u->x->tree, (size_t)call)->flags & KP_KINETO_CONTINUED);
        if (row->ns > most.ns) most = *row;
    }
    kp_keyindex_fini(&lines);
    return most;
}

/* The line that decompresses most, and its share of loading; 0: no call does. */
static struct unpack_line unpack_find(const struct kp_costrules *x, double *share)
{
    struct unpacking u = {.x = x};
    kp_selftime_each(x->tree, piece_take, &u);
    const struct unpack_line most = most_of(&u);
    kp_keyindex_fini(&u.calls);
    *share = most.calls && u.all_ns ? (double)most.ns / (double)u.all_ns : 0;
    return most;
}

static const char *line_of(const struct kp_costrules *x, const struct unpack_line *most)
{
    struct kp_kineto *const trace = x->tree->trace;
    return kp_kineto_text(trace, kp_ownline_of(trace, kp_tree_stack(x->tree, &x->tree->nodes[most->call])));
}

const char *kp_loadunpack_most(const struct kp_costrules *x)
{
    double share;
    const struct unpack_line most = unpack_find(x, &share);
    if (share < UNPACK_MOST) return NULL;
    return KP_TEXT("decompress at %s (%.0f %% of loading)", line_of(x, &most), 100 * share);
}

const char *kp_loadunpack_text(const struct kp_costrules *x)
{
    struct kp_frametext shown = {0};
    double share;
    const struct unpack_line most = unpack_find(x, &share);
    if (share < UNPACK_SHARE) return "";
    const char *const name = kp_framename_shown(&shown, kp_costrules_name(x, most.call));
    const char *const text = KP_TEXT(
        "Items decompress what they read at %s: %s, %.3g times a step, is %.0f %% of loading. %s ", line_of(x, &most),
        name, (double)most.calls / (double)x->out->steps, 100 * share,
        strstr(name, "npyio")
            ? "Each access to an array of an .npz reads all of it: take the arrays out once, in __init__, or save .npy "
              "files for np.load(mmap_mode=\"r\")."
            : "Decompress once, before the first epoch, or store it uncompressed.");
    kp_frametext_fini(&shown);
    return text;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * eventpart.c - finds which part of a training step an event belongs to
 *
 * Data loading, backward and the optimizer show by torch's own ranges and by frames of torch's own files. Forward is
 * what runs in a call of an nn.Module or in torch.nn.functional, and each op that a backward op names as its origin.
 * Making a module, or zero_grad() of one, is no forward. The closure that an optimizer's step calls is no optimizer's.
 */
#include "export/answers/stacks/eventpart.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/frames/framename.h"
#include "export/read/facts/namefacts.h"

/* "file.py(LINE): function", or "file.py(LINE): def function", of a file that ends so: is it, and of which function? */
static const char *function_in(const char *frame, size_t bytes, const char *file)
{
    const size_t n = strlen(file);
    for (const char *at = frame; at + n < frame + bytes; at++)
        if (*at == *file && memcmp(at, file, n) == 0) {
            const char *colon = memchr(at, ':', (size_t)(frame + bytes - at));
            return colon ? kp_framename_bare(colon + 1 + (colon[1] == ' ')) : NULL;
        }
    return NULL;
}

static bool is_one_of(const char *name, const char *end, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == (size_t)(end - name) && memcmp(*names, name, strlen(*names)) == 0) return true;
    return false;
}

/* The body of a file or of a class runs when it is imported. Its functions are called for what they do. */
static bool is_import(const char *name, const char *end)
{
    while (name < end && *name == '_') name++;
    return name < end && (*name == '<' || (*name >= 'A' && *name <= 'Z'));
}

/* The part that a frame of a call stack, or a Python call, belongs to. */
static enum kp_part frame_part(const char *frame, size_t bytes)
{
    static const char *const starters[] = {"backward", "grad", "_make_grads", NULL};
    static const char *const callers[] = {"__call__", "_wrapped_call_impl", "_call_impl", "_slow_forward", NULL};
    const char *end = frame + bytes, *name;
    if (kp_framename_module(frame)) return KP_PART_FORWARD;
    if (!memchr(frame, '(', bytes)) return KP_PART_OTHER;
    if ((name = function_in(frame, bytes, "torch/utils/data/dataloader.py(")))
        return is_import(name, end) ? KP_PART_OTHER : KP_PART_LOADING;
    if ((name = function_in(frame, bytes, "torch/utils/data/_utils/")))
        return is_import(name, end) ? KP_PART_OTHER : KP_PART_LOADING;
    if ((name = function_in(frame, bytes, "torch/autograd/__init__.py(")) && is_one_of(name, end, starters))
        return KP_PART_BACKWARD;
    if ((name = function_in(frame, bytes, "torch/_tensor.py(")) && is_one_of(name, end, starters))
        return KP_PART_BACKWARD;
    if ((name = function_in(frame, bytes, "torch/nn/modules/module.py(")) && is_one_of(name, end, callers))
        return KP_PART_FORWARD;
    if ((name = function_in(frame, bytes, "torch/nn/functional.py(")))
        return is_import(name, end) ? KP_PART_OTHER : KP_PART_FORWARD;
    if ((name = function_in(frame, bytes, "torch/optim/")))
        return is_import(name, end) ? KP_PART_OTHER : KP_PART_OPTIMIZER;
    return KP_PART_OTHER;
}

/* The kind of a Python frame where a closure is looked for. The first two say nothing: other code ran it for them. */
enum frame_of { OF_UNKNOWN, OF_MACHINE, OF_CONTEXT, OF_TORCH, OF_OPTIMIZER, OF_PROGRAM };
static enum frame_of frame_of(const char *frame, size_t bytes)
{
    static const char *const others[] = {"optimizer.py(", "lr_scheduler.py(", "swa_utils.py(", NULL};
    static const char optim[] = "torch/optim/";
    if (!memmem(frame, bytes, ".py(", 4)) return OF_MACHINE;
    if (function_in(frame, bytes, "torch/utils/_contextlib.py(")) return OF_CONTEXT;
    const char *const at = memmem(frame, bytes, optim, sizeof optim - 1);
    for (size_t i = 0; at && others[i]; i++)
        if (kp_name_begins(at + sizeof optim - 1, others[i])) return OF_TORCH;
    if (at) return OF_OPTIMIZER;
    return kp_name_begins(frame, "torch/") || memmem(frame, bytes, "/torch/", 7) ? OF_TORCH : OF_PROGRAM;
}

#define IN_CLOSURE 0x80 /* beside a part: of a function of the program that an optimizer's step calls */

/* A part, or'ed with IN_CLOSURE. Frames around an optimizer that called a closure tell nothing of that. */
static uint8_t stack_part(const char *stack)
{
    const char *const end = stack + kp_workerframe_since_fork(stack, strlen(stack));
    enum kp_part best = KP_PART_OTHER;
    enum frame_of inner = OF_MACHINE;
    while (stack < end) {
        const size_t bytes = strcspn(stack, ";");
        const enum kp_part part = frame_part(stack, bytes);
        const enum frame_of of = frame_of(stack, bytes);
        if (of == OF_OPTIMIZER && inner == OF_PROGRAM) return (uint8_t)best | IN_CLOSURE;
        if (of > OF_CONTEXT) inner = of;
        if (part > best) best = part;
        stack += bytes + (stack[bytes] == ';');
    }
    return (uint8_t)best;
}

struct part_finding {
    const struct kp_tree *tree;
    uint8_t *parts;
    uint8_t *of_stack; /* by string id: what stack_part() says + 1, 0 if not looked at */
    size_t capacity;
    uint8_t *of_name; /* by string id: an enum frame_of */
    size_t names;
};

static uint8_t text_part(struct part_finding *f, uint32_t text)
{
    if (!text) return KP_PART_OTHER;
    f->of_stack = kp_kineto_grow_zeros(f->of_stack, &f->capacity, (size_t)text + 1, 1);
    if (!f->of_stack[text]) f->of_stack[text] = (uint8_t)(stack_part(kp_kineto_text(f->tree->trace, text)) + 1);
    return (uint8_t)(f->of_stack[text] - 1);
}

/* The kind of a Python call, found once for each name. */
static enum frame_of call_of(struct part_finding *f, size_t call)
{
    const uint32_t id = kp_tree_event(f->tree, call)->name;
    f->of_name = kp_kineto_grow_zeros(f->of_name, &f->names, (size_t)id + 1, 1);
    if (!f->of_name[id]) {
        const char *const name = kp_kineto_text(f->tree->trace, id);
        f->of_name[id] = (uint8_t)frame_of(name, strlen(name));
    }
    return (enum frame_of)f->of_name[id];
}

/* Is the Python call the closure that an optimizer's step calls? */
static bool is_closure(struct part_finding *f, size_t call)
{
    const struct kp_node *const nodes = f->tree->nodes;
    if (call_of(f, call) != OF_PROGRAM) return false;
    for (int32_t at = nodes[call].parent; at >= 0; at = nodes[at].parent) {
        const enum frame_of of = nodes[at].is_python ? call_of(f, (size_t)at) : OF_UNKNOWN;
        if (of > OF_CONTEXT) return of == OF_OPTIMIZER;
    }
    return false;
}

/* "CudnnConvolutionBackward", "ReluBackward1": autograd's node, of which files before 2021 tell no forward thread. */
static bool is_autograd_node(const char *name)
{
    static const char end[] = "Backward";
    size_t bytes = strlen(name);
    while (bytes && name[bytes - 1] >= '0' && name[bytes - 1] <= '9') bytes--;
    return bytes >= sizeof end && strncmp(name + bytes - strlen(end), end, strlen(end)) == 0 && !strpbrk(name, ": ");
}

static enum kp_part range_part(uint32_t is)
{
    return is & KP_NAME_LOADER ? KP_PART_LOADING : is & KP_NAME_OPTIMIZER ? KP_PART_OPTIMIZER : KP_PART_OTHER;
}

/* The kind of a node by itself: a part, or'ed with IN_CLOSURE. */
static uint8_t own_part(struct part_finding *f, size_t node)
{
    const struct kp_kineto_event *e = kp_tree_event(f->tree, node);
    const char *name = kp_kineto_text(f->tree->trace, e->name);
    const uint32_t is = kp_namefacts(f->tree->trace, e->name);
    switch (e->kind) {
    case KP_KINETO_PYTHON: return text_part(f, e->name) | (is_closure(f, node) ? IN_CLOSURE : 0);
    case KP_KINETO_ANNOTATION: return range_part(is);
    case KP_KINETO_OP:
        if (is & KP_NAME_RANGE) return range_part(is);
        if (is_autograd_node(name)) return KP_PART_BACKWARD;
        if (e->fwd_tid > 0 || kp_name_begins(name, "autograd::engine::") || kp_name_begins(name, KP_ACCUMULATE_GRAD))
            return KP_PART_BACKWARD;
        return text_part(f, e->stack);
    default: return KP_PART_OTHER;
    }
}

/* The op that a backward op names, and the ops around it, are forward. */
static void forward_mark(const struct kp_tree *tree, uint8_t *parts)
{
    for (size_t i = 0; i < tree->count; i++)
        for (int32_t at = tree->nodes[i].forward; at >= 0; at = tree->nodes[at].parent) {
            if (tree->trace->events[tree->nodes[at].event].kind != KP_KINETO_OP) break;
            if ((parts[at] & ~IN_CLOSURE) >= KP_PART_FORWARD) break;
            parts[at] = KP_PART_FORWARD;
        }
}

/* Do frames tell the part? If ops are alone, those of forward are known by their backward. */
static bool has_frames(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (kp_tree_event(tree, i)->kind == KP_KINETO_PYTHON || kp_tree_event(tree, i)->stack) return true;
    return false;
}

/* Ops without a backward (masks, indices) that lie between two of forward, with nothing else there. Ops between forward
 * and backward are of the same function as both. */
struct forward_between {
    uint64_t thread; /* of the last forward op */
    bool is_open;
    uint32_t *of;
    size_t count, capacity;
};

static bool is_in_op(const struct kp_tree *tree, uint32_t node)
{
    const int32_t parent = tree->nodes[node].parent;
    return parent >= 0 && kp_tree_event(tree, (size_t)parent)->kind == KP_KINETO_OP;
}

static void between_take(struct forward_between *b, const struct kp_tree *tree, uint8_t *parts, uint32_t node)
{
    const uint64_t thread = kp_tree_thread(kp_tree_event(tree, node));
    if (parts[node] == KP_PART_FORWARD) {
        for (size_t i = 0; b->is_open && b->thread == thread && i < b->count; i++) parts[b->of[i]] = KP_PART_FORWARD;
        *b = (struct forward_between){thread, true, b->of, 0, b->capacity};
    } else if (parts[node] != KP_PART_OTHER) {
        for (size_t i = 0; b->is_open && parts[node] == KP_PART_BACKWARD && i < b->count; i++)
            if (!is_in_op(tree, b->of[i])) parts[b->of[i]] |= IN_CLOSURE;
        b->is_open = false;
    } else if (b->is_open && b->thread == thread && kp_tree_event(tree, node)->kind == KP_KINETO_OP) {
        *KP_KINETO_NEXT(b->of, b->count, b->capacity) = node;
    }
}

/* If there were no frames, the time of a forward pass between its ops would count as other. Nodes come in the order of
 * time, and backward's may be of another thread. */
static void forward_fill(const struct kp_tree *tree, uint8_t *parts)
{
    struct forward_between b = {.is_open = false};
    if (has_frames(tree)) return;
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct kp_node *const node = &tree->nodes[i];
        if (kp_kineto_is_step(kp_kineto_text(tree->trace, kp_tree_event(tree, i)->name))) b.is_open = false;
        else if (!node->on_device && !node->is_async) between_take(&b, tree, parts, i);
    }
    free(b.of);
}

static enum kp_workerframe workerframe_of(const struct kp_tree *tree, size_t node)
{
    const struct kp_node *const n = &tree->nodes[node];
    return n->is_python ? kp_namefacts_workerframe(tree->trace, n->name) : KP_WORKERFRAME_NONE;
}

enum kp_workerframe kp_eventpart_worker(const struct kp_tree *tree, size_t node)
{
    const enum kp_workerframe is = workerframe_of(tree, node);
    const int32_t parent = tree->nodes[node].parent;
    if (is != KP_WORKERFRAME_GET) return is;
    return parent >= 0 && workerframe_of(tree, (size_t)parent) == KP_WORKERFRAME_TAKES ? is : KP_WORKERFRAME_NONE;
}

/* For a worker: it was forked in any part, and its wait for work is none. */
static bool is_apart(const struct kp_tree *tree, size_t node)
{
    const enum kp_workerframe is = kp_eventpart_worker(tree, node);
    return is == KP_WORKERFRAME_START || is == KP_WORKERFRAME_GET;
}

void kp_eventpart_find(const struct kp_tree *tree, uint8_t *parts)
{
    struct part_finding f = {.tree = tree, .parts = parts};
    for (size_t i = 0; i < tree->count; i++) parts[i] = own_part(&f, i);
    forward_mark(tree, parts);
    forward_fill(tree, parts);
    for (size_t i = 0; i < tree->count; i++) { /* a parent comes before its children */
        const int32_t parent = tree->nodes[i].parent;
        const bool is_outmost = parts[i] & IN_CLOSURE || is_apart(tree, i);
        parts[i] &= (uint8_t)~IN_CLOSURE;
        if (parent >= 0 && parts[parent] > parts[i] && !is_outmost) parts[i] = parts[parent];
    }
    free(f.of_stack);
    free(f.of_name);
}

// SPDX-License-Identifier: Apache-2.0
/* graph.c - graphs as templates: nodes, what each needs, copies */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test/doubles/simgpu/core/graph.h"

static _Atomic uint32_t last_id;
uint32_t sim_graph_next_id(void) { return atomic_fetch_add(&last_id, 1) + 1; }

bool sim_nodes_has(const struct sim_nodes *set, const struct sim_node *node)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->at[i] == node) return true;
    return false;
}

static void append(struct sim_nodes *set, struct sim_node *node)
{
    if (set->count == set->room) {
        set->room = set->room ? 2 * set->room : 4;
        set->at = realloc(set->at, set->room * sizeof *set->at);
        if (set->at == NULL) abort();
    }
    set->at[set->count++] = node;
}

void sim_nodes_add(struct sim_nodes *set, struct sim_node *node)
{
    if (!sim_nodes_has(set, node)) append(set, node);
}

void sim_nodes_clear(struct sim_nodes *set)
{
    free(set->at);
    *set = (struct sim_nodes){0};
}

bool sim_graph_is(const struct sim_graph *graph) { return graph != NULL && graph->magic == SIM_MAGIC_GRAPH; }
bool sim_node_is(const struct sim_node *node) { return node != NULL && node->magic == SIM_MAGIC_NODE; }

struct sim_graph *sim_graph_create(void)
{
    struct sim_graph *g = calloc(1, sizeof *g);
    if (g) *g = (struct sim_graph){.magic = SIM_MAGIC_GRAPH, .id = sim_graph_next_id()};
    return g;
}

enum sim_node_type sim_node_type_of(const struct sim_op *op)
{
    static const enum sim_node_type types[] = {
        [SIMGPU_KERNEL] = SIM_NODE_KERNEL,       [SIMGPU_MEMCPY] = SIM_NODE_MEMCPY,
        [SIMGPU_MEMSET] = SIM_NODE_MEMSET,       [SIMGPU_HOST_FUNCTION] = SIM_NODE_HOST,
        [SIMGPU_EVENT_RECORD] = SIM_NODE_RECORD, [SIMGPU_EVENT_WAIT] = SIM_NODE_WAIT};
    return types[op->work.kind];
}

struct sim_node *sim_node_create(struct sim_graph *graph, enum sim_node_type type, const struct sim_op *op,
                                 struct sim_node *const *needs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!sim_node_is(needs[i]) || needs[i]->graph != graph) return NULL;
    struct sim_node *n = calloc(1, sizeof *n);
    if (n == NULL) return NULL;
    *n = (struct sim_node){.magic = SIM_MAGIC_NODE, .place = ++graph->last_place, .type = type, .graph = graph};
    if (op) n->op = *op;
    for (size_t i = 0; i < count; i++) sim_nodes_add(&n->needs, needs[i]);
    append(&graph->nodes, n); /* new: no need to look for it among thousands */
    return n;
}

static void free_node(struct sim_node *node)
{
    node->magic = 0;
    sim_nodes_clear(&node->needs);
    if (node->child) sim_graph_destroy(node->child);
    free(node);
}

static void take_out(struct sim_nodes *set, const struct sim_node *node)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->at[i] == node) {
            memmove(set->at + i, set->at + i + 1, (set->count - i - 1) * sizeof *set->at);
            set->count--;
            return;
        }
}

void sim_node_destroy(struct sim_node *node)
{
    struct sim_nodes *all = &node->graph->nodes;
    take_out(all, node);
    for (size_t i = 0; i < all->count; i++) take_out(&all->at[i]->needs, node);
    free_node(node);
}

void sim_graph_destroy(struct sim_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) free_node(graph->nodes.at[i]);
    sim_nodes_clear(&graph->nodes);
    sim_holds_clear(&graph->holds);
    graph->magic = 0; /* the struct stays, so that a dead handle is told from a live one */
}

/* Nodes keep their places, so that a copy's node is found by the original's. */
static struct sim_node *same_place(const struct sim_graph *graph, uint32_t place)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.at[i]->place == place) return graph->nodes.at[i];
    return NULL;
}

struct sim_graph *sim_graph_clone(const struct sim_graph *graph)
{
    struct sim_graph *copy = sim_graph_create();
    if (copy == NULL) return NULL;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct sim_node *from = graph->nodes.at[i];
        struct sim_node *to = sim_node_create(copy, from->type, &from->op, NULL, 0);
        if (to == NULL) abort();
        to->place = from->place;
        if (from->child) to->child = sim_graph_clone(from->child);
    }
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (size_t k = 0; k < graph->nodes.at[i]->needs.count; k++)
            sim_nodes_add(&copy->nodes.at[i]->needs, same_place(copy, graph->nodes.at[i]->needs.at[k]->place));
    copy->last_place = graph->last_place;
    sim_holds_copy(&copy->holds, &graph->holds);
    return copy;
}

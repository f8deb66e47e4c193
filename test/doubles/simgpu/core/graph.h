// SPDX-License-Identifier: Apache-2.0
/*
 * graph.h - graphs: nodes that captured streams or the API made, executable copies, captures under way
 *
 * A node's CUPTI id is the id of its graph in the upper half and its place in the lower. An executable graph is a flat
 * copy in an order in which every node comes after what it depends on; its ids are its own, the template's are kept
 * beside them.
 */
#pragma once

#include "test/doubles/simgpu/core/core.h"

enum {
    SIM_MAGIC_GRAPH = 0x47524150,
    SIM_MAGIC_NODE = 0x4e4f4445,
    SIM_MAGIC_EXEC = 0x45584543,
    SIM_MAGIC_OBJECT = 0x4f424a54
};
enum sim_capture_status { SIM_CAPTURE_NONE, SIM_CAPTURE_ACTIVE, SIM_CAPTURE_BROKEN };
enum sim_capture_mode { SIM_MODE_GLOBAL, SIM_MODE_THREAD, SIM_MODE_RELAXED };
enum sim_node_type {
    SIM_NODE_KERNEL,
    SIM_NODE_MEMCPY,
    SIM_NODE_MEMSET,
    SIM_NODE_HOST,
    SIM_NODE_GRAPH,
    SIM_NODE_EMPTY,
    SIM_NODE_WAIT,
    SIM_NODE_RECORD,
    SIM_NODE_ALLOC = 10,
    SIM_NODE_FREE = 11
};

struct sim_graph;

struct sim_node {
    uint32_t magic;
    uint32_t place; /* 1, 2, ... in its graph, never used again */
    enum sim_node_type type;
    struct sim_graph *graph, *child;
    struct sim_op op;
    struct sim_nodes needs;
    bool is_disabled;
};

/* A thing of the program's that must live as long as a graph may run. */
struct sim_object {
    uint32_t magic, references;
    void *thing;
    void (*destroy)(void *thing);
};

struct sim_holds {
    struct sim_object **at;
    size_t count, room;
};

struct sim_graph {
    uint32_t magic, id, last_place;
    struct sim_nodes nodes;
    struct sim_holds holds;
};

struct sim_exec_node {
    struct sim_op op;
    const struct sim_node *source;
    uint64_t source_id, end_ns;
    size_t *needs, need_count;
    bool is_work, is_disabled;
};

struct sim_exec {
    uint32_t magic, id, source_id;
    uint64_t launches, busy_until, flags;
    struct sim_exec_node *nodes;
    size_t count, room;
    struct sim_holds holds;
};

struct sim_capture {
    uint64_t id;
    enum sim_capture_status status;
    enum sim_capture_mode mode;
    struct sim_graph *graph;
    struct sim_stream *origin;
    long thread;
};

static inline uint64_t sim_node_id(uint32_t graph, uint32_t place) { return (uint64_t)graph << 32 | place; }

/* --- sets of nodes and building (graph.c) --- */
void sim_nodes_add(struct sim_nodes *set, struct sim_node *node); /* once */
void sim_nodes_clear(struct sim_nodes *set);
bool sim_nodes_has(const struct sim_nodes *set, const struct sim_node *node);
bool sim_graph_is(const struct sim_graph *graph);
bool sim_node_is(const struct sim_node *node);
uint32_t sim_graph_next_id(void); /* of graphs and executable graphs alike */
struct sim_graph *sim_graph_create(void);
struct sim_graph *sim_graph_clone(const struct sim_graph *graph);
void sim_graph_destroy(struct sim_graph *graph);
struct sim_node *sim_node_create(struct sim_graph *graph, enum sim_node_type type, const struct sim_op *op,
                                 struct sim_node *const *needs, size_t count); /* NULL: a need is not of this graph */
void sim_node_destroy(struct sim_node *node);
enum sim_node_type sim_node_type_of(const struct sim_op *op);

/* --- running (exec.c) --- */
bool sim_exec_is(const struct sim_exec *exec);
int sim_exec_create(struct sim_exec **out, const struct sim_graph *graph, uint64_t flags);
void sim_exec_destroy(struct sim_exec *exec);
int sim_exec_launch(struct sim_exec *exec, struct sim_stream *stream);
int sim_exec_update(struct sim_exec *exec, const struct sim_graph *graph); /* SIM_EXEC_UPDATE_FAILED: another shape */
struct sim_exec_node *sim_exec_node_of(struct sim_exec *exec, const struct sim_node *source);
enum { SIM_EXEC_UPDATE_FAILED = 910 };

/* --- things that graphs keep alive (object.c) --- */
struct sim_object *sim_object_create(void *thing, void (*destroy)(void *), uint32_t references);
bool sim_object_is(const struct sim_object *object);
void sim_object_retain(struct sim_object *object, uint32_t count);
void sim_object_release(struct sim_object *object, uint32_t count);
void sim_holds_add(struct sim_holds *holds, struct sim_object *object, uint32_t count);
bool sim_holds_remove(struct sim_holds *holds, struct sim_object *object, uint32_t count);
void sim_holds_copy(struct sim_holds *to, const struct sim_holds *from);
void sim_holds_clear(struct sim_holds *holds);

/* --- capture (capture.c) --- */
int sim_capture_begin(struct sim_stream *stream, struct sim_graph *graph, enum sim_capture_mode mode);
int sim_capture_end(struct sim_stream *stream, struct sim_graph **out);
int sim_capture_node(struct sim_stream *stream, enum sim_node_type type); /* one that is no work */
int sim_capture_exchange_mode(int mode);
int sim_capture_unsafe(void); /* 0, or the error of a call that may not be made while a capture goes on; breaks it */
int sim_capture_break(struct sim_stream *stream, int error); /* answers error */

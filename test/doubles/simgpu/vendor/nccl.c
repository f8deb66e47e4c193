// SPDX-License-Identifier: Apache-2.0
/*
 * nccl.c - libnccl.so.2: communicators, groups, and collectives as kernels that end together on every rank
 *
 * Ranks are processes (or threads) that share the table of rendezvous.c. A collective's launch waits, inside its call,
 * until every rank has entered the same collective; its kernel then begins when this rank entered and ends a while
 * after the slowest did, on every rank alike. Sends and receives are kernels without a rendezvous. Gathers and
 * broadcasts of up to 4 KiB a rank carry their data (DistributedDataParallel compares shapes with them); nothing else
 * does.
 *
 *   SIMNCCL_HANG=RANK:N   that rank enters its N-th collective (from 0) and never comes out: nobody's kernel ends
 *   SIMNCCL_WAIT_MS       how long a launch waits for ranks that do not come (20000); then its kernel never ends
 *   SIMNCCL_GBS           bytes a nanosecond that a collective moves (200)
 */
#include "test/doubles/simgpu/vendor/rendezvous.h"

#include "test/doubles/simgpu/vendor/launch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, UNHANDLED_CUDA_ERROR = 1, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };
enum { TYPES = 12, GROUP_OPS = 256, NAMES = 128, LATENCY_NS = 10000 };

typedef struct {
    char bytes[128];
} unique_id;

struct comm {
    struct rendezvous *meeting;
    unique_id id;
    int rank, ranks;
    uint32_t splits;
    uint64_t collectives;
};

enum passing { PASS_NOTHING, PASS_ALL_TO_ALL_RANKS, PASS_FROM_ROOT };

struct payload {
    enum passing passing;
    const void *from;
    void *to;
    size_t bytes; /* of one rank */
    int root;
};

struct collective {
    struct comm *comm;
    const char *kernel;
    size_t bytes;
    void *stream;
    bool is_alone; /* send, receive: no rendezvous */
    struct payload payload;
    uint64_t number, entered_ns;
};

static _Thread_local struct {
    int depth, n;
    struct collective ops[GROUP_OPS];
} group;

static const struct {
    const char *name;
    uint8_t bytes;
} types[TYPES] = {
    {"u8", 1},  {"u8", 1},  {"u32", 4}, {"u32", 4},  {"u64", 8},    {"u64", 8},
    {"f16", 2}, {"f32", 4}, {"f64", 8}, {"bf16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1},
};

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? strtoull(value, NULL, 0) : otherwise;
}

/* Kernel names live as long as the process and are made once each. */
static const char *kernel_name(const char *what)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char names[NAMES][128];
    static int n;
    char wanted[128];
    snprintf(wanted, sizeof wanted, "_Z%zuncclDevKernel_%s24ncclDevKernelArgsStorageILm4096EE",
             strlen("ncclDevKernel_") + strlen(what), what);
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < n && strcmp(names[at], wanted) != 0) at++;
    if (at == n && n < NAMES) memcpy(names[n++], wanted, sizeof wanted);
    pthread_mutex_unlock(&lock);
    return at < NAMES ? names[at] : names[0];
}

static const char *reduce_kernel(const char *what, int type)
{
    char name[64];
    snprintf(name, sizeof name, "%s_Sum_%s_RING_LL", what, types[type].name);
    return kernel_name(name);
}

/* --- launches --- */

static bool has_hang(const struct collective *op)
{
    const char *value = getenv("SIMNCCL_HANG");
    int rank = -1;
    unsigned long long number = 0;
    return value != NULL && sscanf(value, "%d:%llu", &rank, &number) == 2 && rank == op->comm->rank &&
           number == op->number;
}

static void payload_take(const struct collective *op)
{
    const struct payload *p = &op->payload;
    if (p->bytes > RENDEZVOUS_DATA || p->passing == PASS_NOTHING) return;
    for (int rank = 0; rank < op->comm->ranks; rank++) {
        bool is_gather = p->passing == PASS_ALL_TO_ALL_RANKS;
        if (is_gather || rank == p->root)
            memcpy((char *)p->to + (is_gather ? p->bytes * (size_t)rank : 0),
                   rendezvous_data(op->comm->meeting, rank, op->number), p->bytes);
    }
}

/* Called inside the launch: when does the kernel begin and end? */
static void times_agree(void *arg)
{
    struct collective *op = arg;
    const struct simgpu_core *core = sim_core();
    if (op->is_alone) return;
    uint64_t last = 0;
    bool has_all = rendezvous_wait(op->comm->meeting, op->number, setting("SIMNCCL_WAIT_MS", 20000), &last);
    if (has_all && last != UINT64_MAX) payload_take(op);
    if (core->next_kernel == NULL) return;
    uint64_t duration = LATENCY_NS + op->bytes / setting("SIMNCCL_GBS", 200);
    core->next_kernel(op->entered_ns + LATENCY_NS,
                      has_all && last != UINT64_MAX ? last + LATENCY_NS + duration : UINT64_MAX);
}

static int op_launch(struct collective *op)
{
    uint32_t channels = sim_tiles((int64_t)op->bytes, 1 << 16);
    struct sim_launch work = {
        op->kernel, {channels < 24 ? channels : 24, 1, 1}, {512, 1, 1}, 0, op->stream, false, times_agree, op};
    return sim_vendor_launch(&work) == 0 ? SUCCESS : UNHANDLED_CUDA_ERROR;
}

/* All operations of a group enter before any waits: one thread may drive several ranks. */
static int group_launch(void)
{
    int result = SUCCESS;
    for (int i = 0; i < group.n; i++) {
        struct collective *op = &group.ops[i];
        op->entered_ns = sim_core() != NULL ? sim_core()->host_ns() : 0;
        if (op->is_alone) continue;
        op->number = op->comm->collectives++;
        rendezvous_enter(op->comm->meeting, op->comm->rank, op->number, has_hang(op) ? UINT64_MAX : op->entered_ns,
                         op->payload.from, op->payload.bytes);
    }
    for (int i = 0; i < group.n && result == SUCCESS; i++) result = op_launch(&group.ops[i]);
    group.n = 0;
    return result;
}

SIM_EXPORT int ncclGroupStart(void)
{
    group.depth++;
    return SUCCESS;
}

SIM_EXPORT int ncclGroupEnd(void)
{
    if (group.depth == 0) return INVALID_USAGE;
    return --group.depth == 0 ? group_launch() : SUCCESS;
}

static int submit_with(struct comm *comm, const char *kernel, size_t count, int type, void *stream, bool is_alone,
                       struct payload payload)
{
    if (comm == NULL || type < 0 || type >= TYPES || group.n == GROUP_OPS) return INVALID_ARGUMENT;
    payload.bytes *= types[type].bytes; /* counts so far */
    group.ops[group.n++] =
        (struct collective){comm, kernel, count * types[type].bytes, stream, is_alone, payload, 0, 0};
    return group.depth == 0 ? group_launch() : SUCCESS;
}

static int submit(struct comm *comm, const char *kernel, size_t count, int type, void *stream, bool is_alone)
{
    return submit_with(comm, kernel, count, type, stream, is_alone, (struct payload){.passing = PASS_NOTHING});
}

/* --- collectives --- */

SIM_EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, struct comm *comm,
                             void *stream)
{
    (void)from, (void)to, (void)op;
    return submit(comm, reduce_kernel("AllReduce", type), count, type, stream, false);
}

SIM_EXPORT int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, struct comm *comm,
                                 void *stream)
{
    (void)from, (void)to, (void)op;
    return submit(comm, reduce_kernel("ReduceScatter", type), count * (size_t)comm->ranks, type, stream, false);
}

SIM_EXPORT int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root, struct comm *comm,
                          void *stream)
{
    (void)from, (void)to, (void)op, (void)root;
    return submit(comm, reduce_kernel("Reduce", type), count, type, stream, false);
}

SIM_EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type, struct comm *comm, void *stream)
{
    return submit_with(comm, kernel_name("AllGather_RING_LL"), count * (size_t)comm->ranks, type, stream, false,
                       (struct payload){PASS_ALL_TO_ALL_RANKS, from, to, count, 0});
}

SIM_EXPORT int ncclAlltoAll(const void *from, void *to, size_t count, int type, struct comm *comm, void *stream)
{
    (void)from, (void)to;
    return submit(comm, kernel_name("SendRecv"), count * (size_t)comm->ranks, type, stream, false);
}

SIM_EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct comm *comm,
                             void *stream)
{
    return submit_with(comm, kernel_name("Broadcast_RING_LL"), count, type, stream, false,
                       (struct payload){PASS_FROM_ROOT, from, to, count, root});
}

SIM_EXPORT int ncclBcast(void *buffer, size_t count, int type, int root, struct comm *comm, void *stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

SIM_EXPORT int ncclGather(const void *from, void *to, size_t count, int type, int root, struct comm *comm, void *stream)
{
    (void)from, (void)to, (void)root;
    return submit(comm, kernel_name("SendRecv"), count, type, stream, false);
}

SIM_EXPORT int ncclSend(const void *from, size_t count, int type, int peer, struct comm *comm, void *stream)
{
    (void)from, (void)peer;
    return submit(comm, kernel_name("SendRecv"), count, type, stream, true);
}

SIM_EXPORT int ncclRecv(void *to, size_t count, int type, int peer, struct comm *comm, void *stream)
{
    (void)to, (void)peer;
    return submit(comm, kernel_name("SendRecv"), count, type, stream, true);
}

/* --- communicators --- */

SIM_EXPORT int ncclGetVersion(int *version)
{
    *version = 23007;
    return SUCCESS;
}

SIM_EXPORT const char *ncclGetErrorString(int result) { return result == SUCCESS ? "no error" : "simulated error"; }

SIM_EXPORT const char *ncclGetLastError(struct comm *comm)
{
    (void)comm;
    return "";
}

SIM_EXPORT int ncclGetUniqueId(unique_id *id)
{
    static _Atomic unsigned made;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "%d-%ld%09ld-%u", (int)getpid(), (long)now.tv_sec, now.tv_nsec, made++);
    return SUCCESS;
}

static struct comm *comm_make(const unique_id *id, int ranks, int rank)
{
    struct comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) return NULL;
    *comm = (struct comm){.id = *id, .rank = rank, .ranks = ranks};
    comm->meeting = rendezvous_join(id->bytes, ranks);
    if (comm->meeting != NULL) return comm;
    free(comm);
    return NULL;
}

SIM_EXPORT int ncclCommInitRankConfig(struct comm **comm, int ranks, unique_id id, int rank, void *config)
{
    (void)config;
    if (ranks < 1 || ranks > RENDEZVOUS_RANKS || rank < 0 || rank >= ranks) return INVALID_ARGUMENT;
    *comm = comm_make(&id, ranks, rank);
    if (*comm == NULL) return SYSTEM_ERROR;
    return rendezvous_all_here((*comm)->meeting, rank, setting("SIMNCCL_WAIT_MS", 20000)) ? SUCCESS : SYSTEM_ERROR;
}

SIM_EXPORT int ncclCommInitRank(struct comm **comm, int ranks, unique_id id, int rank)
{
    return ncclCommInitRankConfig(comm, ranks, id, rank, NULL);
}

SIM_EXPORT int ncclCommInitRankScalable(struct comm **comm, int ranks, int rank, int ids, unique_id *id, void *config)
{
    return ids > 0 ? ncclCommInitRankConfig(comm, ranks, id[0], rank, config) : INVALID_ARGUMENT;
}

SIM_EXPORT int ncclCommInitAll(struct comm **comms, int n, const int *devices)
{
    (void)devices;
    unique_id id;
    ncclGetUniqueId(&id);
    for (int i = 0; i < n; i++)
        if ((comms[i] = comm_make(&id, n, i)) == NULL) return SYSTEM_ERROR;
    return rendezvous_forget(id.bytes), SUCCESS;
}

/* Every rank says its colour and key; those of one colour meet under a name made of both communicators. */
SIM_EXPORT int ncclCommSplit(struct comm *comm, int color, int key, struct comm **made, void *config)
{
    uint64_t said[RENDEZVOUS_RANKS], mine = (uint64_t)(uint32_t)color << 32 | (uint32_t)key;
    uint64_t number = comm->collectives++;
    rendezvous_enter(comm->meeting, comm->rank, number, mine, NULL, 0);
    if (!rendezvous_values(comm->meeting, number, setting("SIMNCCL_WAIT_MS", 20000), said)) return SYSTEM_ERROR;
    uint32_t split = comm->splits++;
    *made = NULL;
    if (color < 0) return SUCCESS;
    int ranks = 0, rank = 0;
    for (int i = 0; i < comm->ranks; i++) {
        if (said[i] >> 32 != (uint32_t)color) continue;
        ranks++;
        int32_t other = (int32_t)said[i];
        rank += i != comm->rank && (other < key || (other == key && i < comm->rank));
    }
    unique_id id = {{0}};
    snprintf(id.bytes, sizeof id.bytes, "%.80s.%u.%d", comm->id.bytes, split, color);
    return ncclCommInitRankConfig(made, ranks, id, rank, config);
}

static int comm_free(struct comm *comm)
{
    if (comm != NULL) rendezvous_leave(comm->meeting);
    free(comm);
    return SUCCESS;
}

SIM_EXPORT int ncclCommDestroy(struct comm *comm) { return comm_free(comm); }
SIM_EXPORT int ncclCommAbort(struct comm *comm) { return comm_free(comm); }

SIM_EXPORT int ncclCommCount(const struct comm *comm, int *ranks)
{
    *ranks = comm->ranks;
    return SUCCESS;
}

SIM_EXPORT int ncclCommUserRank(const struct comm *comm, int *rank)
{
    *rank = comm->rank;
    return SUCCESS;
}

SIM_EXPORT int ncclCommGetAsyncError(struct comm *comm, int *error)
{
    (void)comm;
    *error = SUCCESS;
    return SUCCESS;
}

SIM_EXPORT int ncclCommRegister(const struct comm *comm, void *buffer, size_t bytes, void **handle)
{
    (void)comm, (void)bytes;
    *handle = buffer;
    return SUCCESS;
}

SIM_EXPORT int ncclCommMemStats(struct comm *comm, int what, uint64_t *value)
{
    (void)comm, (void)what;
    *value = 0;
    return SUCCESS;
}

SIM_EXPORT int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, struct comm *comm)
{
    (void)scalar, (void)type, (void)residence, (void)comm;
    *op = 5;
    return SUCCESS;
}

SIM_EXPORT int ncclMemAlloc(void **memory, size_t bytes)
{
    int (*allocate)(uint64_t *, size_t) = NULL;
    uint64_t address = 0;
    *(void **)&allocate = sim_driver("cuMemAlloc_v2");
    if (allocate == NULL || allocate(&address, bytes) != 0) return UNHANDLED_CUDA_ERROR;
    *memory = (void *)(uintptr_t)address;
    return SUCCESS;
}

SIM_EXPORT int ncclMemFree(void *memory)
{
    int (*release)(uint64_t) = NULL;
    *(void **)&release = sim_driver("cuMemFree_v2");
    return release != NULL && release((uintptr_t)memory) == 0 ? SUCCESS : UNHANDLED_CUDA_ERROR;
}

// SPDX-License-Identifier: Apache-2.0
/* kineto_works.c - keeps what the args of a kernel or a copy say: bytes, stream, grid, occupancy; of collectives */
#include "export/read/kineto/kineto.h"

#include <string.h>

#include "collector/base/kp_fnv.h"
#include "collector/base/kp_search.h"
#include "export/read/kineto/kineto_words.h"

/* `args` is as the parser keeps it: without blanks, and quotes in texts are escaped. */
static const char *value_find(const char *args, size_t bytes, const char *key)
{
    const size_t key_bytes = strlen(key);
    const char *found = memmem(args, bytes, key, key_bytes);
    return found ? found + key_bytes : NULL;
}

/* Thousandths, so that decimals count; `least` where the key is missing. */
static int64_t thousandths(const char *args, size_t bytes, const char *key, int64_t least)
{
    const char *at = value_find(args, bytes, key);
    return at ? kp_kineto_ns(at, (size_t)(args + bytes - at)) : least;
}

/* "[512,1,1]": its sides; what is missing is 1, and all are 0 where the key is missing. */
static void sides_read(uint32_t *sides, const char *args, size_t bytes, const char *key)
{
    const char *at = value_find(args, bytes, key), *end = args + bytes;
    if (!at || at == end || *at != '[') return;
    for (int i = 0; i < 3; i++) {
        const bool has = at < end && *at != ']' && at + 1 < end;
        const int64_t side = has ? kp_kineto_ns(at + 1, (size_t)(end - at - 1)) / 1000 : 1;
        sides[i] = side > 0 && side < INT32_MAX ? (uint32_t)side : 1;
        if (has) at++;
        while (at < end && *at != ',' && *at != ']') at++;
    }
}

/* ---- collectives ---- */

static bool has_word(const char *args, size_t bytes, const char *key, const char *word)
{
    const char *at = value_find(args, bytes, key), *end = at ? memchr(at, '"', (size_t)(args + bytes - at)) : NULL;
    return end && memmem(at, (size_t)(end - at), word, strlen(word)) != NULL;
}

static int64_t element_bytes(const char *args, size_t bytes)
{
    static const struct {
        const char *word;
        int bytes;
    } types[] = {{"Half", 2}, {"BFloat16", 2}, {"Float8", 1}, {"ComplexFloat", 8}, {"Float", 4}, {"Double", 8},
                 {"Int", 4},  {"Long", 8},     {"Short", 2},  {"Byte", 1},         {"Char", 1},  {"Bool", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (has_word(args, bytes, "\"dtype\":\"", types[i].word)) return types[i].bytes;
    return 0;
}

/* An all-reduce of n ranks moves each byte twice over n - 1 links of n, the others that share it out once. */
static double bus_factor(const char *args, size_t bytes, double ranks)
{
    static const char *const shared[] = {"gather", "reduce_scatter", "all_to_all", "alltoall"};
    const char *const name = "\"Collective name\":\"";
    if (ranks < 1) return 0;
    if (has_word(args, bytes, name, "allreduce") || has_word(args, bytes, name, "all_reduce"))
        return 2 * (ranks - 1) / ranks;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (has_word(args, bytes, name, shared[i])) return (ranks - 1) / ranks;
    return 1;
}

static uint32_t group_hash(const char *args, size_t bytes)
{
    const char *at = value_find(args, bytes, "\"Process Group Name\":\"");
    if (!at) return 0;
    const char *const quote = memchr(at, '"', (size_t)(args + bytes - at));
    const uint32_t hash = kp_fnv32(KP_FNV32, at, (size_t)((quote ? quote : args + bytes) - at));
    return hash ? hash : 1;
}

/* Keeps a text of the args, or a list: as far as its end. */
static uint32_t members_keep(struct kp_kineto *t, const char *args, size_t bytes)
{
    const char *at = value_find(args, bytes, "\"Process Group Ranks\":"), *const end = args + bytes;
    while (at && at < end && (*at == '"' || *at == ' ')) at++;
    const char *const close = at && at < end && *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
    return close ? kp_strings_put(t->strings, at, (size_t)(close + 1 - at)) : 0;
}

static void collective_read(struct kp_kineto *t, struct kp_kineto_work *work, const char *args, size_t bytes)
{
    work->sequence = -1;
    if (!value_find(args, bytes, "\"Collective name\":")) return;
    const int64_t in = thousandths(args, bytes, "\"In msg nelems\":", 0) / 1000;
    const int64_t out = thousandths(args, bytes, "\"Out msg nelems\":", 0) / 1000;
    const double ranks = (double)thousandths(args, bytes, "\"Group size\":", 0) / 1000;
    work->group = group_hash(args, bytes);
    work->members = members_keep(t, args, bytes);
    work->group_size = ranks > 0 && ranks < INT32_MAX ? (int32_t)ranks : 0;
    work->sequence = thousandths(args, bytes, "\"Seq\":", -1000) / 1000;
    work->bus_bytes =
        (int64_t)((double)((in > out ? in : out) * element_bytes(args, bytes)) * bus_factor(args, bytes, ranks));
}

void kp_kineto_work_add(struct kp_kineto *t, uint32_t event, const char *args, size_t bytes)
{
    *KP_KINETO_NEXT(t->works, t->work_count, t->work_capacity) = (struct kp_kineto_work){
        .event = event,
        .stream = (int32_t)(thousandths(args, bytes, "\"stream\":", -1000) / 1000),
        .bytes = thousandths(args, bytes, "\"bytes\":", 0) / 1000,
        .blocks_per_sm = (float)thousandths(args, bytes, "\"blocks per SM\":", -1000) / 1000,
        .occupancy = (float)thousandths(args, bytes, "\"est. achieved occupancy %\":", -1000) / 1000,
    };
    struct kp_kineto_work *work = &t->works[t->work_count - 1];
    work->registers = (int32_t)(thousandths(args, bytes, "\"registers per thread\":", 0) / 1000);
    work->local_bytes = (int32_t)(thousandths(args, bytes, "\"local memory per thread\":", 0) / 1000);
    work->shared = thousandths(args, bytes, "\"shared memory\":", -1000) / 1000;
    sides_read(work->grid, args, bytes, "\"grid\":");
    sides_read(work->block, args, bytes, "\"block\":");
    collective_read(t, work, args, bytes);
}

static bool is_work_before(const void *work, const void *event)
{
    return ((const struct kp_kineto_work *)work)->event < *(const uint32_t *)event;
}

static size_t work_from(const struct kp_kineto *t, uint32_t event)
{
    return kp_search(t->works, sizeof *t->works, t->work_count, is_work_before, &event);
}

const struct kp_kineto_work *kp_kineto_work_of(const struct kp_kineto *t, uint32_t event)
{
    const size_t at = work_from(t, event);
    return at < t->work_count && t->works[at].event == event ? &t->works[at] : NULL;
}

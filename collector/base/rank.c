// SPDX-License-Identifier: Apache-2.0
/*
 * rank.c - a process's rank in its job, and which ranks KPROF_RANKS names
 *
 * Called by: boot.c (constructor), distributed.c (later), the exporter, the command, config.c
 * Safe in:   everywhere: no state, no system call
 */
#include "collector/base/kp_rank.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_hash.h"
#include "collector/base/kp_log.h"

#include "collector/base/kp_poison.h"

enum { LAUNCHERS = 8, VARIABLES = 3, RANK_DIGITS = 8 };

/* The first row whose rank is set counts (decisions/006). */
static const char *const launchers[LAUNCHERS][VARIABLES] = {
    {KP_RANK_GROUP_RANK, KP_RANK_GROUP_SIZE, "LOCAL_RANK"},
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"PMIX_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};
static const char *const nodes[] = {"NODE_RANK", "GROUP_RANK"}; /* Lightning's, torchrun's */
static const char per_node[] = "LOCAL_WORLD_SIZE";

const char *kp_rank_variable(unsigned at)
{
    enum { ALL = LAUNCHERS * VARIABLES, NODES = sizeof nodes / sizeof *nodes };
    if (at < ALL) return launchers[at / VARIABLES][at % VARIABLES];
    return at < ALL + NODES ? nodes[at - ALL] : at == ALL + NODES ? per_node : NULL;
}

/* Reads a number of up to eight digits and moves *at behind it. */
static bool digits_read(const char **at, uint32_t *out)
{
    uint32_t n = 0;
    int digits = 0;
    for (; **at >= '0' && **at <= '9' && digits < RANK_DIGITS; (*at)++, digits++) n = n * 10 + (uint32_t)(**at - '0');
    *out = n;
    return digits && !(**at >= '0' && **at <= '9');
}

static bool variable_read(kp_rank_text_fn text_of, const void *from, const char *variable, uint32_t *out)
{
    const char *text = text_of(from, variable);
    return text && digits_read(&text, out) && !*text;
}

/* That of the launcher that gave the rank, else of any: a script may set RANK out of SLURM_PROCID alone. */
static int64_t on_node_find(kp_rank_text_fn text_of, const void *from, size_t launcher)
{
    uint32_t number;
    if (variable_read(text_of, from, launchers[launcher][2], &number)) return number;
    for (size_t i = 0; i < LAUNCHERS; i++)
        if (variable_read(text_of, from, launchers[i][2], &number)) return number;
    return -1;
}

/* The rank by its number on the node and the node's, where each node has as many: Lightning sets no RANK. Its rank 0
 * starts the others and has no such variable, so they count as started by no launcher. */
static void place_by_node(kp_rank_text_fn text_of, const void *from, struct kp_rank *out)
{
    uint32_t node = 0, local, each = 0;
    if (!variable_read(text_of, from, "LOCAL_RANK", &local)) return;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (variable_read(text_of, from, nodes[i], &node)) break;
    if (node && (!variable_read(text_of, from, per_node, &each) || local >= each)) return;
    out->rank = node * each + local;
    if (!variable_read(text_of, from, "WORLD_SIZE", &out->size)) out->size = 0;
}

struct kp_rank kp_rank_find(kp_rank_text_fn text_of, const void *from)
{
    struct kp_rank found = {.on_node = -1};
    for (size_t i = 0; i < LAUNCHERS && !found.is_launched; i++) {
        if (!variable_read(text_of, from, launchers[i][0], &found.rank)) continue;
        found.is_launched = true;
        if (!variable_read(text_of, from, launchers[i][1], &found.size)) found.size = 0;
        found.on_node = on_node_find(text_of, from, i);
    }
    if (!found.is_launched) found.rank = 0, place_by_node(text_of, from, &found);
    if (found.size <= found.rank) found.size = found.rank + 1;
    if (!found.is_launched) found.on_node = on_node_find(text_of, from, 1);
    if (!found.is_launched && found.on_node < 0) found.on_node = 0;
    return found;
}

/* ---- the job ---- */

enum { ID_LONG = 400 };

/* Adds "-VALUE" of a variable that is set. Returns the length then. */
static size_t id_add(char *id, size_t used, kp_rank_text_fn text_of, const void *from, const char *variable)
{
    const char *const text = text_of(from, variable);
    if (!text || !*text || used + 1 >= ID_LONG) return used;
    const size_t n = kp_fmt(id + used, ID_LONG - used, "%s%s", used ? "-" : "", text);
    return used + n < ID_LONG ? used + n : ID_LONG - 1;
}

/* Letters that the id may not have become "_". One that is too long ends with a hash of the whole. */
static void id_write(char *id, size_t bytes, char out[KP_JOB_ID_BYTES])
{
    enum { HASH_DIGITS = 16 };
    const uint64_t hash = kp_hash64(id, bytes);
    for (char *c = id; *c; c++) {
        const bool is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!is_letter && *c != '.' && *c != '-') *c = '_';
    }
    kp_fmt(out, KP_JOB_ID_BYTES, "%s", id);
    if (bytes < KP_JOB_ID_BYTES) return;
    kp_fmt(out + KP_JOB_ID_BYTES - 1 - HASH_DIGITS, HASH_DIGITS + 1, "%08x%08x", (unsigned)(hash >> 32),
           (unsigned)hash);
}

/* torchrun without --rdzv-id or --standalone has a run id that names nothing. */
void kp_job_id_find(kp_rank_text_fn text_of, const void *from, char out[KP_JOB_ID_BYTES])
{
    static const char *const others[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "MASTER_ADDR",
                                         "MASTER_PORT"};
    char id[ID_LONG] = "";
    size_t used = 0;
    out[0] = '\0';
    if (!kp_rank_find(text_of, from).is_launched) return;
    const char *const run = text_of(from, "TORCHELASTIC_RUN_ID");
    const bool is_named = run && *run && strcmp(run, "none") != 0;
    if (is_named) used = id_add(id, 0, text_of, from, "TORCHELASTIC_RUN_ID");
    for (size_t i = 0; !is_named && i < sizeof others / sizeof *others; i++)
        used = id_add(id, used, text_of, from, others[i]);
    id_write(id, used, out);
}

/* ---- KPROF_RANKS ---- */

struct ranks_word {
    enum { WORD_SPAN, WORD_PART, WORD_NODE } kind;
    uint32_t low, high; /* SPAN: first and last; PART: low of each high */
};

static const char node_word[] = "first-of-node";

/* Reads the word at *at up to a comma or the end, and moves *at behind it. */
static bool word_read(const char **at, struct ranks_word *out)
{
    if (strncmp(*at, node_word, sizeof node_word - 1) == 0) {
        *at += sizeof node_word - 1;
        out->kind = WORD_NODE;
        return !**at || **at == ',';
    }
    if (!digits_read(at, &out->low)) return false;
    const char mark = **at;
    out->kind = mark == '/' ? WORD_PART : WORD_SPAN;
    out->high = out->low;
    if (mark == '/' || mark == '-') (*at)++;
    if ((mark == '/' || mark == '-') && !digits_read(at, &out->high)) return false;
    const bool is_sound = out->low <= out->high && (out->kind != WORD_PART || out->low);
    return is_sound && (!**at || **at == ',');
}

int kp_ranks_check(const char *text, char *why, size_t why_bytes)
{
    struct ranks_word word;
    for (const char *at = text;; at++) {
        if (!word_read(&at, &word)) break;
        if (!*at) return 0;
    }
    kp_fmt(why, why_bytes, "is none of 0,8-15, first-of-node, 1/16");
    return -EINVAL;
}

/* A part is spread evenly and has rank 0: 1/4 is 0, 4, 8; 3/4 leaves out each fourth. */
static bool is_named(const struct ranks_word *word, const struct kp_rank *place)
{
    switch (word->kind) {
    case WORD_NODE: return place->on_node == 0;
    case WORD_PART: return (uint64_t)place->rank * word->low % word->high < word->low;
    default: return place->rank >= word->low && place->rank <= word->high;
    }
}

bool kp_ranks_name(const char *text, const struct kp_rank *place)
{
    struct ranks_word word;
    for (const char *at = text; word_read(&at, &word); at++) {
        if (is_named(&word, place)) return true;
        if (!*at) break;
    }
    return false;
}

bool kp_ranks_name_any(const char *text, uint32_t size)
{
    struct ranks_word word;
    for (const char *at = text; word_read(&at, &word); at++) {
        if (word.kind != WORD_SPAN || word.low < size) return true;
        if (!*at) break;
    }
    return false;
}

bool kp_ranks_need_node(const char *text) { return strstr(text, node_word) != NULL; }

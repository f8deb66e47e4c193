// SPDX-License-Identifier: Apache-2.0
/*
 * rank.c - a process's rank in its job, as the launcher's variables in the spool say it (decisions/006)
 */
#include "export/trace/rank.h"

#include <stdbool.h>
#include <stddef.h>

#include "collector/read/kp_read.h"
#include "collector/base/kp_poison.h"

static bool number_read(const struct kp_reader *reader, const char *key, uint32_t *out)
{
    const char *text = kp_reader_text(reader, key);
    uint64_t v = 0;
    if (!text || !*text) return false;
    for (; *text >= '0' && *text <= '9' && v < 100000000; text++) v = v * 10 + (uint64_t)(*text - '0');
    if (*text) return false;
    *out = (uint32_t)v;
    return true;
}

struct kp_rank kp_rank_read(const struct kp_reader *reader)
{
    static const char *const launchers[][2] = {
        {"env.RANK", "env.WORLD_SIZE"},           {"env.OMPI_COMM_WORLD_RANK", "env.OMPI_COMM_WORLD_SIZE"},
        {"env.PMI_RANK", "env.PMI_SIZE"},         {"env.PMIX_RANK", "env.PMI_SIZE"},
        {"env.SLURM_PROCID", "env.SLURM_NTASKS"},
    };
    struct kp_rank found = {0, 0};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (!number_read(reader, launchers[i][0], &found.rank)) continue;
        if (!number_read(reader, launchers[i][1], &found.size)) found.size = 0;
        break;
    }
    if (found.size <= found.rank) found.size = found.rank + 1;
    return found;
}

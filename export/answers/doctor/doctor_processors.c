// SPDX-License-Identifier: Apache-2.0
/* doctor_processors.c - how many processors a program may use here, and how busy they are */
#include "export/answers/doctor/doctor.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_MOST = 4096 };

/* The first line of a file, without its end. */
static bool line_read(const char *root, const char *path, char *out, size_t bytes)
{
    char whole[PATH_MOST];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    FILE *const file = fopen(whole, "re");
    const bool is_read = file && fgets(out, (int)bytes, file);
    if (file) fclose(file);
    if (is_read) out[strcspn(out, "\n")] = 0;
    return is_read;
}

/* "QUOTA PERIOD" in microseconds as processors; 0 where there is no limit ("max", or -1). */
static double quota_of(const char *text)
{
    double quota = 0, period = 0;
    return sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 ? quota / period : 0;
}

static void limit_take(double *lowest, double limit)
{
    if (limit > 0 && (*lowest == 0 || limit < *lowest)) *lowest = limit;
}

/* Version 2: one file has the quota and its period. */
static double limit_v2(const char *root, const char *group)
{
    char path[PATH_MOST], text[64];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    return line_read(root, path, text, sizeof text) ? quota_of(text) : 0;
}

/* Version 1: they lie in two files of the controller "cpu". */
static double limit_v1(const char *root, const char *group)
{
    char path[PATH_MOST], both[130], quota[64], period[64];
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", group);
    if (!line_read(root, path, quota, sizeof quota)) return 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", group);
    if (!line_read(root, path, period, sizeof period)) return 0;
    snprintf(both, sizeof both, "%s %s", quota, period);
    return quota_of(both);
}

/* The lowest limit of a group and of all above it. `group` is cut at each slash. */
static double lowest_limit(const char *root, char *group, double (*limit_of)(const char *root, const char *group))
{
    double lowest = 0;
    for (;;) {
        limit_take(&lowest, limit_of(root, group));
        char *const last = strrchr(group, '/');
        if (!last) return lowest;
        *last = 0;
    }
}

/* Is the controller "cpu" in a list such as "cpu,cpuacct"? */
static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; at; at = strchr(at, ','), at += at ? 1 : 0)
        if (strcspn(at, ",") == 3 && strncmp(at, "cpu", 3) == 0) return true;
    return false;
}

/* A line of /proc/self/cgroup is "NUMBER:CONTROLLERS:GROUP"; that of version 2 names no controllers. */
static double limit_read(const char *root)
{
    char path[PATH_MOST], line[PATH_MOST];
    double lowest = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *const file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        char *const controllers = strchr(line, ':'), *const group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        line[strcspn(line, "\n")] = 0;
        *group = 0;
        char *const name = strcmp(group + 1, "/") == 0 ? group + 2 : group + 1; /* the root's name is empty */
        if (!controllers[1]) limit_take(&lowest, lowest_limit(root, name, limit_v2));
        else if (has_cpu(controllers + 1)) limit_take(&lowest, lowest_limit(root, name, limit_v1));
    }
    if (file) fclose(file);
    return lowest;
}

struct kp_processors kp_processors_read(const char *root)
{
    struct kp_processors found = {.count = 1, .limit = limit_read(root)};
    char text[128];
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) found.count = (unsigned)CPU_COUNT(&set);
    if (line_read(root, "/proc/loadavg", text, sizeof text)) sscanf(text, "%lf", &found.load);
    return found;
}

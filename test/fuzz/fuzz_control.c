// SPDX-License-Identifier: Apache-2.0
/* fuzz_control.c - any bytes as a request of `kprof ctl`, on its socket and in the files of a job's ranks */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_hash.h"
#include "schedule/ctl_proto.h"
#include "schedule/job/job.h"

static void demand(int truth)
{
    if (!truth) abort();
}

/* What was accepted, written again: must be accepted with the same meaning. */
static void again(const struct kp_ctl_request *r)
{
    static const char *const names[] = {
        [KP_CTL_STATUS] = "status",     [KP_CTL_START] = "start", [KP_CTL_STOP] = "stop",
        [KP_CTL_TOGGLE] = "toggle",     [KP_CTL_STEP] = "step",   [KP_CTL_PHASE] = "phase",
        [KP_CTL_METADATA] = "metadata", [KP_CTL_WHERE] = "where", [KP_CTL_KEEP] = "keep",
    };
    char line[KP_CTL_LINE_MAX + 64], why[100];
    struct kp_ctl_request second;
    int n = snprintf(line, sizeof line, "%s", names[r->verb]);
    if (r->steps) n += snprintf(line + n, sizeof line - (size_t)n, " steps=%lu", (unsigned long)r->steps);
    if (r->is_at_step) n += snprintf(line + n, sizeof line - (size_t)n, " at=%lu", (unsigned long)r->at);
    if (r->is_at_next) n += snprintf(line + n, sizeof line - (size_t)n, " at=next");
    if (r->verb == KP_CTL_TOGGLE)
        n += snprintf(line + n, sizeof line - (size_t)n, " %s %s", r->activity, r->on ? "on" : "off");
    if (r->verb == KP_CTL_PHASE && *r->key) n += snprintf(line + n, sizeof line - (size_t)n, " %s", r->key);
    if (r->verb == KP_CTL_METADATA) snprintf(line + n, sizeof line - (size_t)n, " %s %s", r->key, r->value);
    demand(kp_ctl_parse(line, &second, why, sizeof why) == 0);
    demand(second.verb == r->verb && second.steps == r->steps && second.at == r->at);
    demand(second.is_at_step == r->is_at_step && second.is_at_next == r->is_at_next);
    demand(!second.key == !r->key);
    if (r->key) demand(strcmp(second.key, r->key) == 0);
    if (r->verb == KP_CTL_METADATA) demand(strcmp(second.value, r->value) == 0);
    if (r->verb == KP_CTL_TOGGLE) demand(strcmp(second.activity, r->activity) == 0 && second.on == r->on);
}

/* The bytes as a file of a job, with the check sum of a writer. What was accepted, written again, means the same. */
static void job_file(const uint8_t *data, size_t size)
{
    enum { SUM_BYTES = 21 };
    char text[KP_JOB_BYTES], other[KP_JOB_BYTES], sum[SUM_BYTES + 1];
    struct kp_job_call call, call_again;
    struct kp_job_answer answer, answer_again;
    if (size > KP_JOB_BYTES - SUM_BYTES) size = KP_JOB_BYTES - SUM_BYTES;
    memset(text, ' ', sizeof text);
    memcpy(text, data, size);
    snprintf(sum, sizeof sum, " sum=%016llx", (unsigned long long)kp_hash64(text, size));
    memcpy(text + size, sum, SUM_BYTES);
    if (kp_job_call_parse(text, &call)) {
        kp_job_call_print(&call, other);
        demand(kp_job_call_parse(other, &call_again) && memcmp(&call, &call_again, sizeof call) == 0);
    }
    if (kp_job_answer_parse(text, &answer)) {
        kp_job_answer_print(&answer, other);
        demand(kp_job_answer_parse(other, &answer_again));
        demand(answer.id == answer_again.id && answer.pidspace == answer_again.pidspace);
        demand(strcmp(answer.host, answer_again.host) == 0 && strcmp(answer.phase, answer_again.phase) == 0);
    }
    memcpy(text, data, size); /* and as it came */
    (void)kp_job_call_parse(text, &call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_ctl_request request;
    char why[100] = "";
    job_file(data, size);
    if (size > KP_CTL_LINE_MAX) return 0;
    char *const line = malloc(size + 1);
    memcpy(line, data, size);
    line[size] = 0;
    if (kp_ctl_parse(line, &request, why, sizeof why) == 0) again(&request);
    else demand(why[0] && strlen(why) < sizeof why - 1);
    free(line);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * callback.c - subscribers, and what they are told
 *
 * v1: one subscriber, the second is refused (39). v2 (13.0+): the refused one is told who was first; from 13.2 on
 * several may subscribe when all of them allow it.
 */
#include "test/doubles/simgpu/cupti/simcupti.h"

#include <stdio.h>
#include <string.h>

enum { DOMAIN_DRIVER = 1, DOMAIN_RUNTIME, DOMAIN_RESOURCE, DOMAIN_SYNCHRONIZE, DOMAIN_NVTX, DOMAIN_STATE, DOMAINS };

static struct subscriber {
    simcupti_callback_fn callback;
    void *user;
    bool is_taken, allows_others;
    char name[64];
    bool enabled[DOMAINS][CBID_WORDS * 32];
} subscribers[SUBSCRIBERS];

struct subscriber_params { /* CUpti_SubscriberParams */
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
    uint8_t allows_others;
};

struct callback_data { /* CUpti_CallbackData, 72 bytes */
    uint32_t site;
    const char *function;
    const void *params;
    const void *result;
    const char *symbol;
    void *context;
    uint32_t context_id;
    uint64_t *correlation_data;
    uint32_t correlation;
};
_Static_assert(sizeof(struct callback_data) == 72, "as CUPTI's");

/* --- telling --- */

static bool wants(const struct subscriber *subscriber, int domain, uint32_t cbid)
{
    return subscriber->is_taken && cbid < CBID_WORDS * 32 && subscriber->enabled[domain][cbid];
}

static void *current_context(void)
{
    const struct simgpu_core *core = simcupti_core();
    return core->current_context ? core->current_context() : NULL;
}

static uint32_t current_context_id(void)
{
    const struct simgpu_core *core = simcupti_core();
    uint32_t context = 0;
    if (core->stream_id) core->stream_id(NULL, &context);
    return context;
}

static void bare_name(char *name, size_t size, const char *with_version)
{
    snprintf(name, size, "%s", with_version ? with_version : "");
    char *version = strstr(name, "_v");
    if (version && version[2] >= '0' && version[2] <= '9' && strlen(version) > 4) *version = 0; /* _v7000, not _v2 */
}

void simcupti_tell_api(const struct simgpu_call *call, bool is_exit, uint64_t *data)
{
    for (int i = 0; i < SUBSCRIBERS; i++) {
        if (!wants(&subscribers[i], (int)call->domain, call->cbid)) continue;
        char name[128];
        bare_name(name, sizeof name, call->name);
        struct callback_data about = {.site = is_exit,
                                      .function = name,
                                      .params = call->params,
                                      .result = &call->result,
                                      .symbol = call->symbol,
                                      .context = current_context(),
                                      .context_id = current_context_id(),
                                      .correlation_data = &data[i],
                                      .correlation = call->correlation};
        simcupti_in_client++;
        subscribers[i].callback(subscribers[i].user, (int)call->domain, call->cbid, &about);
        simcupti_in_client--;
    }
}

static void tell_plain(int domain, uint32_t cbid, const void *data)
{
    for (int i = 0; i < SUBSCRIBERS; i++) {
        if (!wants(&subscribers[i], domain, cbid)) continue;
        simcupti_in_client++;
        subscribers[i].callback(subscribers[i].user, domain, cbid, data);
        simcupti_in_client--;
    }
}

void simcupti_tell_resource(uint32_t cbid, void *stream)
{
    struct {
        void *context, *handle, *descriptor;
    } data = {current_context(), stream, NULL};
    tell_plain(DOMAIN_RESOURCE, cbid, &data);
}

void simcupti_tell_sync(uint32_t cbid)
{
    struct {
        void *context, *stream;
    } data = {current_context(), NULL};
    tell_plain(DOMAIN_SYNCHRONIZE, cbid, &data);
}

/* --- subscribing --- */

static const char *first_subscriber(void)
{
    for (int i = 0; i < SUBSCRIBERS; i++)
        if (subscribers[i].is_taken) return subscribers[i].name;
    return simcupti_set.other_tool;
}

static bool do_all_allow_others(void)
{
    for (int i = 0; i < SUBSCRIBERS; i++)
        if (subscribers[i].is_taken && !subscribers[i].allows_others) return false;
    return !simcupti_set.other_tool && simcupti_set.version >= 130200 && simcupti_set.is_multi_allowed;
}

static int take_subscriber(void **handle, simcupti_callback_fn callback, void *user, const char *name,
                           bool allows_others)
{
    for (int i = 0; i < SUBSCRIBERS; i++) {
        if (subscribers[i].is_taken) continue;
        memset(&subscribers[i], 0, sizeof subscribers[i]);
        subscribers[i].callback = callback;
        subscribers[i].user = user;
        subscribers[i].allows_others = allows_others;
        snprintf(subscribers[i].name, sizeof subscribers[i].name, "CUPTI for %s", name ? name : "");
        subscribers[i].is_taken = true;
        *handle = &subscribers[i];
        simcupti_observe();
        return CUPTI_OK;
    }
    return CUPTI_MULTIPLE_SUBSCRIBERS;
}

static int subscribe(void **handle, simcupti_callback_fn callback, void *user)
{
    if (!handle || !callback) return CUPTI_INVALID_PARAMETER;
    if (first_subscriber()) return CUPTI_MULTIPLE_SUBSCRIBERS;
    return take_subscriber(handle, callback, user, NULL, false);
}

static int subscribe_v2(void **handle, simcupti_callback_fn callback, void *user, struct subscriber_params *params)
{
    if (!handle || !params || params->size < 32) return CUPTI_INVALID_PARAMETER;
    bool allows_others = params->size > offsetof(struct subscriber_params, allows_others) && params->allows_others;
    const char *first = first_subscriber();
    if (first) {
        if (params->old_name && params->old_size) snprintf(params->old_name, params->old_size, "%s", first);
        if (!allows_others || !do_all_allow_others()) return CUPTI_MULTIPLE_SUBSCRIBERS;
    }
    return take_subscriber(handle, callback, user, params->name, allows_others);
}

bool simcupti_is_subscriber(const void *handle)
{
    for (int i = 0; i < SUBSCRIBERS; i++)
        if (handle == &subscribers[i] && subscribers[i].is_taken) return true;
    return false;
}

void simcupti_unsubscribe_all(void)
{
    for (int i = 0; i < SUBSCRIBERS; i++) subscribers[i].is_taken = false;
}

static int unsubscribe(void *handle)
{
    if (!simcupti_is_subscriber(handle)) return CUPTI_INVALID_PARAMETER;
    ((struct subscriber *)handle)->is_taken = false;
    return CUPTI_OK;
}

/* domain 0: all; cbid UINT32_MAX: all of the domain */
static int set_enabled(bool is_on, void *handle, uint32_t domain, uint32_t cbid)
{
    if (!simcupti_is_subscriber(handle) || domain >= DOMAINS || (cbid != UINT32_MAX && cbid >= CBID_WORDS * 32))
        return CUPTI_INVALID_PARAMETER;
    struct subscriber *subscriber = handle;
    for (uint32_t d = 1; d < DOMAINS; d++)
        for (uint32_t c = 0; c < CBID_WORDS * 32; c++)
            if ((!domain || d == domain) && (cbid == UINT32_MAX || c == cbid)) subscriber->enabled[d][c] = is_on;
    return CUPTI_OK;
}

static int get_enabled(uint32_t *enable, void *handle, uint32_t domain, uint32_t cbid)
{
    if (!enable || !simcupti_is_subscriber(handle) || !domain || domain >= DOMAINS || cbid >= CBID_WORDS * 32)
        return CUPTI_INVALID_PARAMETER;
    *enable = ((struct subscriber *)handle)->enabled[domain][cbid];
    return CUPTI_OK;
}

/* --- exports --- */

CUPTI_API int cuptiSubscribe(void **handle, simcupti_callback_fn callback, void *user)
{
    API(CALL_GPU, callback, user, subscribe(handle, callback, user));
}

CUPTI_API int cuptiSubscribe_v2(void **handle, simcupti_callback_fn callback, void *user, void *params)
{
    API(CALL_GPU, callback, user, subscribe_v2(handle, callback, user, params));
}

CUPTI_API int cuptiUnsubscribe(void *handle) { API(CALL_FREE, handle, 0, unsubscribe(handle)); }

CUPTI_API int cuptiEnableCallback(uint32_t enable, void *handle, uint32_t domain, uint32_t cbid)
{
    API(CALL_FREE, domain, cbid, domain ? set_enabled(enable, handle, domain, cbid) : CUPTI_INVALID_PARAMETER);
}

CUPTI_API int cuptiEnableDomain(uint32_t enable, void *handle, uint32_t domain)
{
    API(CALL_FREE, enable, domain, domain ? set_enabled(enable, handle, domain, UINT32_MAX) : CUPTI_INVALID_PARAMETER);
}

CUPTI_API int cuptiEnableAllDomains(uint32_t enable, void *handle)
{
    API(CALL_FREE, enable, 0, set_enabled(enable, handle, 0, UINT32_MAX));
}

CUPTI_API int cuptiGetCallbackState(uint32_t *enable, void *handle, uint32_t domain, uint32_t cbid)
{
    API(CALL_FREE, domain, cbid, get_enabled(enable, handle, domain, cbid));
}

CUPTI_API int cuptiSupportedDomains(size_t *count, const uint32_t **table)
{
    static const uint32_t domains[] = {DOMAIN_DRIVER,      DOMAIN_RUNTIME, DOMAIN_RESOURCE,
                                       DOMAIN_SYNCHRONIZE, DOMAIN_NVTX,    DOMAIN_STATE};
    size_t known = simcupti_set.version >= 20 ? 6 : 5;
    API(CALL_FREE, count, 0, count && table ? (*count = known, *table = domains, CUPTI_OK) : CUPTI_INVALID_PARAMETER);
}

// SPDX-License-Identifier: Apache-2.0
/* client.c - NVTX through NVIDIA's own header, in every form that libkprof handles; prints what its calls returned */
#include <nvtx3/nvToolsExt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The binary interface that preload/nvtx/nvtx.h states. */
_Static_assert(sizeof(nvtxEventAttributes_t) == 48 && offsetof(nvtxEventAttributes_t, size) == 2, "event attributes");
_Static_assert(offsetof(nvtxEventAttributes_t, messageType) == 32 && offsetof(nvtxEventAttributes_t, message) == 40,
               "message");
_Static_assert(NVTX_MESSAGE_TYPE_ASCII == 1 && NVTX_MESSAGE_TYPE_UNICODE == 2 && NVTX_MESSAGE_TYPE_REGISTERED == 3,
               "forms");
_Static_assert(NVTX_NO_PUSH_POP_TRACKING == -2, "what push answers without a tool");
_Static_assert(sizeof(NvtxExportTableCallbacks) == 16 && NVTX_ETID_CALLBACKS == 1, "export table");
_Static_assert(NVTX_CB_MODULE_CORE == 1 && NVTX_CB_MODULE_CORE2 == 5, "modules");
_Static_assert(NVTX_CBID_CORE_MarkEx == 1 && NVTX_CBID_CORE_RangeEnd == 7 && NVTX_CBID_CORE_RangePushEx == 8 &&
                   NVTX_CBID_CORE_RangePop == 11,
               "core");
_Static_assert(NVTX_CBID_CORE2_DomainMarkEx == 1 && NVTX_CBID_CORE2_DomainRangePop == 5 &&
                   NVTX_CBID_CORE2_DomainRegisterStringA == 10 && NVTX_CBID_CORE2_DomainCreateW == 13,
               "domains");

int main(void)
{
    const char *before = getenv("NVTX_INJECTION64_PATH");
    int sum = nvtxRangePushA("outer");
    nvtxEventAttributes_t attributes = {0};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "with attributes";
    sum += nvtxRangePushEx(&attributes);
    sum += nvtxRangePushW(L"wide \u20ac");
    nvtxMarkA("mark");
    sum += nvtxRangePop();
    sum += nvtxRangePop();
    nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    sum += nvtxDomainRangePushEx(domain, &attributes);
    sum += nvtxDomainRangePop(domain);
    nvtxRangeId_t id = nvtxRangeStartA("started");
    nvtxRangeEnd(id);
    nvtxNameOsThreadA(1, "not handled");
    nvtxDomainDestroy(domain);
    sum += nvtxRangePop();
    for (int i = 0; i < 1000; i++) {
        nvtxRangePushA("many");
        nvtxRangePop();
    }
    const char *after = getenv("NVTX_INJECTION64_PATH");
    printf("%d %s\n", sum, (before == NULL) == (after == NULL) ? "same" : "changed");
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * comms.c - what a COMMS record says, checked
 *
 * Called by: events.c, for the record behind a record_param_comms
 * On fail:   false: too short for what it counts, or no such record. The record is copied first, since the file may change under us.
 */
#include <string.h>

#include "collector/read/reader.h"
#include "collector/base/kp_poison.h"

bool kp_comms_read(struct kp_comms *out, const struct kp_rec *rec, uint32_t bytes)
{
    uint32_t values = 0;
    if (rec->kind != KP_KIND_COMMS || bytes < sizeof out->rec) return false;
    memset(out, 0, sizeof *out);
    memcpy(out, rec, bytes < sizeof *out ? bytes : sizeof *out);
    for (int i = 0; i < KP_COMMS_LISTS; i++) values += kp_comms_shown(out->rec.count[i]);
    return bytes >= sizeof out->rec + values * sizeof *out->values;
}

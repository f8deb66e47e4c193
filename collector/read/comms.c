// SPDX-License-Identifier: Apache-2.0
/*
 * comms.c - reads and checks a COMMS record
 *
 * Called by: events.c, for the record after a record_param_comms
 * On fail:   false if it is another record, or too short for its counts. The record is copied first, since the file
 *            may change.
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

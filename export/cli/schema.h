// SPDX-License-Identifier: Apache-2.0
/* schema.h - the JSON Schema of what a command prints with --json */
#pragma once

#include "export/show/fields.h"

void kp_cli_schema(const char *command); /* prints it */
/* Of commands that have no header. */
extern const struct kp_fields *const kp_config_schema,
    *const kp_doctor_schema, *const kp_events_schema, *const kp_path_schema, *const kp_recovered_schema,
                                                                                 *const kp_stacks_schema;

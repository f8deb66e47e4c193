// SPDX-License-Identifier: Apache-2.0
/* adviceprint.h - writes the advice of a trace: text for people, a line of JSON for programs */
#pragma once

#include <stdio.h>

#include "export/answers/advise/advise.h"

extern const char kp_adviceprint_schema[]; /* the JSON Schema of such a line */
void kp_adviceprint_finding(FILE *out, const struct kp_finding *finding, size_t of_steps);
void kp_adviceprint_finding_json(FILE *out, const struct kp_finding *finding);
void kp_adviceprint_text(FILE *out, const struct kp_advice *advice, const struct kp_chosen *chosen);
void kp_adviceprint_json(FILE *out, const struct kp_advice *advice, const char *label);

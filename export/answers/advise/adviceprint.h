// SPDX-License-Identifier: Apache-2.0
/* adviceprint.h - writes the advice of a trace: text for people, a line of JSON for programs */
#pragma once

#include <stdio.h>

#include "export/answers/advise/parts/finding.h"
#include "export/show/fields.h"

void kp_adviceprint_finding(FILE *out, const struct kp_finding *finding, size_t of_steps);
/* A line of how the program ended, where it did not by itself. */
void kp_adviceprint_ended(FILE *out, const struct kp_advice *advice);
void kp_adviceprint_text(FILE *out, const struct kp_advice *advice);
void kp_adviceprint_json(FILE *out, const struct kp_advice *advice, const char *label);
extern const char *const kp_advice_part_names[KP_SPLIT_PARTS]; /* as JSON has them */
extern const struct kp_fields *const kp_adviceprint_schema;    /* of such a line */
/* Copies every text of one of these into `texts`, so that it outlives its trace or ranks. */
void kp_finding_keep(struct kp_finding *finding, struct kp_strings *texts);
void kp_advice_keep(struct kp_advice *advice, struct kp_strings *texts);

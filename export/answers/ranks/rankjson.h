// SPDX-License-Identifier: Apache-2.0
/* rankjson.h - what all traces of a job tell together, as one line of JSON */
#pragma once

#include "export/answers/ranks/rankwaits.h"
#include "export/show/fields.h"

/*
 * {"ranks":{"stuck":null,"missing":null,"matched":3,"last":1,"cause":...,"turns":[],
 * "rows":[{"rank":0,"last":0,"waited_ms":1.3}]}}
 * `stands`: how the job stands, NULL: it does not. As in text no rank is the last of such a job, or of one whose ranks
 * are not all there. Nothing is printed of one rank that goes on.
 */
void kp_rankjson_print(FILE *out, const struct kp_rankwaits *w, const char *stands);
extern const struct kp_fields *const kp_rankjson_schema;

// SPDX-License-Identifier: Apache-2.0
/* html.h - text inside HTML and SVG */
#ifndef KP_HTML_H
#define KP_HTML_H

#include <stdio.h>

void kp_html_text(FILE *out,
                  const char *text); /* as text or in an attribute; control characters but line breaks are left out */

#endif

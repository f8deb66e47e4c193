// SPDX-License-Identifier: Apache-2.0
/* html.h - writes text into HTML and SVG */
#pragma once

#include <stdio.h>

/* Writes text for an element or an attribute. Control characters become \xNN, but line breaks stay. */
void kp_html_text(FILE *out, const char *text);
/* The style that page, flame graphs and memory share: look.S, look.css. */
extern const char kp_html_look_css[];
/* The button of a page that turns it dark or light, and its script. */
#define KP_HTML_SCHEME_BUTTON \
    "<button id=\"scheme\" type=\"button\" aria-label=\"Dark\" title=\"Dark or light\">\u25d0</button>\n"
extern const char kp_html_scheme_js[];

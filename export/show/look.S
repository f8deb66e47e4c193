// SPDX-License-Identifier: Apache-2.0
/* look.S - the style that page, flame graphs and memory share, and the script of their button, as they lie here */
.section .rodata
.global kp_html_look_css
.hidden kp_html_look_css
kp_html_look_css:
.incbin "export/show/look.css"
.byte 0
.global kp_html_scheme_js
.hidden kp_html_scheme_js
kp_html_scheme_js:
.incbin "export/show/scheme.js"
.byte 0
.section .note.GNU-stack,"",%progbits

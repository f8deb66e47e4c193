// SPDX-License-Identifier: Apache-2.0
/* look.S - the style that page, flame graphs and memory share, as it lies in this folder */
.section .rodata
.global kp_html_look_css
.hidden kp_html_look_css
kp_html_look_css:
.incbin "export/show/look.css"
.byte 0
.section .note.GNU-stack,"",%progbits

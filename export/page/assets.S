// SPDX-License-Identifier: Apache-2.0
/* assets.S - the page's style, text and script, as they lie in this folder */
.section .rodata
.macro part name
.global kp_page_\name
.hidden kp_page_\name
kp_page_\name:
.endm
part css
.incbin "export/page/page.css"
part css_end
part body
.incbin "export/page/body.html"
part body_end
part script
.incbin "export/page/data.js"
.incbin "export/page/shell.js"
.incbin "export/page/table.js"
.incbin "export/page/ranks.js"
.incbin "export/page/steps.js"
.incbin "export/page/timeline.js"
.incbin "export/page/treemap.js"
.incbin "export/page/flameview.js"
.incbin "export/page/memoryview.js"
.incbin "export/page/start.js"
part script_end
.section .note.GNU-stack,"",%progbits

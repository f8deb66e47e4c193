// SPDX-License-Identifier: Apache-2.0
/* assets.S - the page's style, text and script, as they lie in this folder, and what docs say of findings */
.section .rodata
.macro part name
.global kp_page_\name
.hidden kp_page_\name
kp_page_\name:
.endm
part css
.incbin "export/answers/page/page.css"
part css_end
part body
.incbin "export/answers/page/body.html"
part body_end
part script
.incbin "export/answers/page/data.js"
.incbin "export/answers/page/shell.js"
.incbin "export/answers/page/table.js"
.incbin "export/answers/page/ranks.js"
.incbin "export/answers/page/steps.js"
.incbin "export/answers/page/timeline.js"
.incbin "export/answers/page/timearea.js"
.incbin "export/answers/page/treemap.js"
.incbin "export/answers/page/flameview.js"
.incbin "export/answers/page/memoryview.js"
.incbin "export/answers/page/start.js"
part script_end
part findings
.incbin "docs/reference/findings.md"
part findings_end
.section .note.GNU-stack,"",%progbits

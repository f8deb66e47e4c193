// SPDX-License-Identifier: Apache-2.0
/* memassets.S - the scripts of the curve, as they lie in this folder */
.section .rodata
.macro part name
.global kp_memcurve_\name
.hidden kp_memcurve_\name
kp_memcurve_\name:
.endm
part script
.incbin "export/show/units.js"
.incbin "export/answers/memory/curve.js"
part script_end
.incbin "export/answers/memory/curvefile.js"
part file_end
.section .note.GNU-stack,"",%progbits

/* flameassets.S - the scripts of flame graphs, as they lie in this folder */
.section .rodata
.macro part name
.global kp_flame_\name
.hidden kp_flame_\name
kp_flame_\name:
.endm
part script
.incbin "export/answers/stacks/flame.js"
part script_end
.incbin "export/answers/stacks/flamefile.js"
part file_end
.section .note.GNU-stack,"",%progbits

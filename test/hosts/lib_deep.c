// SPDX-License-Identifier: Apache-2.0
/* lib_deep.c - lies in a folder that only one library's RUNPATH names */
int deep_answer(void);
int deep_answer(void) { return 7; }

// SPDX-License-Identifier: Apache-2.0
/* libc_calls.h - turns calls of the C library into those of libc.h; the Makefile puts it in front of each source */
#pragma once

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/report/libc.h"

#undef putc
#undef stderr
#define malloc kp_rt_malloc
#define calloc kp_rt_calloc
#define realloc kp_rt_realloc
#define free kp_rt_free
#define exit kp_rt_exit
#define qsort kp_rt_qsort
#define qsort_r kp_rt_qsort_r
#define log10 kp_rt_log10
#define pow kp_rt_pow
#define FILE struct kp_rt_file
#define stderr kp_rt_stderr()
#define open_memstream kp_rt_memstream
#define fclose kp_rt_fclose
#define fputs kp_rt_fputs
#define fputc kp_rt_fputc
#define putc kp_rt_fputc
#define fwrite kp_rt_fwrite
#define fprintf kp_rt_fprintf
#define asprintf kp_rt_asprintf

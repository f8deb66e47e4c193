// SPDX-License-Identifier: Apache-2.0
/*
 * libc.h - what the code that reads traces gets inside the host in place of the C library's heap, files and mathematics
 *
 * The same sources make the tables, stacks and memory pages of `kprof` and those that KPROF_EXPORT asks for. In the
 * command they have malloc, stdio and exit. The Makefile compiles them a second time for the library with this header
 * in front (-include): memory comes from a file (docs/decisions/017), and where it ends, exit() leaves only
 * kp_inhost_run.
 */
#ifndef KP_INHOST_LIBC_H
#define KP_INHOST_LIBC_H

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A heap over a file without a name in `dir`; one at a time, all of it goes with _end. 0 or -errno. */
int kp_inhost_begin(const char *dir);
void kp_inhost_end(void);
/* Runs fn with numbers printed as in C whatever the host's locale; its result, or -ENOMEM where it called exit(). */
int kp_inhost_run(int (*fn)(void *context), void *context);

void *kp_inhost_malloc(size_t bytes);
void *kp_inhost_calloc(size_t items, size_t bytes);
void *kp_inhost_realloc(void *p, size_t bytes);
void kp_inhost_free(void *p);
void kp_inhost_exit(int status) __attribute__((noreturn));
void kp_inhost_qsort(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *));
void kp_inhost_qsort_r(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *, void *),
                       void *context);
double kp_inhost_log10(double x);           /* its whole part, from 1 on: enough for a power of a thousand */
double kp_inhost_pow(double ten, double n); /* 10 to the -15th up to the 0th */

struct kp_inhost_file;
struct kp_inhost_file *kp_inhost_fopen(const char *path, const char *mode); /* always a new file, to write */
struct kp_inhost_file *kp_inhost_memstream(char **text, size_t *bytes);
int kp_inhost_fclose(struct kp_inhost_file *file); /* 0: all of it is on the disk */
int kp_inhost_fputs(const char *text, struct kp_inhost_file *file);
int kp_inhost_fputc(int c, struct kp_inhost_file *file);
size_t kp_inhost_fwrite(const void *data, size_t bytes, size_t items, struct kp_inhost_file *file);
int kp_inhost_fprintf(struct kp_inhost_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
int kp_inhost_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifndef KP_INHOST_ITSELF
#undef putc
#undef stderr
#define malloc kp_inhost_malloc
#define calloc kp_inhost_calloc
#define realloc kp_inhost_realloc
#define free kp_inhost_free
#define exit kp_inhost_exit
#define qsort kp_inhost_qsort
#define qsort_r kp_inhost_qsort_r
#define log10 kp_inhost_log10
#define pow kp_inhost_pow
#define FILE struct kp_inhost_file
#define stderr ((struct kp_inhost_file *)0) /* nothing is said in the host but by the log */
#define fopen kp_inhost_fopen
#define open_memstream kp_inhost_memstream
#define fclose kp_inhost_fclose
#define fputs kp_inhost_fputs
#define fputc kp_inhost_fputc
#define putc kp_inhost_fputc
#define fwrite kp_inhost_fwrite
#define fprintf kp_inhost_fprintf
#define asprintf kp_inhost_asprintf
#endif

#endif

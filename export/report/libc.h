// SPDX-License-Identifier: Apache-2.0
/*
 * libc.h - memory, files and sorting for the code that reads traces
 *
 * The same objects make the tables, stacks and memory pages of `kprof` and of KPROF_EXPORT. The command implements
 * these functions by the C library (export/incommand). Inside the host they use a heap over a file (export/inhost,
 * docs/decisions/017), and exit() leaves only kp_rt_run.
 *
 * Sources of report, report/memory and extras call malloc and fputs as usual: the Makefile puts libc_calls.h in front
 * of them. A struct kp_rt_file is a FILE of the command, or inhost's own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_export_owner;
struct kp_rt_file;

/* The first and the last call of an export, one export at a time. inhost's heap lies in `dir`. Returns 0 or -errno. */
int kp_rt_begin(const char *dir);
bool kp_rt_end(void); /* true: it freed all memory; false: the caller frees each piece */
/* Runs fn and returns its result. inhost: in the locale C, and -ENOMEM if fn called exit(). */
int kp_rt_run(int (*fn)(void *context), void *context);

void *kp_rt_malloc(size_t bytes);
void *kp_rt_calloc(size_t items, size_t bytes);
void *kp_rt_realloc(void *p, size_t bytes);
void kp_rt_free(void *p);
void kp_rt_exit(int status) __attribute__((noreturn));
void kp_rt_qsort(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *));
void kp_rt_qsort_r(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *, void *),
                   void *context);
double kp_rt_log10(double x);           /* inhost: only its whole part, of x from 1 on */
double kp_rt_pow(double ten, double n); /* inhost: only 10 to the -15th up to the 0th */

/* Creates a file to write. Returns NULL with errno, also if it exists (EEXIST). inhost ignores `owner`. */
void *kp_rt_fopen(const char *path, const struct kp_export_owner *owner);
int kp_rt_give(void *file, const struct kp_export_owner *owner); /* gives it to `owner`: 0 or -errno */
struct kp_rt_file *kp_rt_memstream(char **text, size_t *bytes);
struct kp_rt_file *kp_rt_stderr(void);     /* inhost: NULL, and nothing is printed */
int kp_rt_fclose(struct kp_rt_file *file); /* 0: all was written, and by inhost synced */
int kp_rt_fputs(const char *text, struct kp_rt_file *file);
int kp_rt_fputc(int c, struct kp_rt_file *file);
size_t kp_rt_fwrite(const void *data, size_t bytes, size_t items, struct kp_rt_file *file);
int kp_rt_fprintf(struct kp_rt_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
int kp_rt_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

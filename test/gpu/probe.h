// SPDX-License-Identifier: Apache-2.0
/*
 * probe.h - what the questions of gpu-check share: CUPTI and the driver by dlsym (no NVIDIA header), one kernel, one
 * buffer pool
 *
 * Answers are lines "name: value" on stdout. A probe never asks what could harm the machine: no reset, no profiling
 * counters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KIND_MEMCPY = 1, KIND_DRIVER = 4, KIND_RUNTIME = 5, KIND_KERNEL = 10 };
enum { PROBE_BUFFER = 1 << 20, PROBE_RECORDS = 1 << 16 };

typedef void request_fn(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

struct cupti { /* members are NULL where this release lacks the function */
    int (*get_version)(uint32_t *version);
    int (*register_callbacks)(request_fn *request, complete_fn *complete);
    int (*enable)(uint32_t kind);
    int (*disable)(uint32_t kind);
    int (*flush)(uint32_t flag);
    int (*next)(uint8_t *buffer, size_t valid, uint8_t **record);
    int (*struct_size)(uint32_t kind, uint32_t what, size_t *size);
    int (*timestamp)(uint64_t *time);
    int (*subscribe)(void **subscriber, void *callback, void *arg);
    int (*unsubscribe)(void *subscriber);
    int (*enable_driver_api)(uint32_t cbid, uint8_t on);
    int (*get_attribute)(uint32_t attribute, size_t *bytes, void *value);
    int (*finalize)(void);
    int (*result_string)(int result, const char **text);
};

struct driver {
    int (*init)(unsigned);
    int (*version)(int *);
    int (*device_name)(char *, int, int);
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
    int (*module_load)(void **module, const void *image);
    int (*module_function)(void **function, void *module, const char *name);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **);
    int (*synchronize)(void);
    int (*alloc)(uint64_t *address, size_t bytes);
    int (*memory)(size_t *free, size_t *total);
    int (*stream_create)(void **stream, unsigned flags);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*graph_launch)(void *executable, void *stream);
};

extern struct cupti cupti;
extern struct driver driver;

void probe_open(const char *cupti_path); /* ends the program when a library is not there */
void probe_begin(void);                  /* cuInit, context, kernel */
void probe_launch(int times);            /* kernels of some microseconds, on the legacy stream */
void probe_launch_on(void *stream, int times);
void probe_spin(uint64_t ns); /* one kernel that lasts so long */
void probe_wait(void);
void probe_must(int result, const char *what); /* ends the program */
void probe_say(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t probe_now(int clock);
uint32_t probe_u32(const uint8_t *record, size_t at);
uint64_t probe_u64(const uint8_t *record, size_t at);

/* A client: its buffers, who asked for them, and a copy of the records that came. */
struct client {
    int requested, completed;
    int request_tids, complete_tids; /* how many different threads called */
    uint64_t request_tid[64], complete_tid[64];
    size_t records_n;
    struct {
        uint32_t kind, thread, correlation;
        uint64_t start, end;
    } records[PROBE_RECORDS];
};
extern struct client client_a, client_b;
void probe_client(struct client *client); /* registers its callbacks */
size_t probe_count(const struct client *client, uint32_t kind);

int ask_register(void);
int ask_strides(void);
int ask_threads(void);
int ask_clock(int idle_s);
int ask_thread_id(void);
int ask_launch_cost(void);
int ask_filters(void);
int ask_subscriber(void);
int ask_slow_calls(void);
int ask_soak(int seconds);

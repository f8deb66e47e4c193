// SPDX-License-Identifier: Apache-2.0
/* hangread.h - where the threads of processes stand, as each process wrote it (preload/blackbox/where.c) */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kp_hang_frame {
    const char *file, *function;
    long line; /* 0: it has none */
};
struct kp_hang_call {              /* a system call; "": not known */
    const char *name, *words, *on; /* "flock", "waits for the lock of a file", "/data/x.lock" */
};
struct kp_hang_thread {
    long tid;
    const char *name; /* "": not known */
    struct kp_hang_call call;
    char state; /* of proc(5) */
    bool is_main, is_cut, has_moved;
    struct kp_hang_frame *frames; /* of Python, the innermost first */
    size_t frame_count, frame_capacity;
};
struct kp_hang_collective {
    const char *name;
    long begun, ended;
    double since_ms; /* the last one began so long ago */
};
struct kp_hang_child {
    struct kp_hang_thread main;     /* its tid is the child's pid */
    struct kp_hang_thread *threads; /* its others, of which the first few are told */
    size_t thread_count, thread_capacity;
    bool is_over;
    bool is_spawned; /* an interpreter of its own, not forked from its parent's */
    int status;      /* as wait(2) has it; -1: not known, or it runs */
    double ago_ms;   /* it ended so long before; 0: not known */
};
enum kp_hang_state {
    KP_HANG_TOLD,    /* its threads are known */
    KP_HANG_SILENT,  /* it runs, and does not answer */
    KP_HANG_STOPPED, /* a signal stopped it */
    KP_HANG_GONE,    /* its process is no more */
};
struct kp_hang_process {
    enum kp_hang_state state;
    long rank, size, pid; /* rank -1: of no job */
    bool is_of_file;      /* it was not asked: its file of KPROF_HANG tells */
    long step;
    double time_ms;                 /* when it was written, since the Unix epoch */
    const char *host, *job;         /* "": not known */
    const char *event;              /* "asked", "hang", "busy" */
    const char *python, *no_python; /* "3.11"; why its frames were not read; "" */
    long left_out;                  /* threads for which there was no room */
    struct kp_hang_thread *threads;
    size_t thread_count, thread_capacity;
    struct kp_hang_collective *collectives;
    size_t collective_count, collective_capacity;
    struct kp_hang_child *children; /* those that ended badly behind those that are there */
    size_t child_count, child_capacity;
    char *texts; /* what the strings above point into */
};
struct kp_hang { /* all zero: empty */
    struct kp_hang_process *of;
    size_t count, capacity;
};

/* Adds what a process wrote. False: that is no such text, with a phrase in *why. */
bool kp_hang_add(struct kp_hang *hang, const char *text, size_t bytes, const char **why);
/* Adds a process that wrote nothing. */
void kp_hang_add_silent(struct kp_hang *hang, enum kp_hang_state state, long pid, long rank, long size);
/* The process of that number; `host` "", and a process that says none, is of this machine. */
struct kp_hang_process *kp_hang_find(const struct kp_hang *hang, const char *host, long pid);
const struct kp_hang_thread *kp_hang_main(const struct kp_hang_process *process); /* its main thread, or NULL */
/* The innermost frame of the program's own, else the innermost; NULL: no frame. */
const struct kp_hang_frame *kp_hang_own(const struct kp_hang_thread *thread);
void kp_hang_drop_last(struct kp_hang *hang);
void kp_hang_sort(struct kp_hang *hang); /* by rank, then by process */
void kp_hang_fini(struct kp_hang *hang);

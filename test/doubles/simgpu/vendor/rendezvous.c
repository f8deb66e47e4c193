// SPDX-License-Identifier: Apache-2.0
/*
 * rendezvous.c - a table in shared memory: row = collective, column = rank, cell = when it entered
 *
 * A row is used again ROWS collectives later; by then every rank has left it, for each waits in every row.
 */
#include "test/doubles/simgpu/vendor/rendezvous.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 64, POLL_NS = 20000 };

struct cell {
    _Atomic uint64_t number; /* of the collective, + 1; stored after the value (release), read before it (acquire) */
    _Atomic uint64_t value;
};

struct table {
    struct cell here[RENDEZVOUS_RANKS];
    struct cell cells[ROWS][RENDEZVOUS_RANKS];
    unsigned char data[ROWS][RENDEZVOUS_RANKS][RENDEZVOUS_DATA];
};

struct rendezvous {
    struct table *table;
    int ranks;
    char path[128];
};

static void path_make(char *path, size_t bytes, const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *c = name; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    snprintf(path, bytes, "/dev/shm/simnccl-%016llx", (unsigned long long)hash);
}

struct rendezvous *rendezvous_join(const char *name, int ranks)
{
    struct rendezvous *meeting = calloc(1, sizeof *meeting);
    if (meeting == NULL) return NULL;
    meeting->ranks = ranks;
    path_make(meeting->path, sizeof meeting->path, name);
    void *memory = MAP_FAILED;
    int fd = open(meeting->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, sizeof(struct table)) == 0)
        memory = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (memory == MAP_FAILED) {
        free(meeting);
        return NULL;
    }
    meeting->table = memory;
    return meeting;
}

void rendezvous_leave(struct rendezvous *meeting)
{
    munmap(meeting->table, sizeof *meeting->table);
    free(meeting);
}

void rendezvous_forget(const char *name)
{
    char path[128];
    path_make(path, sizeof path, name);
    unlink(path);
}

static void cell_set(struct cell *cell, uint64_t number, uint64_t value)
{
    atomic_store_explicit(&cell->value, value, memory_order_relaxed);
    atomic_store_explicit(&cell->number, number + 1, memory_order_release);
}

static bool cells_wait(struct cell *cells, int ranks, uint64_t number, uint64_t wait_ms, uint64_t *values)
{
    struct timespec now, pause = {0, POLL_NS};
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t limit = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + wait_ms;
    for (int rank = 0; rank < ranks; rank++) {
        while (atomic_load_explicit(&cells[rank].number, memory_order_acquire) != number + 1) {
            clock_gettime(CLOCK_MONOTONIC, &now);
            if ((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 > limit) return false;
            nanosleep(&pause, NULL);
        }
        values[rank] = atomic_load_explicit(&cells[rank].value, memory_order_relaxed);
    }
    return true;
}

bool rendezvous_all_here(struct rendezvous *meeting, int rank, uint64_t wait_ms)
{
    uint64_t values[RENDEZVOUS_RANKS];
    cell_set(&meeting->table->here[rank], 0, 0);
    bool is_complete = cells_wait(meeting->table->here, meeting->ranks, 0, wait_ms, values);
    if (rank == 0) unlink(meeting->path);
    return is_complete;
}

void rendezvous_enter(struct rendezvous *meeting, int rank, uint64_t number, uint64_t value, const void *data,
                      size_t bytes)
{
    if (data != NULL && bytes <= RENDEZVOUS_DATA) memcpy(meeting->table->data[number % ROWS][rank], data, bytes);
    cell_set(&meeting->table->cells[number % ROWS][rank], number, value);
}

const void *rendezvous_data(const struct rendezvous *meeting, int rank, uint64_t number)
{
    return meeting->table->data[number % ROWS][rank];
}

bool rendezvous_values(struct rendezvous *meeting, uint64_t number, uint64_t wait_ms, uint64_t *values)
{
    return cells_wait(meeting->table->cells[number % ROWS], meeting->ranks, number, wait_ms, values);
}

bool rendezvous_wait(struct rendezvous *meeting, uint64_t number, uint64_t wait_ms, uint64_t *largest)
{
    uint64_t values[RENDEZVOUS_RANKS];
    *largest = 0;
    if (!rendezvous_values(meeting, number, wait_ms, values)) return false;
    for (int rank = 0; rank < meeting->ranks; rank++) *largest = values[rank] > *largest ? values[rank] : *largest;
    return true;
}

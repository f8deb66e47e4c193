// SPDX-License-Identifier: Apache-2.0
/*
 * rendezvous.h - where the ranks of a simulated communicator meet: a table in shared memory, one row a collective
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RENDEZVOUS_RANKS = 64, RENDEZVOUS_DATA = 4096 };

struct rendezvous;

struct rendezvous *rendezvous_join(const char *name, int ranks); /* NULL: no shared memory */
void rendezvous_leave(struct rendezvous *meeting);
void rendezvous_forget(const char *name); /* nobody else will join */
/* Waits until every rank called it, then the name is free again. */
bool rendezvous_all_here(struct rendezvous *meeting, int rank, uint64_t wait_ms);

/* With up to RENDEZVOUS_DATA bytes for the others; more are not passed on. */
void rendezvous_enter(struct rendezvous *meeting, int rank, uint64_t number, uint64_t value, const void *data,
                      size_t bytes);
const void *rendezvous_data(const struct rendezvous *meeting, int rank,
                            uint64_t number); /* after a wait for that number */
/* Waits until all ranks entered `number`: what each said; false after wait_ms. */
bool rendezvous_values(struct rendezvous *meeting, uint64_t number, uint64_t wait_ms, uint64_t *values);
bool rendezvous_wait(struct rendezvous *meeting, uint64_t number, uint64_t wait_ms, uint64_t *largest);

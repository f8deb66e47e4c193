// SPDX-License-Identifier: Apache-2.0
/*
 * idpages.h - a number for each id of a frame or stack
 *
 * The ids are places in the spool, so they lie close together. Pages of numbers take less memory than a hash table, and
 * neighbours share a cache line.
 */
#pragma once

#include <stdint.h>

struct kp_idpages {
    uint32_t **pages; /* all zero: empty */
};

/* The number of an id, 0 at first. It stays where it is until _fini. NULL: no memory. */
uint32_t *kp_idpages_at(struct kp_idpages *numbers, uint32_t id);
/* Asks for the memory of an id's number, which is looked up soon. */
void kp_idpages_prefetch(const struct kp_idpages *numbers, uint32_t id);
void kp_idpages_fini(struct kp_idpages *numbers);

// SPDX-License-Identifier: Apache-2.0
/* kp_room.h - takes room of a volume, and leaves a part of it free for the program */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kp_room {
    uint64_t left_free; /* bytes that stay free; 0: none, and all is given */
    uint64_t usable;    /* so many may be taken before the volume is looked at again */
};

/* The part of the volume of the folder at a path that is left free: 0 if it cannot be looked at. */
uint64_t kp_room_left_free_of(const char *folder);
/* Takes so many bytes for a file of the volume. False: what is left is the program's. Owner's thread alone. */
bool kp_room_take(struct kp_room *room, int fd, uint64_t bytes);

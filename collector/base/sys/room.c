// SPDX-License-Identifier: Apache-2.0
/*
 * room.c - takes room of a volume, and leaves a part of it free for the program
 *
 * Called by: disk.c (the recording), sink.c (a trace that is written while the program runs)
 * Owns:      nothing
 * On fail:   a volume that cannot be looked at gives all: the write itself tells
 * Safe in:   signal handlers no; after fork yes
 */
#include "collector/base/sys/kp_room.h"

#include "collector/base/sys/kp_fskind.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_ROOM_USABLE (UINT64_C(16) << 20) /* after so many bytes what is free is looked up again */

uint64_t kp_room_left_free_of(const char *folder)
{
    struct kp_io_room now;
    return kp_io_room_of(folder, &now) == 0 ? kp_fskind_left_free(now.bytes, now.spare) : 0;
}

bool kp_room_take(struct kp_room *room, int fd, uint64_t bytes)
{
    struct kp_io_room now;
    if (!room->left_free) return true;
    if (room->usable < bytes) {
        if (kp_io_room_at(fd, &now) != 0) return true;
        room->usable = now.spare > room->left_free ? now.spare - room->left_free : 0;
        if (room->usable > KP_ROOM_USABLE && bytes <= KP_ROOM_USABLE) room->usable = KP_ROOM_USABLE;
    }
    if (room->usable < bytes) return false;
    room->usable -= bytes;
    return true;
}

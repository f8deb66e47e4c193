// SPDX-License-Identifier: Apache-2.0
/*
 * place.c - chooses the memory that holds records: a file in /dev/shm, or one without a path
 *
 * Called by: the opener (any host thread)
 * Owns:      nothing
 * On fail:   -errno: there is no memory for records
 * Safe in:   signal handlers no; after fork yes
 *
 * Records in a file of /dev/shm outlive the process, so SIGKILL loses none. The program and its workers may need
 * /dev/shm themselves (containers give it 64 MB), so it is used only where much is free. A file without a path ends
 * with the process: the writer then copies all records to the disk ten times a second (decisions/120).
 */
#include "collector/record/record_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_filecheck.h"
#include "collector/base/sys/kp_fskind.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/format/kp_half.h"
#include "collector/base/kp_poison.h"

#define MB UINT64_C(1048576)
#define KP_PLACE_SOME (16 * MB)  /* small things lie in /dev/shm where so much of it is free */
#define KP_PLACE_MOST (256 * MB) /* records take so much memory at most, by default */
#define KP_PLACE_LEAST (8 * MB)
#define KP_PLACE_OF_MEMORY 64u /* and such a part of what this process may have */
#define KP_PLACE_OF_SHM 8u     /* or of what is free in /dev/shm */

static bool has_much_free(struct kp_io_room *room)
{
    return kp_io_room_of(KP_HALF_ROOT, room) == 0 && kp_fskind_holds_records(room->type, room->spare);
}

/* Another user may have made a folder of this name. */
static int folder_open(char *path, size_t bytes)
{
    struct stat st;
    kp_fmt(path, bytes, KP_HALF_ROOT KP_HALF_FOLDER "%u", (unsigned)geteuid());
    const int rc = kp_io_mkdirs(path, 0700);
    const int fd = rc < 0 ? rc : kp_filecheck_open_folder(path);
    if (fd < 0 || (kp_io_fstat(fd, &st) == 0 && st.st_uid == geteuid())) return fd;
    kp_io_close(fd);
    return -EPERM;
}

int kp_record_folder_open(void)
{
    char path[64];
    struct kp_io_room room;
    if (kp_fail_point("shm") != 0 || kp_io_room_of(KP_HALF_ROOT, &room) != 0) return -ENOENT;
    const bool is_memory = kp_fskind_of(room.type)->place == KP_FSKIND_MEMORY;
    return is_memory && room.spare >= KP_PLACE_SOME ? folder_open(path, sizeof path) : -ENOENT;
}

static int shared_open(const char *name, char *path, size_t bytes)
{
    const int folder = folder_open(path, bytes);
    if (folder < 0) return folder;
    const int fd = kp_io_open_at(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    kp_io_close(folder);
    const size_t used = strlen(path);
    if (fd >= 0) kp_fmt(path + used, bytes - used, "/%s", name);
    return fd;
}

int kp_place_open(const char *name, char *path, size_t bytes)
{
    struct kp_io_room room;
    const bool is_shared = kp_fail_point("shm") == 0 && has_much_free(&room);
    int fd = is_shared ? shared_open(name, path, bytes) : -ENOSPC;
    if (fd >= 0) return fd;
    path[0] = '\0';
    return kp_io_memory_file(name);
}

static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint64_t kp_place_budget(uint64_t wanted, bool is_shared)
{
    struct kp_io_room room = {0};
    uint64_t bytes = least_of(KP_PLACE_MOST, kp_io_memory_limit() / KP_PLACE_OF_MEMORY);
    if (is_shared && kp_io_room_of(KP_HALF_ROOT, &room) == 0) bytes = least_of(bytes, room.spare / KP_PLACE_OF_SHM);
    if (wanted) bytes = wanted;
    return bytes < KP_PLACE_LEAST ? KP_PLACE_LEAST : bytes;
}

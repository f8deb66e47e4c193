// SPDX-License-Identifier: Apache-2.0
/* kp_loss.h - why records are lost: numbers in the spool's header */
#pragma once

/* Reasons why a record was dropped. The header's table counts them by kind. */
enum kp_loss {
    KP_LOSS_NO_CHUNK,
    KP_LOSS_CAP,
    KP_LOSS_DISK,
    KP_LOSS_NO_SLOT,
    KP_LOSS_TOO_BIG,
    KP_LOSS_NAME,
    KP_LOSS_REENTRY,
    KP_LOSS_QUOTA,   /* EDQUOT: the user's share of the disk is used up */
    KP_LOSS_LIMIT,   /* EFBIG: the process limits its files (RLIMIT_FSIZE) */
    KP_LOSS_STANDS,  /* the disk does not answer */
    KP_LOSS_RESERVE, /* left free for the program */
    KP_LOSS_N
};
enum { KP_LOSS_FIRST = 7, KP_LOSS_MORE = KP_LOSS_N - KP_LOSS_FIRST }; /* in the header's two tables */

// SPDX-License-Identifier: Apache-2.0
/*
 * kp_ends.h - HOST_PID.ends: how processes ended, as the process HOST_PID was told, and how it ended itself
 *
 * A line each: "PID STATUS NANOSECONDS", the status as wait(2) has it, the time since the Unix epoch. A launcher has
 * the lines of all children that ended badly, and a program that failed those of children that crashed shortly before.
 * That of the process itself goes on: " RANK STEP\tEXCEPTION\tPLACE\tlost_peer\tWAY\tROOT". Rank and last step are -1
 * where there is none, and the texts "". EXCEPTION is "ValueError: a text", or has no text. The line is there from the
 * first trace on (with KPROF_HANG from the first step on), with KP_ENDS_PENDING as its status until the process exits.
 * WAY is "exec of sh" where it became that program, which leaves the lines of exec before its own, or "_exit with
 * status 3 at train.py:41 main", or so "SIGABRT at train.py:41 main" and "exit status 3 at train.py:41 main (in
 * argparse.py:2620 exit)", "SIGABRT of std::runtime_error "no space" at train.py:41 main", or "SIGABRT of NCCL's
 * watchdog". ROOT is the exception that EXCEPTION came from: "KeyError "lr" at train.py:2 main".
 */
#pragma once

#define KP_ENDS_PENDING (-1)
#define KP_ENDS_EXEC "exec of "
#define KP_ENDS_WATCHDOG "SIGABRT of NCCL's watchdog"
enum { KP_ENDS_TEXT_MOST = 80, KP_ENDS_TEXT_BYTES = KP_ENDS_TEXT_MOST + 4 }; /* of an exception, and "..." */
enum { KP_ENDS_ROOT_BYTES = 320, KP_ENDS_LINE_BYTES = 1600 };

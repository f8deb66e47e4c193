// SPDX-License-Identifier: Apache-2.0
/*
 * fork.h - follows the host's forks
 */
#pragma once

struct kp_schedule;

/* Called once by the constructor, before the run is active. The schedule stays. 0 or -ENOMEM. */
int kp_fork_follow(const struct kp_schedule *schedule);

// SPDX-License-Identifier: Apache-2.0
/* setting_flags.h - flags made from config.def, for the commands that take settings */
#pragma once

#include <stddef.h>

#include "collector/base/kp_config.h"
#include "export/cli/cli.h"

/* The flag table: one row a setting (index = enum kp_config_index), ends with a row without a name. Built once. */
const struct kp_opt *kp_setting_flags(void);
/* The environment's settings, checked whole; complaints are kept inside. */
struct kp_config *kp_setting_flags_read(void);
/* Checks and sets one; NULL, or a line about what is wrong. */
const char *kp_setting_flags_set(struct kp_config *config, enum kp_config_index index, const char *value);

/*
 * Whether the dynamic linker will preload into this program. Returns 0, or an exit code as a shell gives it, with one
 * clear line in why. 127: not found, 126: cannot be executed, 1: cannot be preloaded into. path: where it was found.
 */
int kp_target_check(const char *command, char *path, size_t path_bytes, char *why, size_t why_bytes);
bool kp_target_is_program(const char *command); /* as execvp finds it */
/* The program that will really run: a script's interpreter (env looked through), else path itself. */
void kp_target_interpreter(const char *path, char *out, size_t size);

// SPDX-License-Identifier: Apache-2.0
/* topmodules.h - a row for each module, forward and backward together; a row for each class of modules */
#pragma once

#include "export/answers/top/toprows.h"

/*
 * Of rows by module: puts the backward of a module into its row. A row's total then has forward and backward, also of
 * the modules inside of it. By class it then makes one row of all modules of a class. Before ordering; nothing can be
 * added any more. Other rows stay.
 */
void kp_top_join_modules(struct kp_top *top);

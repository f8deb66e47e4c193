// SPDX-License-Identifier: Apache-2.0
/* injected.c - stands for a tool that the driver lets in: says that it was called */
#include <stdlib.h>

int InitializeInjection(void);
int InitializeInjection(void) { return setenv("SIM_TEST_INJECTED", "yes", 1) == 0; }

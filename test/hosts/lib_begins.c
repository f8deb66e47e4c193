// SPDX-License-Identifier: Apache-2.0
/* lib_begins.c - its constructor calls a function of another library that comes with it, 1,000 times */
int begun_call(int n);

__attribute__((constructor)) static void begin(void)
{
    for (int i = 0; i < 1000; i++) begun_call(1);
}

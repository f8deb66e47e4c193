// SPDX-License-Identifier: Apache-2.0
/* lib_calls.c - calls every function of lib_called.c by name, and has a table of pointers to them */
/* clang-format off */
#define F(n) int called_f##n(int x);
#define TEN(d) F(d##0) F(d##1) F(d##2) F(d##3) F(d##4) F(d##5) F(d##6) F(d##7) F(d##8) F(d##9)
TEN(0) TEN(1) TEN(2) TEN(3)
#undef F
    /* clang-format on */
    int calls_by_name(int which);
int calls_by_table(int which);
void calls_clear(void);
#define F(n) \
    case 1##n - 100: return called_f##n(0);
int calls_by_name(int which)
{
    switch (which) {
        TEN(0) TEN(1) TEN(2) TEN(3)
    }
    return -1;
}
#undef F
#define F(n) called_f##n,
static int (*table[])(int) = {TEN(0) TEN(1) TEN(2) TEN(3)};
int calls_by_table(int which) { return table[which](0); }
void calls_clear(void) /* the host's own use of its table */ { table[7] = called_f08; }

// SPDX-License-Identifier: Apache-2.0
/* lib_called.c - a library of forty functions, f00 to f39; each answers its number */
/* clang-format off */
#define F(n) int called_f##n(int x) { return x + 1##n - 100; }
#define TEN(d) F(d##0) F(d##1) F(d##2) F(d##3) F(d##4) F(d##5) F(d##6) F(d##7) F(d##8) F(d##9)
TEN(0) TEN(1) TEN(2) TEN(3)

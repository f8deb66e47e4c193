// SPDX-License-Identifier: Apache-2.0
/* empty_main.c - a program that does nothing: what matters is what it links */
int main(void) { return 0; }

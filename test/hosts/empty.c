// SPDX-License-Identifier: Apache-2.0
/* empty.c - the library that is preloaded in the run we compare with */
int kp_test_nothing;

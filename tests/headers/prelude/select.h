/* SPDX-License-Identifier: MIT */
/* What the fragments of pirn/select.h take for granted. */
void use(ssize_t n);
extern pirn_tcp_op reading;
extern pirn_sleep_op sleeping;

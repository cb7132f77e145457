/* SPDX-License-Identifier: MIT */
/* What the fragment of pirn/broadcast.h takes for granted. */
extern int rc;
extern int event;
extern pirn_broadcast_receiver *receiver;

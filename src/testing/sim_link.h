/* SPDX-License-Identifier: MIT */
/* src/testing/sim_link.h - connections of the simulated world and their ends. */
#ifndef PIRN_TESTING_SIM_LINK_H
#define PIRN_TESTING_SIM_LINK_H

#include "testing/sim.h"

/* One direction; counts of bytes since the beginning. */
struct pirn__sim_pipe {
    unsigned char *bytes;
    size_t room;
    uint64_t sent, arrived, read, acknowledged;
    uint64_t last_ns; /* nothing arrives before what was sent earlier */
    bool fin_sent, fin_arrived;
    bool wants_room; /* the sender found too little */
};

enum pirn__sim_end_state {
    PIRN__SIM_FRESH,
    PIRN__SIM_CONNECTING,
    PIRN__SIM_CONNECTED,
};

struct pirn__sim_link;

struct pirn__sim_end {
    struct pirn__sim_link *link;
    unsigned side;
    int fd;    /* -1: closed, or not accepted yet */
    bool open; /* somebody has it, or will */
    enum pirn__sim_end_state state;
    bool dead; /* a reset was sent or received */
    int error; /* to be told once, > 0 */
    bool shut_read;
    uint16_t port, peer_port;
    struct pirn__sim_pipe out;
};

struct pirn__sim_link {
    struct pirn__sim_end ends[2]; /* who connects, who accepts */
    uint64_t cut_until_ns;
    uint32_t tries;
    struct pirn__sim_link *next;
};

/* NULL: nobody listens there. */
struct pirn__sim_file *pirn__sim_listener_at(uint16_t port);
/* One that nobody had in this run. */
uint16_t pirn__sim_port_new(void);

/* The end that will connect, of a new connection, for that descriptor. */
struct pirn__sim_end *pirn__sim_end_new(int fd);
void pirn__sim_end_connect(struct pirn__sim_end *end, uint16_t port);

/* What may be transferred now: a count or a code. */
ssize_t pirn__sim_end_receive(struct pirn__sim_end *end, void *buf, size_t len);
ssize_t pirn__sim_end_transmit(struct pirn__sim_end *end, const void *buf,
                               size_t len);

/* No more is sent; the descriptor is gone; nobody will accept it. */
void pirn__sim_end_finish(struct pirn__sim_end *end);
void pirn__sim_end_close(struct pirn__sim_end *end);
void pirn__sim_end_refuse(struct pirn__sim_end *end);

/* What poll(2) would say, and what SO_ERROR. */
uint32_t pirn__sim_end_mask(const struct pirn__sim_end *end);
int pirn__sim_end_take_error(struct pirn__sim_end *end);
/* There is news of it. */
void pirn__sim_end_signal(const struct pirn__sim_end *end);

#endif /* PIRN_TESTING_SIM_LINK_H */

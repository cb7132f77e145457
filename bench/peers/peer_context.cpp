/* SPDX-License-Identifier: MIT */
/* bench/peers/peer_context.cpp - Boost.Context, the switch below Boost's own
 * fibers: the thread's stack and one other take turns.  As C++ code meets it
 * (`fiber`), its call and its moves included. */
#include "peer.h"

#include <utility>

#include <boost/context/fiber.hpp>

namespace {

boost::context::fiber other;

std::uint64_t switch_count()
{
    return peer_scale(1000000, 5000000);
}

void switch_often()
{
    for (std::uint64_t i = 0; i < switch_count() / 2; i++)
        other = std::move(other).resume();
}

void measure_switch()
{
    bool ends = false;

    other = boost::context::fiber([&](boost::context::fiber &&caller) {
        while (!ends)
            caller = std::move(caller).resume();
        return std::move(caller);
    });
    peer_measure("switch", switch_count(), switch_often);
    ends = true;
    other = std::move(other).resume();
}

const peer_row rows[] = {
    {"switch", measure_switch},
    {nullptr, nullptr},
};

} // namespace

int main(int argc, char **argv)
{
    return peer_main(argc, argv, rows);
}

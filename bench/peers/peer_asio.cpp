/* SPDX-License-Identifier: MIT */
/* bench/peers/peer_asio.cpp - the Boost.Asio side of the comparison: C++20
 * coroutines on an io_context that N threads run, or with `--workers 0` this
 * thread alone, in which case the context is told so and takes no locks.
 *
 * Asio of this version has no channels and no mutex for coroutines, so it has no
 * rows of those.
 */
#include "peer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstring>
#include <memory>
#include <thread>
#include <utility> /* which this Boost forgets */
#include <vector>

#include <unistd.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace asio = boost::asio;
using asio::awaitable;
using asio::detached;
using asio::use_awaitable;
using clock_type = std::chrono::steady_clock;
using std::chrono::nanoseconds;

namespace {

constexpr std::uint64_t batch_size = 1000;
constexpr std::uint64_t fan_out = 10;

/* A context and the threads that run it. */
class pool {
public:
    pool()
        : context_(peer_options.workers > 0
                       ? int(peer_options.workers)
                       : BOOST_ASIO_CONCURRENCY_HINT_UNSAFE)
        , guard_(context_.get_executor())
    {
        for (unsigned i = 0; i < peer_options.workers; i++)
            threads_.emplace_back([this] { context_.run(); });
    }

    ~pool()
    {
        guard_.reset();
        context_.stop();
        for (auto &thread : threads_)
            thread.join();
    }

    asio::io_context &context() { return context_; }

    /* Until `done`: the threads work, or this one does. */
    void wait_for(const std::atomic<bool> &done)
    {
        if (threads_.empty())
            while (!done.load(std::memory_order_acquire))
                context_.run_one();
        else
            done.wait(false, std::memory_order_acquire);
    }

private:
    asio::io_context context_;
    asio::executor_work_guard<asio::io_context::executor_type> guard_;
    std::vector<std::thread> threads_;
};

/* awaitable<> admits only what it can adapt; so the waiting is an operation of
 * Asio's own kind. */
template <typename Starter> auto operation(Starter starter)
{
    return asio::async_initiate<decltype(use_awaitable), void()>(
        std::move(starter), use_awaitable);
}

/* Lets one coroutine go on once all others have said that they are done. */
class latch {
public:
    latch(asio::io_context &context, std::uint64_t count)
        : context_(context), left_(count)
    {
    }

    void hit()
    {
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            ring();
    }

    /* One coroutine waits. */
    awaitable<void> wait()
    {
        co_await operation([this](auto handler) {
            waiter_ = std::make_unique<kept<decltype(handler)>>(
                std::move(handler));
            if (state_.exchange(1, std::memory_order_acq_rel) == 2)
                complete();
        });
    }

private:
    struct kept_base {
        virtual ~kept_base() = default;
        virtual void post(asio::io_context &context) = 0;
    };

    template <typename Handler> struct kept : kept_base {
        explicit kept(Handler &&handler) : handler(std::move(handler)) { }
        void post(asio::io_context &context) override
        {
            asio::post(context, std::move(handler));
        }
        Handler handler;
    };

    void ring()
    {
        if (state_.exchange(2, std::memory_order_acq_rel) == 1)
            complete();
    }

    /* The waiter may end, and the latch with it, before post() has returned. */
    void complete()
    {
        auto waiter = std::move(waiter_);
        asio::io_context &context = context_;

        waiter->post(context);
    }

    asio::io_context &context_;
    std::atomic<std::uint64_t> left_;
    std::atomic<int> state_{0}; /* 1 waits, 2 all are done */
    std::unique_ptr<kept_base> waiter_;
};

/* Run a coroutine of the pool to its end, from this thread. */
template <typename Make> void run_in(pool &pool, Make make)
{
    std::atomic<bool> done{false};

    asio::co_spawn(pool.context(), make(), [&](std::exception_ptr error) {
        peer_require(error == nullptr, "a coroutine threw");
        done.store(true, std::memory_order_release);
        done.notify_one();
    });
    pool.wait_for(done);
}

/* The pool of the row that runs. */
std::unique_ptr<pool> here;

asio::io_context &context()
{
    return here->context();
}

template <awaitable<void> (*coroutine)()> void run_row()
{
    run_in(*here, coroutine);
}

/* Spawn. */

awaitable<void> brief(latch &left)
{
    left.hit();
    co_return;
}

awaitable<void> spawn_batches(std::uint64_t batches, std::uint64_t batch)
{
    for (std::uint64_t i = 0; i < batches; i++) {
        auto left = std::make_unique<latch>(context(), batch);

        for (std::uint64_t k = 0; k < batch; k++)
            asio::co_spawn(context(), brief(*left), detached);
        co_await left->wait();
    }
}

std::uint64_t spawn_count()
{
    return peer_scale(100000, PEER_MILLION);
}

awaitable<void> run_burst()
{
    co_await spawn_batches(1, spawn_count());
}

awaitable<void> run_batch()
{
    co_await spawn_batches(spawn_count() / batch_size, batch_size);
}

std::uint64_t outside_count()
{
    return peer_scale(50000, 500000);
}

void run_outside()
{
    constexpr std::uint64_t thread_count = 2;
    std::vector<std::thread> threads;
    latch left(context(), outside_count());

    for (std::uint64_t i = 0; i < thread_count; i++)
        threads.emplace_back([&] {
            for (std::uint64_t k = 0; k < outside_count() / thread_count; k++)
                asio::co_spawn(context(), brief(left), detached);
        });
    for (auto &thread : threads)
        thread.join();
    run_in(*here, [&]() -> awaitable<void> { return left.wait(); });
}

awaitable<void> link_of_chain(std::uint64_t left, latch &end)
{
    if (left == 0)
        end.hit();
    else
        asio::co_spawn(context(), link_of_chain(left - 1, end), detached);
    co_return;
}

awaitable<void> run_chain()
{
    auto end = std::make_unique<latch>(context(), 1);

    asio::co_spawn(context(), link_of_chain(outside_count() - 1, *end),
                   detached);
    co_await end->wait();
}

/* Skynet: a node waits until its ten parts have added their sums. */

struct sum {
    explicit sum(asio::io_context &context) : parts(context, fan_out) { }

    void add(std::uint64_t more)
    {
        value.fetch_add(more, std::memory_order_relaxed);
        parts.hit();
    }

    latch parts;
    std::atomic<std::uint64_t> value{0};
};

awaitable<void> node(sum &above, std::uint64_t first, std::uint64_t count)
{
    if (count == 1) {
        above.add(first);
        co_return;
    }

    sum own(context());
    std::uint64_t part = count / fan_out;

    for (std::uint64_t i = 0; i < fan_out; i++)
        asio::co_spawn(context(), node(own, first + i * part, part), detached);
    co_await own.parts.wait();
    above.add(own.value.load(std::memory_order_relaxed));
}

awaitable<void> run_skynet()
{
    std::uint64_t leaves = spawn_count();
    sum root(context());

    for (std::uint64_t i = 1; i < fan_out; i++)
        root.parts.hit(); /* there is one part only */
    asio::co_spawn(context(), node(root, 0, leaves), detached);
    co_await root.parts.wait();
    peer_require(root.value == leaves * (leaves - 1) / 2,
                 "the sum of the leaves");
}

/* Yield. */

std::uint64_t yield_count()
{
    return peer_scale(500000, 2000000);
}

awaitable<void> yielder(latch &left)
{
    for (std::uint64_t i = 0; i < yield_count() / PEER_THOUSAND; i++)
        co_await asio::post(context(), use_awaitable);
    left.hit();
}

awaitable<void> run_yields()
{
    auto left = std::make_unique<latch>(context(), PEER_THOUSAND);

    for (int i = 0; i < PEER_THOUSAND; i++)
        asio::co_spawn(context(), yielder(*left), detached);
    co_await left->wait();
}

std::uint64_t skynet_tasks()
{
    std::uint64_t tasks = 0;

    for (std::uint64_t level = spawn_count(); level > 0; level /= fan_out)
        tasks += level;
    return tasks;
}

void measure(const char *name, std::uint64_t operations, void (*run)())
{
    here = std::make_unique<pool>();
    peer_measure(name, operations, run);
    here.reset();
}

/* Timers.  A cancelled wait still ends, with an error, in its handler; the
 * handlers of a hundred are run together. */

void churn_timers(const char *name, std::uint64_t live, bool in_order)
{
    asio::io_context context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE);
    std::uint64_t rounds = peer_scale(200000, PEER_MILLION);
    peer_churn churn = {peer_seed(), 0, live, in_order};
    clock_type::time_point base = clock_type::now() + std::chrono::minutes(10);
    std::vector<asio::steady_timer> timers;
    auto arm = [&](asio::steady_timer &timer) {
        nanoseconds span(peer_draw(&churn.random) % 3600000000000u);

        timer.expires_at(base + span); /* cancels what waits */
        timer.async_wait([](const boost::system::error_code &) {});
    };

    timers.reserve(live);
    for (std::uint64_t i = 0; i < live; i++)
        arm(timers.emplace_back(context));
    for (unsigned sample = 0; sample <= peer_options.samples; sample++) {
        std::uint64_t begin_ns = peer_cpu_ns();

        for (std::uint64_t i = 0; i < rounds; i++) {
            arm(timers[peer_pick(&churn)]);
            if (i % 100 == 99)
                context.poll();
        }
        if (sample > 0)
            peer_print(name, "ns",
                       double(peer_cpu_ns() - begin_ns) / double(rounds));
    }
    _exit(0);
}

awaitable<void> late_sleeper(clock_type::time_point until, std::uint64_t &late,
                             latch &left)
{
    asio::steady_timer timer(context(), until);

    co_await timer.async_wait(use_awaitable);
    late = std::uint64_t(nanoseconds(clock_type::now() - until).count());
    left.hit();
}

std::vector<std::uint64_t> lates;

awaitable<void> run_late()
{
    auto left = std::make_unique<latch>(context(), lates.size());
    std::uint64_t random = peer_seed();
    auto base = clock_type::now() + std::chrono::seconds(1);

    for (auto &late : lates)
        asio::co_spawn(context(),
                       late_sleeper(base + nanoseconds(peer_draw(&random) %
                                                       1000000000u),
                                    late, *left),
                       detached);
    co_await left->wait();
}

void measure_late()
{
    here = std::make_unique<pool>();
    lates.resize(peer_scale(20000, 100000));
    for (unsigned sample = 0; sample <= peer_options.samples; sample++) {
        std::uint64_t cpu_ns = peer_cpu_ns();

        run_in(*here, run_late);
        cpu_ns = peer_cpu_ns() - cpu_ns;
        if (sample == 0)
            continue;
        peer_print_percentiles("timer_late", lates.data(), lates.size());
        peer_print("timer_late_cpu", "ns",
                   double(cpu_ns) / double(lates.size()));
    }
    here.reset();
}

/* Wake: a thread that does not run the context posts to it. */

void measure_wakes()
{
    std::vector<std::uint64_t> latencies(peer_scale(500, 2000));
    std::atomic<std::size_t> received{0};

    here = std::make_unique<pool>();
    for (unsigned sample = 0; sample <= peer_options.samples; sample++) {
        received = 0;
        for (std::size_t i = 0; i < latencies.size(); i++) {
            do
                peer_sleep_until(peer_now_ns() + 200000);
            while (received < i);

            std::uint64_t sent_ns = peer_now_ns();

            asio::post(context(), [&, i, sent_ns] {
                latencies[i] = peer_now_ns() - sent_ns;
                received = i + 1;
            });
        }
        while (received < latencies.size())
            peer_sleep_until(peer_now_ns() + 200000);
        if (sample > 0)
            peer_print_percentiles("wake", latencies.data(), latencies.size());
    }
    here.reset();
}

/* Memory. */

awaitable<void> long_sleeper(latch &asleep)
{
    asio::steady_timer timer(context(), std::chrono::hours(1));

    asleep.hit();
    co_await timer.async_wait(use_awaitable);
}

awaitable<void> start_sleepers()
{
    std::uint64_t count = spawn_count();
    latch asleep(context(), count);

    for (std::uint64_t i = 1; i <= count; i++) {
        asio::co_spawn(context(), long_sleeper(asleep), detached);
        if (i % batch_size == 0)
            co_await asio::post(context(), use_awaitable);
    }
    co_await asleep.wait();
}

void measure_memory()
{
    double count = double(spawn_count());
    double before = peer_footprint();
    std::uint64_t begin_ns = peer_now_ns();
    std::uint64_t cpu_ns = peer_cpu_ns();

    here = std::make_unique<pool>();
    run_in(*here, start_sleepers);
    cpu_ns = peer_cpu_ns() - cpu_ns;
    peer_print("memory_start", "ns", double(peer_now_ns() - begin_ns) / count);
    peer_print("memory_start.cpu", "ns", double(cpu_ns) / count);
    peer_sleep_until(peer_now_ns() + 1000000);
    peer_print("memory_task", "bytes", (peer_footprint() - before) / count);
    _exit(0);
}

/* Servers. */

using asio::ip::tcp;

awaitable<void> echo(tcp::socket conn)
try {
    char buf[4096];

    for (;;) {
        std::size_t n =
            co_await conn.async_read_some(asio::buffer(buf), use_awaitable);

        co_await asio::async_write(conn, asio::buffer(buf, n), use_awaitable);
    }
} catch (const boost::system::system_error &) {
    /* The client has closed. */
}

awaitable<void> hello(tcp::socket conn)
try {
    char buf[4096];
    std::size_t filled = 0;

    while (filled < sizeof buf) {
        filled += co_await conn.async_read_some(
            asio::buffer(buf + filled, sizeof buf - filled), use_awaitable);
        if (!peer_request_ends(buf, filled))
            continue;
        filled = 0;
        co_await asio::async_write(
            conn, asio::buffer(peer_response, peer_response_size),
            use_awaitable);
    }
} catch (const boost::system::system_error &) {
    /* The client has closed. */
}

template <awaitable<void> (*session)(tcp::socket)> awaitable<void> accept_all()
{
    tcp::acceptor listener(context(), tcp::v4(), peer_listen());

    for (;;)
        asio::co_spawn(context(),
                       session(co_await listener.async_accept(use_awaitable)),
                       detached);
}

template <awaitable<void> (*session)(tcp::socket)> void serve()
{
    here = std::make_unique<pool>();
    run_in(*here, accept_all<session>);
}

const peer_row rows[] = {
    {"spawn_burst",
     [] { measure("spawn_burst", spawn_count(), run_row<run_burst>); }},
    {"spawn_batch",
     [] { measure("spawn_batch", spawn_count(), run_row<run_batch>); }},
    {"spawn_outside",
     [] { measure("spawn_outside", outside_count(), run_outside); }},
    {"chain", [] { measure("chain", outside_count(), run_row<run_chain>); }},
    {"skynet", [] { measure("skynet", skynet_tasks(), run_row<run_skynet>); }},
    {"yield_1000",
     [] { measure("yield_1000", yield_count(), run_row<run_yields>); }},
    {"timer_1", [] { churn_timers("timer_1", 1, true); }},
    {"timer_1m_in_order",
     [] { churn_timers("timer_1m_in_order", PEER_MILLION, true); }},
    {"timer_1m_random",
     [] { churn_timers("timer_1m_random", PEER_MILLION, false); }},
    {"timer_late", measure_late},
    {"wake", measure_wakes},
    {"memory", measure_memory},
    {"echo", serve<echo>},
    {"hello", serve<hello>},
    {nullptr, nullptr},
};

} // namespace

int main(int argc, char **argv)
{
    return peer_main(argc, argv, rows);
}

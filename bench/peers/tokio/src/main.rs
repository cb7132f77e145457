// SPDX-License-Identifier: MIT

//! The Tokio side of the comparison: the rows of bench/README.md as tasks on a
//! multi-thread runtime of N workers, or with `--workers 0` on a current-thread
//! one.
//!
//!     peer_tokio ROW [--workers N] [--samples N] [--quick]
//!
//! prints one JSON object a line for each value, as Pirn's programs do.  `echo`
//! and `hello` are servers: they print "port N" and serve.

mod memory;
mod rig;
mod server;
mod spawn;
mod sync;
mod time;
mod turns;

use rig::Options;

fn usage() -> ! {
    rig::fail("usage: peer_tokio ROW [--workers N] [--samples N] [--quick]")
}

fn number(word: Option<String>) -> usize {
    match word.and_then(|word| word.parse().ok()) {
        Some(number) => number,
        None => usage(),
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let row = words.next().unwrap_or_default();
    let mut options = Options { workers: 1, samples: 3, quick: false };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => options.quick = true,
            "--workers" => options.workers = number(words.next()),
            "--samples" => options.samples = number(words.next()),
            _ => usage(),
        }
    }
    match row.as_str() {
        "spawn_burst" => spawn::burst(&options),
        "spawn_batch" => spawn::batch(&options),
        "spawn_outside" => spawn::outside(&options),
        "chain" => spawn::chain(&options),
        "skynet" => spawn::skynet(&options),
        "yield_1000" => turns::yields(&options),
        "ping_pong" => turns::ping_pong(&options),
        "mutex_lock" => sync::mutex_alone(&options),
        "mutex_lock_16" => sync::mutex_crowd(&options),
        "mpsc_1" => sync::messages(&options, "mpsc_1", 1),
        "mpsc_4" => sync::messages(&options, "mpsc_4", 4),
        "wake" => time::wake(&options),
        "timer_1" => time::churn(&options, "timer_1", 1, true),
        "timer_1m_in_order" =>
            time::churn(&options, "timer_1m_in_order", 1000000, true),
        "timer_1m_random" =>
            time::churn(&options, "timer_1m_random", 1000000, false),
        "timer_late" => time::late(&options),
        "memory" => memory::sleepers(&options),
        "echo" => server::echo(&options),
        "hello" => server::hello(&options),
        _ => usage(),
    }
}

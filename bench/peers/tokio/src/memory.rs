// SPDX-License-Identifier: MIT

use crate::rig::{cpu_now, print, Options, Tally};
use std::time::{Duration, Instant};

fn read_kilobytes(path: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(path).expect(path);
    text.lines()
        .find(|line| line.starts_with(field))
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|word| word.parse().ok())
        .expect(field)
}

/// Resident memory and page tables.
fn footprint() -> u64 {
    1024 * (read_kilobytes("/proc/self/smaps_rollup", "Rss:")
        + read_kilobytes("/proc/self/status", "VmPTE:"))
}

/// Tasks that sleep for an hour.  They are started by a task, in batches of a
/// thousand, each of which gets a turn to run.
pub fn sleepers(options: &Options) {
    let count = options.scale(100000, 1000000);
    let before = footprint();
    let runtime = options.runtime();
    let cpu = cpu_now();
    let begin = Instant::now();
    let start = async move {
        let asleep = Tally::new(count);
        for i in 1..=count {
            let asleep = asleep.clone();
            tokio::spawn(async move {
                asleep.hit();
                drop(asleep);
                tokio::time::sleep(Duration::from_secs(3600)).await;
            });
            if i % 1000 == 0 {
                tokio::task::yield_now().await;
            }
        }
        asleep.wait().await;
    };
    let task = runtime.spawn(start);
    runtime.block_on(task).expect("the starter");
    let elapsed = begin.elapsed().as_nanos();
    let cpu = cpu_now() - cpu;
    std::thread::sleep(Duration::from_millis(1));
    let grown = footprint() - before;
    print("memory_task", "bytes", grown as f64 / count as f64);
    print("memory_start", "ns", elapsed as f64 / count as f64);
    print("memory_start.cpu", "ns", cpu as f64 / count as f64);
    // The operating system takes the memory back faster.
    std::process::exit(0);
}

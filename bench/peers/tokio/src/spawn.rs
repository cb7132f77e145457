// SPDX-License-Identifier: MIT

use crate::rig::{fail, measure, measure_task, Options, Tally};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

const BATCH: usize = 1000;
const FAN_OUT: usize = 10;

/// A task that ends at once.
fn start_brief(left: &Arc<Tally>) {
    let left = left.clone();
    tokio::spawn(async move { left.hit() });
}

async fn spawn_batches(batches: usize, batch: usize) {
    for _ in 0..batches {
        let left = Tally::new(batch);
        for _ in 0..batch {
            start_brief(&left);
        }
        left.wait().await;
    }
}

pub fn burst(options: &Options) {
    let count = options.scale(100000, 1000000);
    measure_task(options, "spawn_burst", count,
                 move || spawn_batches(1, count));
}

pub fn batch(options: &Options) {
    let count = options.scale(100000, 1000000);
    measure_task(options, "spawn_batch", count,
                 move || spawn_batches(count / BATCH, BATCH));
}

/// Two threads that are no workers start the tasks.
pub fn outside(options: &Options) {
    const THREADS: usize = 2;
    let count = options.scale(50000, 500000);
    let runtime = options.runtime();
    measure(options, "spawn_outside", count, || {
        let left = Tally::new(count);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let _guard = runtime.enter();
                    for _ in 0..count / THREADS {
                        start_brief(&left);
                    }
                });
            }
        });
        runtime.block_on(left.wait());
    });
}

fn start_link(left: usize, end: Arc<Tally>) {
    tokio::spawn(async move {
        match left {
            0 => end.hit(),
            _ => start_link(left - 1, end),
        }
    });
}

pub fn chain(options: &Options) {
    let count = options.scale(50000, 500000);
    measure_task(options, "chain", count, move || async move {
        let end = Tally::new(1);
        start_link(count - 1, end.clone());
        end.wait().await;
    });
}

/// The sum of the leaves `first` to `first + count - 1`.  A node joins its ten
/// parts; the box is what Rust asks for where an async function calls itself.
fn node(first: u64, count: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        let part = count / FAN_OUT as u64;
        let parts: [_; FAN_OUT] =
            std::array::from_fn(|i| start_node(first + i as u64 * part, part));
        let mut sum = 0;
        for part in parts {
            sum += part.await.expect("a part");
        }
        sum
    })
}

/// A leaf needs no box.
fn start_node(first: u64, count: u64) -> tokio::task::JoinHandle<u64> {
    match count {
        1 => tokio::spawn(async move { first }),
        _ => tokio::spawn(node(first, count)),
    }
}

pub fn skynet(options: &Options) {
    let leaves = options.scale(100000, 1000000) as u64;
    let tasks = (0..).map(|i| leaves / 10u64.pow(i)).take_while(|&n| n > 0)
        .sum::<u64>();
    measure_task(options, "skynet", tasks as usize, move || async move {
        let sum = start_node(0, leaves).await.expect("the root");
        if sum != leaves * (leaves - 1) / 2 {
            fail("the sum of the leaves");
        }
    });
}

// SPDX-License-Identifier: MIT

//! What every row needs: a runtime, a clock, the form of a value.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

pub struct Options {
    pub workers: usize,
    pub samples: usize,
    pub quick: bool,
}

impl Options {
    /// With --quick `small`, else `large`.
    pub fn scale(&self, small: usize, large: usize) -> usize {
        if self.quick { small } else { large }
    }

    pub fn runtime(&self) -> Runtime {
        let mut builder = match self.workers {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        if self.workers > 0 {
            builder.worker_threads(self.workers);
        }
        builder.enable_all().build().expect("a runtime")
    }
}

pub fn fail(what: &str) -> ! {
    eprintln!("peer_tokio: {}", what);
    std::process::exit(1)
}

pub fn print(name: &str, unit: &str, value: f64) {
    println!("{{\"name\": \"{}\", \"unit\": \"{}\", \"value\": {:.4}}}",
             name, unit, value);
}

/// Processor time of all threads, in ns.
pub fn cpu_now() -> u64 {
    let mut spent = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut spent) };
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

/// Ready once a number of tasks have said that they are done; one waits.
pub struct Tally {
    left: AtomicUsize,
    done: Notify,
}

impl Tally {
    pub fn new(count: usize) -> Arc<Tally> {
        Arc::new(Tally { left: AtomicUsize::new(count), done: Notify::new() })
    }

    pub fn hit(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.notify_one();
        }
    }

    pub async fn wait(&self) {
        self.done.notified().await
    }
}

/// Time a run on this thread once to warm up, then once for each sample, and
/// print ns for each of its operations: what passed, and as NAME.cpu the
/// processor time.
pub fn measure(options: &Options, name: &str, operations: usize,
               mut run: impl FnMut()) {
    run();
    for _ in 0..options.samples {
        let cpu = cpu_now();
        let begin = Instant::now();
        run();
        let elapsed = begin.elapsed().as_nanos();
        let cpu = cpu_now() - cpu;
        print(name, "ns", elapsed as f64 / operations as f64);
        print(&format!("{}.cpu", name), "ns", cpu as f64 / operations as f64);
    }
}

/// The same for a run in a task of the runtime, which is where Tokio's tasks
/// reach their worker's own queue.
pub fn measure_task<F>(options: &Options, name: &str, operations: usize,
                       make: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = options.runtime();
    measure(options, name, operations, || {
        let task = runtime.spawn(make());
        runtime.block_on(task).expect("the task of a row");
    });
}

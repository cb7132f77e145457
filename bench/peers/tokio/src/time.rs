// SPDX-License-Identifier: MIT

use crate::rig::{cpu_now, print, Options, Tally};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep_until, Instant, Sleep};

/// xorshift: the same deadlines as in Pirn's program.
struct Source(u64);

impl Source {
    fn new() -> Source {
        Source(88172645463325252)
    }

    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn within(&mut self, span: Duration) -> Duration {
        Duration::from_nanos(self.draw() % span.as_nanos() as u64)
    }
}

struct Churn {
    sleeps: Vec<Pin<Box<Sleep>>>,
    base: Instant,
    random: Source,
    in_order: bool,
    next: usize,
}

impl Churn {
    fn new(live: usize, in_order: bool) -> Churn {
        let base = Instant::now() + Duration::from_secs(600);
        let sleeps = (0..live).map(|_| Box::pin(sleep_until(base))).collect();
        Churn { sleeps, base, random: Source::new(), in_order, next: 0 }
    }

    /// Drop a sleep and make a new one in its place: no memory is allocated.
    fn arm(&mut self, index: usize, cx: &mut Context<'_>) {
        let until = self.base + self.random.within(Duration::from_secs(3600));
        let sleep = &mut self.sleeps[index];
        sleep.set(sleep_until(until));
        assert!(sleep.as_mut().poll(cx).is_pending());
    }

    fn pick(&mut self) -> usize {
        let index = self.next;
        self.next += 1;
        let index = match self.in_order {
            true => index,
            false => (self.random.draw() >> 16) as usize,
        };
        index % self.sleeps.len()
    }
}

/// Runs `step` so often, a hundred times a poll: a poll has a budget of 128.
struct Bursts<F> {
    done: usize,
    count: usize,
    step: F,
}

impl<F: FnMut(usize, &mut Context<'_>) + Unpin> Future for Bursts<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..100.min(self.count - self.done) {
            let done = self.done;
            (self.step)(done, cx);
            self.done += 1;
        }
        if self.done == self.count {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn in_bursts<F>(count: usize, step: F) -> Bursts<F>
where
    F: FnMut(usize, &mut Context<'_>) + Unpin,
{
    Bursts { done: 0, count, step }
}

/// Insert and cancel, in a task.  By processor time.
pub fn churn(options: &Options, name: &'static str, live: usize,
             in_order: bool) {
    let rounds = options.scale(200000, 1000000);
    let samples = options.samples;
    let runtime = options.runtime();
    let task = async move {
        let mut churn = Churn::new(live, in_order);
        in_bursts(live, |i, cx| churn.arm(i, cx)).await;
        for sample in 0..=samples {
            let begin = cpu_now();
            in_bursts(rounds, |_, cx| {
                let index = churn.pick();
                churn.arm(index, cx);
            })
            .await;
            let spent = (cpu_now() - begin) as f64;
            if sample > 0 {
                print(name, "ns", spent / rounds as f64);
            }
        }
    };
    match options.workers {
        0 => runtime.block_on(task),
        _ => runtime.block_on(async { tokio::spawn(task).await.expect("task") }),
    }
}

fn print_percentiles(name: &str, values: &mut [u64]) {
    values.sort_unstable();
    for percent in [50, 99] {
        let value = values[(values.len() - 1) * percent / 100];
        print(&format!("{}_p{}", name, percent), "ns", value as f64);
    }
}

/// Tasks that sleep until moments spread over a second, the first of them once
/// all have been started.
pub fn late(options: &Options) {
    let count = options.scale(20000, 100000);
    let runtime = options.runtime();
    for sample in 0..=options.samples {
        let late: Arc<Vec<AtomicU64>> =
            Arc::new((0..count).map(|_| AtomicU64::new(0)).collect());
        let cpu = cpu_now();
        let task = runtime.spawn(sleep_all(late.clone()));
        runtime.block_on(task).expect("the sleepers");
        let cpu = cpu_now() - cpu;
        if sample == 0 {
            continue;
        }
        let mut values: Vec<u64> =
            late.iter().map(|value| value.load(Ordering::Relaxed)).collect();
        print_percentiles("timer_late", &mut values);
        print("timer_late_cpu", "ns", cpu as f64 / count as f64);
    }
}

async fn sleep_all(late: Arc<Vec<AtomicU64>>) {
    let mut random = Source::new();
    let left = Tally::new(late.len());
    let base = Instant::now() + Duration::from_secs(1);
    for i in 0..late.len() {
        let until = base + random.within(Duration::from_secs(1));
        let (late, left) = (late.clone(), left.clone());
        tokio::spawn(async move {
            sleep_until(until).await;
            let value = until.elapsed().as_nanos() as u64;
            late[i].store(value, Ordering::Relaxed);
            left.hit();
        });
    }
    left.wait().await;
}

struct Wakes {
    base: std::time::Instant,
    bell: Notify,
    sent: AtomicU64, // when the wake under way began
    received: AtomicUsize,
}

impl Wakes {
    fn now(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    async fn receive(&self, count: usize) -> Vec<u64> {
        let mut latencies = Vec::with_capacity(count);
        for i in 0..count {
            self.bell.notified().await;
            latencies.push(self.now() - self.sent.load(Ordering::Relaxed));
            self.received.store(i + 1, Ordering::Release);
        }
        latencies
    }

    /// On a busy machine a gap may be too short for the task to wait again.
    fn send(&self, count: usize) {
        for i in 0..count {
            std::thread::sleep(Duration::from_micros(200));
            while self.received.load(Ordering::Acquire) < i {
                std::thread::sleep(Duration::from_micros(200));
            }
            self.sent.store(self.now(), Ordering::Relaxed);
            self.bell.notify_one();
        }
    }
}

/// A thread that is no worker wakes a task every 200 us.
pub fn wake(options: &Options) {
    let count = options.scale(500, 2000);
    let runtime = options.runtime();
    for sample in 0..=options.samples {
        let wakes = Arc::new(Wakes {
            base: std::time::Instant::now(),
            bell: Notify::new(),
            sent: AtomicU64::new(0),
            received: AtomicUsize::new(0),
        });
        let receiver = wakes.clone();
        let task = runtime.spawn(async move { receiver.receive(count).await });
        wakes.send(count);
        let mut latencies = runtime.block_on(task).expect("the woken task");
        if sample > 0 {
            print_percentiles("wake", &mut latencies);
        }
    }
}

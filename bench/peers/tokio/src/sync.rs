// SPDX-License-Identifier: MIT

use crate::rig::{fail, measure_task, Options, Tally};
use std::sync::Arc;
use tokio::sync::{mpsc, Mutex};

const CROWD: usize = 16;
const CAPACITY: usize = 1024;

pub fn mutex_alone(options: &Options) {
    let count = options.scale(100000, 2000000);
    measure_task(options, "mutex_lock", count, move || async move {
        let mutex = Mutex::new(0u64);
        for _ in 0..count {
            drop(mutex.lock().await);
        }
    });
}

pub fn mutex_crowd(options: &Options) {
    let each = options.scale(5000, 60000);
    measure_task(options, "mutex_lock_16", CROWD * each, move || async move {
        let mutex = Arc::new(Mutex::new(0));
        let left = Tally::new(CROWD);
        for _ in 0..CROWD {
            let (mutex, left) = (mutex.clone(), left.clone());
            tokio::spawn(async move {
                for _ in 0..each {
                    *mutex.lock().await += 1;
                }
                left.hit();
            });
        }
        left.wait().await;
        if *mutex.lock().await != CROWD * each {
            fail("a lock that let two in");
        }
    });
}

/// One receiver, who takes one message at a time until the channel is closed.
pub fn messages(options: &Options, name: &str, senders: usize) {
    let count = options.scale(400000, 4000000);
    let each = (count / senders) as u64;
    measure_task(options, name, count, move || async move {
        let (sender, mut receiver) = mpsc::channel::<u64>(CAPACITY);
        let total = tokio::spawn(async move {
            let mut total = 0;
            while let Some(message) = receiver.recv().await {
                total += message;
            }
            total
        });
        for _ in 0..senders {
            let sender = sender.clone();
            tokio::spawn(async move {
                for i in 1..=each {
                    sender.send(i).await.expect("send");
                }
            });
        }
        drop(sender);
        let sum = total.await.expect("the receiver");
        if sum != senders as u64 * (each * (each + 1) / 2) {
            fail("the sum of all messages");
        }
    });
}

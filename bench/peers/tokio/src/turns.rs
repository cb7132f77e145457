// SPDX-License-Identifier: MIT

use crate::rig::{measure_task, Options, Tally};
use tokio::sync::mpsc;

const MANY: usize = 1000;

pub fn yields(options: &Options) {
    let count = options.scale(500000, 2000000);
    measure_task(options, "yield_1000", count, move || async move {
        let left = Tally::new(MANY);
        for _ in 0..MANY {
            let left = left.clone();
            tokio::spawn(async move {
                for _ in 0..count / MANY {
                    tokio::task::yield_now().await;
                }
                left.hit();
            });
        }
        left.wait().await;
    });
}

/// Pairs that pass a word to and fro by two channels with room for one.
pub fn ping_pong(options: &Options) {
    let count = options.scale(100000, 500000);
    let each = (count / MANY) as u64;
    measure_task(options, "ping_pong", count, move || async move {
        let left = Tally::new(2 * MANY);
        for _ in 0..MANY {
            let (ping, mut pinged) = mpsc::channel::<u64>(1);
            let (pong, mut ponged) = mpsc::channel::<u64>(1);
            let (first, second) = (left.clone(), left.clone());
            tokio::spawn(async move {
                for i in 0..each {
                    ping.send(i).await.expect("ping");
                    ponged.recv().await.expect("pong");
                }
                first.hit();
            });
            tokio::spawn(async move {
                for _ in 0..each {
                    let word = pinged.recv().await.expect("ping");
                    pong.send(word).await.expect("pong");
                }
                second.hit();
            });
        }
        left.wait().await;
    });
}

//! How fast the replica commits, for a look: `cargo nextest run --run-ignored only -E
//! 'test(speed)'`. The numbers that count are those of `bench`.

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster_in_process::support::{cluster, leader, tenant};
use crate::support::poll::LONG;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "a measurement"]
async fn commits_one_after_the_other_and_together() {
    let members = cluster(3).await;
    let place = leader(&members).await;
    for asked in [place, (place + 1) % 3] {
        let replica = &members[asked].replica;
        let began = Instant::now();
        let mut count = 0;
        while began.elapsed() < Duration::from_secs(3) {
            replica.propose(tenant("one"), LONG).await.unwrap();
            count += 1;
        }
        let rate = f64::from(count) / began.elapsed().as_secs_f64();
        eprintln!("member {asked} (leader {place}): {rate:.0} commits/s one after the other");
        let before = replica.status();
        let began = Instant::now();
        let callers = (0..256).map(|caller| {
            let replica = replica.clone();
            tokio::spawn(async move {
                let mut count = 0;
                while began.elapsed() < Duration::from_secs(3) {
                    replica.propose(tenant(&format!("c{caller}")), LONG).await.unwrap();
                    count += 1;
                }
                count
            })
        });
        let counts = futures_util::future::join_all(callers).await;
        let total: i32 = counts.into_iter().map(Result::unwrap).sum();
        let rate = f64::from(total) / began.elapsed().as_secs_f64();
        let after = replica.status();
        let appends = after.log_appends - before.log_appends;
        let flushes = after.log_flushes - before.log_flushes;
        eprintln!(
            "member {asked}: {rate:.0} commits/s of 256 callers, {} commits per append, \
             {flushes} flushes",
            total as u64 / appends.max(1),
        );
    }
}

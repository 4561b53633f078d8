//! Waiting for a condition with a deadline, the only place where a test sleeps.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Longer than anything in the tests takes, on a busy machine too.
pub const LONG: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(10);

/// Looks again and again until there is a value.
pub async fn some<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(value) = look().await {
            return value;
        }
        assert!(Instant::now() < deadline, "it never came to pass that {what}");
        sleep(PAUSE).await;
    }
}

/// Looks again and again until the condition holds.
pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    some(what, || {
        let holds = holds();
        async move { holds.await.then_some(()) }
    })
    .await;
}

/// Looks again and again until `look` yields something, at most `within`. When it never does, the
/// last reason it gave is shown.
pub async fn reached<T, F, Fut>(claim: &str, within: Duration, mut look: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let deadline = Instant::now() + within;
    loop {
        let reason = match look().await {
            Ok(found) => return found,
            Err(reason) => reason,
        };
        assert!(Instant::now() < deadline, "not within {within:?}: {claim}: {reason}");
        sleep(PAUSE).await;
    }
}

/// Lets real time pass: for faults that last a given time, never to guess when something is done.
pub async fn let_pass(time: Duration) {
    sleep(time).await;
}

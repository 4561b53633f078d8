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

//! The public listener. The peer listener belongs to `replica`.

use axum::serve::ListenerExt;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::api;
use crate::service::Service;

/// Serves the public API until `closing`; calls under way are then ended as soon as they can be.
pub async fn public(
    listener: TcpListener,
    service: Service,
    registry: Registry,
    closing: CancellationToken,
) {
    let router = api::router(service.clone(), registry);
    // Small answers must not wait for more to send.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "a connection without nodelay");
        }
    });
    let close = async move {
        closing.cancelled().await;
        service.close();
    };
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(close).await {
        error!(%error, "the public listener ended");
    }
}

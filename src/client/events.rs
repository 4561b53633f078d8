//! Server-sent events, read as they come.

use bytes::BytesMut;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use crate::base::limits::BODY_BYTES_MAX;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `message` when the server does not say.
    pub name: String,
    pub id: Option<String>,
    pub data: String,
}

/// A stream of events. Dropping it closes the connection.
pub struct Events {
    chunks: BoxStream<'static, Result<bytes::Bytes, reqwest::Error>>,
    buffer: BytesMut,
}

impl Events {
    #[must_use]
    pub fn of(response: reqwest::Response) -> Events {
        Events { chunks: response.bytes_stream().boxed(), buffer: BytesMut::new() }
    }

    /// The next event; `None` when the connection has ended, for whatever reason: open it again
    /// with the id of the last event. Safe to drop while it waits.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(block) = take_block(&mut self.buffer) {
                if let Some(event) = read_block(&block) {
                    return Some(event);
                }
            }
            if self.buffer.len() > BODY_BYTES_MAX {
                return None;
            }
            let chunk = self.chunks.next().await?.ok()?;
            self.buffer.extend_from_slice(&chunk);
        }
    }
}

/// The text up to the next blank line, when it is whole.
fn take_block(buffer: &mut BytesMut) -> Option<String> {
    let ends = [(b"\n\n".as_slice(), 2), (b"\r\n\r\n".as_slice(), 4)];
    let found = ends.into_iter().filter_map(|(end, len)| {
        let at = buffer.windows(end.len()).position(|window| window == end)?;
        Some(at + len)
    });
    let end = found.min()?;
    let block = buffer.split_to(end);
    Some(String::from_utf8_lossy(&block).into_owned())
}

/// `None` for a block of comments, which keeps the connection alive.
fn read_block(block: &str) -> Option<Event> {
    let mut event = Event { name: "message".to_owned(), ..Event::default() };
    let mut data: Vec<&str> = Vec::new();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut event.name),
            "id" => event.id = Some(value.to_owned()),
            "data" => data.push(value),
            _ => {}
        }
    }
    if data.is_empty() {
        return None;
    }
    event.data = data.join("\n");
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_cut_out_of_any_chunks() {
        let text = ": hello\n\nid: 7\nevent: fire\ndata: {\"a\":1}\n\ndata:one\ndata: two\r\n\r\n";
        for chunk_len in 1..text.len() {
            let mut buffer = BytesMut::new();
            let mut events = Vec::new();
            for chunk in text.as_bytes().chunks(chunk_len) {
                buffer.extend_from_slice(chunk);
                while let Some(block) = take_block(&mut buffer) {
                    events.extend(read_block(&block));
                }
            }
            assert_eq!(events.len(), 2, "{chunk_len}");
            assert_eq!(events[0].id.as_deref(), Some("7"));
            assert_eq!((events[0].name.as_str(), events[0].data.as_str()), ("fire", "{\"a\":1}"));
            assert_eq!(events[1].data, "one\ntwo");
            assert!(buffer.is_empty());
        }
    }
}

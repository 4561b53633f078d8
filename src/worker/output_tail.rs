//! The end of what a program prints, in bounded memory: a program may print a gigabyte.

use crate::base::bounded::clip;
use crate::base::limits::OUTPUT_BYTES_MAX;

/// Room inside [`OUTPUT_BYTES_MAX`] for the marker that says how much was cut.
const MARKER_BYTES_MAX: usize = 64;
const TAIL_BYTES_MAX: usize = OUTPUT_BYTES_MAX - MARKER_BYTES_MAX;

/// Keeps the last bytes it was given, and counts the others.
#[derive(Debug, Default)]
pub struct OutputTail {
    /// At most twice [`OUTPUT_BYTES_MAX`], so that bytes move rarely.
    bytes: Vec<u8>,
    seen: u64,
}

/// What is kept with the attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// At most [`OUTPUT_BYTES_MAX`] bytes, the marker included.
    pub text: String,
    pub truncated: bool,
}

impl OutputTail {
    #[must_use]
    pub fn new() -> OutputTail {
        OutputTail::default()
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.seen = self.seen.saturating_add(chunk.len() as u64);
        if chunk.len() >= OUTPUT_BYTES_MAX {
            self.bytes.clear();
            self.bytes.extend_from_slice(&chunk[chunk.len() - OUTPUT_BYTES_MAX..]);
            return;
        }
        if self.bytes.len() + chunk.len() > 2 * OUTPUT_BYTES_MAX {
            let surplus = self.bytes.len() - OUTPUT_BYTES_MAX;
            self.bytes.drain(..surplus);
        }
        self.bytes.extend_from_slice(chunk);
    }

    /// Adds a line of the worker's own below what the program printed.
    pub fn push_line(&mut self, line: &str) {
        if self.bytes.last().is_some_and(|last| *last != b'\n') {
            self.push(b"\n");
        }
        self.push(line.as_bytes());
        self.push(b"\n");
    }

    /// The tail as text. Bytes that are not UTF-8 become U+FFFD. When anything was cut, the text
    /// begins with a marker that says how many bytes were seen in all.
    #[must_use]
    pub fn finish(&self) -> Output {
        let start = self.bytes.len().saturating_sub(OUTPUT_BYTES_MAX);
        let text = String::from_utf8_lossy(&self.bytes[start..]);
        let was_cut = self.seen > (self.bytes.len() - start) as u64;
        if !was_cut && text.len() <= OUTPUT_BYTES_MAX {
            return Output { text: text.into_owned(), truncated: false };
        }
        let mut tail_start = text.len().saturating_sub(TAIL_BYTES_MAX);
        while !text.is_char_boundary(tail_start) {
            tail_start += 1;
        }
        let marker = format!("[cut: the end of {} bytes of output]\n", self.seen);
        let marker = clip(&marker, MARKER_BYTES_MAX);
        Output { text: format!("{marker}{}", &text[tail_start..]), truncated: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_as_it_is() {
        let mut tail = OutputTail::new();
        tail.push(b"one\n");
        tail.push("zwei \u{e9}\n".as_bytes());
        let expected = Output { text: "one\nzwei \u{e9}\n".to_owned(), truncated: false };
        assert_eq!(tail.finish(), expected);
    }

    #[test]
    fn a_line_of_our_own_stands_alone() {
        for (printed, kept) in [("", "[x]\n"), ("a", "a\n[x]\n"), ("a\n", "a\n[x]\n")] {
            let mut tail = OutputTail::new();
            tail.push(printed.as_bytes());
            tail.push_line("[x]");
            assert_eq!(tail.finish().text, kept);
        }
    }

    #[test]
    fn long_output_keeps_its_end_within_the_limit_whatever_the_chunks() {
        for chunk_len in [1, 7, 1_000, 8_191, 8_192, 8_193, 100_000] {
            let mut tail = OutputTail::new();
            for i in 0..(300_000 / chunk_len) {
                tail.push(&vec![b'a' + u8::try_from(i % 26).unwrap(); chunk_len]);
                assert!(tail.bytes.len() <= 2 * OUTPUT_BYTES_MAX);
            }
            tail.push(b"the end");
            let output = tail.finish();
            assert!(output.truncated, "{chunk_len}");
            assert!(output.text.starts_with("[cut: "), "{chunk_len}");
            assert!(output.text.ends_with("the end"), "{chunk_len}");
            assert!(output.text.len() <= OUTPUT_BYTES_MAX, "{chunk_len}");
            assert!(output.text.len() > OUTPUT_BYTES_MAX - 100, "{chunk_len}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_stay_within_the_limit() {
        let mut tail = OutputTail::new();
        tail.push(&[0xff; OUTPUT_BYTES_MAX]);
        let output = tail.finish();
        assert!(output.truncated);
        assert!(output.text.len() <= OUTPUT_BYTES_MAX);
    }
}

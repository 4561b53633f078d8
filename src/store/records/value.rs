//! A stored value: version, checksum over key and value, value. And the applied mark as a value.
//!
//! sled checks its own pages; this finds the right page with the wrong value, and a value of
//! another key.

use bytes::Bytes;

use crate::store::log::codec::Reader;
use crate::store::records::AppliedMark;

/// Version of the form of a value; a newer one is refused.
pub const VALUE_VERSION: u8 = 1;
const HEADER_BYTES: usize = 5;

/// The bytes that are stored for `value` under `key`.
#[must_use]
pub fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(HEADER_BYTES + value.len());
    sealed.push(VALUE_VERSION);
    sealed.extend_from_slice(&checksum(key, value).to_le_bytes());
    sealed.extend_from_slice(value);
    sealed
}

/// The value that was sealed under `key`.
///
/// # Errors
/// What is wrong with the bytes.
pub fn open<'a>(key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8], String> {
    let Some((header, value)) = sealed.split_at_checked(HEADER_BYTES) else {
        return Err("the value is cut off".to_owned());
    };
    let mut reader = Reader(header);
    let version = reader.u8().unwrap_or_default();
    if version != VALUE_VERSION {
        return Err(format!("the value has version {version}, not {VALUE_VERSION}"));
    }
    if reader.u32() != Some(checksum(key, value)) {
        return Err("the checksum of the value does not match its key and bytes".to_owned());
    }
    Ok(value)
}

/// The applied mark as bytes, to be sealed.
#[must_use]
pub fn encode_mark(mark: &AppliedMark) -> Vec<u8> {
    let mut bytes = vec![u8::from(mark.position.is_some())];
    let (term, index) = mark.position.map_or((0, 0), |at| (at.term, at.index));
    bytes.extend_from_slice(&term.to_le_bytes());
    bytes.extend_from_slice(&index.to_le_bytes());
    bytes.extend_from_slice(&mark.stamp_ms.to_le_bytes());
    bytes.extend_from_slice(&mark.membership);
    bytes
}

/// The applied mark in `bytes`, or none when they are cut off.
#[must_use]
pub fn decode_mark(bytes: &[u8]) -> Option<AppliedMark> {
    let mut reader = Reader(bytes);
    let position = reader.optional()?;
    let stamp_ms = reader.u64()?.cast_signed();
    Some(AppliedMark { position, stamp_ms, membership: Bytes::copy_from_slice(reader.0) })
}

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[VALUE_VERSION]);
    hasher.update(&(key.len() as u32).to_le_bytes());
    hasher.update(key);
    hasher.update(value);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damaged_bit_and_a_wrong_key_are_noticed() {
        let sealed = seal(b"job/a", b"value");
        assert_eq!(open(b"job/a", &sealed).unwrap(), b"value");
        assert!(open(b"job/b", &sealed).is_err(), "another key");
        assert!(open(b"job/", &seal(b"job/a", b"")).is_err(), "a shorter key");
        for bit in 0..sealed.len() * 8 {
            let mut bad = sealed.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(open(b"job/a", &bad).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(open(b"job/a", &sealed[..length]).is_err(), "cut at {length}");
        }
    }
}

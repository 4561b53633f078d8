//! A stable hash, for jitter, `H` fields and the identity of requests.
//!
//! Its values are stored and compared across versions and members, so the algorithm never changes:
//! 64-bit FNV-1a (Fowler, Noll, Vo), finished with the mixer of SplitMix64 so that low bits are
//! usable.

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// The hash of several byte strings. Their borders count: `["ab", "c"]` and `["a", "bc"]` differ.
#[must_use]
pub fn stable_hash(parts: &[&[u8]]) -> u64 {
    let mut state = FNV_OFFSET;
    for part in parts {
        let border = part.len() as u64;
        for byte in part.iter().chain(border.to_le_bytes().iter()) {
            state = (state ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }
    mix(state)
}

/// The finishing step of SplitMix64: every input bit reaches every output bit.
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let a = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    b ^ (b >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_never_change_between_versions() {
        assert_eq!(stable_hash(&[]), mix(FNV_OFFSET));
        assert_eq!(stable_hash(&[b"default", b"backup"]), stable_hash(&[b"default", b"backup"]));
        assert_ne!(stable_hash(&[b"ab", b"c"]), stable_hash(&[b"a", b"bc"]));
    }
}

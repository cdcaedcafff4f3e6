//! The text form of 128 bits in 26 characters, which keeps ids short, case-insensitive and sorted
//! like their bytes.

/// Number of characters of an encoded 128-bit value.
pub const ENCODED_CHARS: usize = 26;

/// Crockford's alphabet in lower case, without `i`, `l`, `o` and `u`, which are easily misread.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Encodes 128 bits, most significant first. Texts sort like the bytes.
pub fn encode(value: u128) -> String {
    (0..ENCODED_CHARS)
        .rev()
        .map(|digit| char::from(ALPHABET[(value >> (digit * 5)) as usize & 31]))
        .collect()
}

/// Decodes a text created by [`encode`].
pub fn decode(text: &str) -> Option<u128> {
    let digit = |byte: u8| {
        ALPHABET
            .iter()
            .position(|letter| *letter == byte)
            .map(|place| place as u128)
    };
    is_encoded(text).then(|| {
        text.bytes()
            .filter_map(digit)
            .fold(0, |value, digit| value << 5 | digit)
    })
}

/// Returns `true` if [`encode`] can produce `text`.
pub fn is_encoded(text: &str) -> bool {
    text.len() == ENCODED_CHARS
        && text.bytes().all(|byte| ALPHABET.contains(&byte))
        && text.as_bytes()[0] <= b'7'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encoding_keeps_order_and_is_recognized(left: u128, right: u128) {
            prop_assert_eq!(encode(left).cmp(&encode(right)), left.cmp(&right));
            prop_assert!(is_encoded(&encode(left)));
            prop_assert_eq!(decode(&encode(left)), Some(left));
        }
    }

    #[test]
    fn foreign_letters_and_overflow_are_rejected() {
        assert!(!is_encoded("l0000000000000000000000000"));
        assert!(!is_encoded("80000000000000000000000000"));
        assert!(!is_encoded("0"));
    }
}

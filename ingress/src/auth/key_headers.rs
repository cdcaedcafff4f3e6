//! Parses the API key or visitor token from a request's headers (specification: Authentication,
//! rule 4).

use http::{HeaderMap, HeaderValue, header};

const API_KEY_HEADER: &str = "x-api-key";
const BEARER: &str = "bearer";

/// Text of the credential found in the headers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PresentedKey<'a> {
    /// The headers contain no key.
    Missing,
    /// The headers contain invalid text, or two different keys: choosing one silently could count a
    /// caller as one key and serve it as another.
    Unusable,
    /// The text of exactly one key.
    Text(&'a str),
}

pub(crate) fn presented_key(headers: &HeaderMap) -> PresentedKey<'_> {
    let bearers = headers
        .get_all(header::AUTHORIZATION)
        .iter()
        .filter_map(bearer_token);
    let plain = headers
        .get_all(API_KEY_HEADER)
        .iter()
        .map(HeaderValue::as_bytes);
    let mut keys = bearers
        .chain(plain)
        .map(<[u8]>::trim_ascii)
        .filter(|key| !key.is_empty());
    let Some(first) = keys.next() else {
        return PresentedKey::Missing;
    };
    if keys.any(|other| other != first) {
        return PresentedKey::Unusable;
    }
    str::from_utf8(first).map_or(PresentedKey::Unusable, PresentedKey::Text)
}

/// Returns the token of a bearer header, or `None` for other schemes, such as those of a proxy.
pub(crate) fn bearer_token(value: &HeaderValue) -> Option<&[u8]> {
    let value = value.as_bytes().trim_ascii();
    let (scheme, rest) = value.split_at_checked(BEARER.len())?;
    let separated = rest.first().is_none_or(u8::is_ascii_whitespace);
    (scheme.eq_ignore_ascii_case(BEARER.as_bytes()) && separated).then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn key_is_read_from_either_header_in_any_scheme_case() {
        for pair in [
            ("authorization", &b"Bearer k"[..]),
            ("authorization", b"bearer k"),
            ("authorization", b"BEARER  \tk "),
            ("x-api-key", b"k"),
            ("x-api-key", b" k "),
        ] {
            assert_eq!(
                presented_key(&headers(&[pair])),
                PresentedKey::Text("k"),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn same_key_in_both_headers_is_one_key() {
        let both = headers(&[("authorization", b"Bearer k"), ("x-api-key", b"k")]);
        assert_eq!(presented_key(&both), PresentedKey::Text("k"));
    }

    #[test]
    fn different_keys_in_both_headers_are_unusable() {
        for second in [
            ("x-api-key", &b"other"[..]),
            ("authorization", b"Bearer other"),
        ] {
            let both = headers(&[("authorization", b"Bearer k"), second]);
            assert_eq!(presented_key(&both), PresentedKey::Unusable);
        }
    }

    #[test]
    fn headers_without_a_key_are_missing_it() {
        for pairs in [
            &[][..],
            &[("authorization", &b""[..])],
            &[("authorization", b"Bearer")],
            &[("authorization", b"Bearer ")],
            &[("authorization", b"Basic dTpw")],
            &[("authorization", b"Bearerk")],
            &[("x-api-key", b"")],
        ] {
            assert_eq!(
                presented_key(&headers(pairs)),
                PresentedKey::Missing,
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn key_that_is_not_text_is_unusable() {
        assert_eq!(
            presented_key(&headers(&[("x-api-key", b"\xff")])),
            PresentedKey::Unusable
        );
    }

    proptest! {
        #[test]
        fn arbitrary_header_never_panics(value: Vec<u8>) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let _ = bearer_token(&value);
            }
        }
    }
}

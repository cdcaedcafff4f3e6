//! Cookies of browsers in which a person has signed in before. Their attempts have places and
//! delays of their own, so that guesses at the person's network address do not keep the person out.
//!
//! Nothing is stored: the cookie has a random number and its keyed hash together with the e-mail
//! address. It opens nothing; who stole it can guess as often as from another network address.

use cookie::{Cookie, time::Duration};
use data_encoding::HEXLOWER;
use http::{HeaderMap, HeaderValue};
use switchboard_schemas::{
    email::EmailAddress,
    random_token::{RandomToken, TOKEN_CHARS},
    secret::InstallationSecret,
};

use super::cookie::{find_cookies, format_cookie, is_https};
use crate::{config::IngressConfig, http::ApiResult};

const SECURE_NAME: &str = "__Host-switchboard-browser";
const PLAIN_NAME: &str = "switchboard-browser";
/// Time for which a browser is known after a sign-in.
const LIFETIME: Duration = Duration::days(180);
/// Purpose of the keyed hash.
const PURPOSE: &str = "known-browser";

/// Returns the number of the browser if the person with this address has signed in there.
pub(super) fn known_browser(
    headers: &HeaderMap,
    secret: &InstallationSecret,
    email: &str,
) -> Option<String> {
    let email: EmailAddress = email.parse().ok()?;
    find_cookies(headers, &[SECURE_NAME, PLAIN_NAME]).find_map(|value| {
        let (number, tag) = value.split_at_checked(TOKEN_CHARS)?;
        let tag = HEXLOWER.decode(tag.as_bytes()).ok()?;
        let is_known = secret.verify_mac(PURPOSE, &message(number, &email), &tag);
        is_known.then(|| number.to_owned())
    })
}

/// Returns the header by which the browser is known from now on.
pub(super) fn browser_cookie(
    headers: &HeaderMap,
    secret: &InstallationSecret,
    email: &EmailAddress,
    config: &IngressConfig,
) -> ApiResult<HeaderValue> {
    let number = RandomToken::generate();
    let tag = HEXLOWER.encode(&secret.mac(PURPOSE, &message(number.expose(), email)));
    let is_secure = is_https(headers, config);
    let name = if is_secure { SECURE_NAME } else { PLAIN_NAME };
    let value = format!("{}{tag}", number.expose());
    let cookie = Cookie::build((name, value)).max_age(LIFETIME);
    format_cookie(cookie, is_secure)
}

fn message(number: &str, email: &EmailAddress) -> Vec<u8> {
    format!("{number}\n{}", email.as_str()).into_bytes()
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;
    use crate::testing::secret;

    fn sent_back(set: &HeaderValue) -> HeaderMap {
        let pair = set.to_str().unwrap().split(';').next().unwrap();
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(pair).unwrap())])
    }

    #[test]
    fn browser_is_known_for_one_address_of_one_installation() {
        let email: EmailAddress = "ada@example.org".parse().unwrap();
        let config = IngressConfig::default();
        let cookie = || browser_cookie(&HeaderMap::new(), &secret(), &email, &config).unwrap();
        let set = cookie();
        let text = set.to_str().unwrap();
        assert!(text.contains("; HttpOnly; SameSite=Lax") && text.contains("Max-Age=15552000"));
        assert!(!text.contains("ada"), "{text}");
        let headers = sent_back(&set);
        let other = InstallationSecret::from_bytes([9; 32]);
        let number = known_browser(&headers, &secret(), "Ada@example.org");
        assert!(number.is_some());
        assert_ne!(
            number,
            known_browser(&sent_back(&cookie()), &secret(), email.as_str())
        );
        assert_eq!(known_browser(&headers, &secret(), "bob@example.org"), None);
        assert_eq!(known_browser(&headers, &other, email.as_str()), None);
        assert_eq!(
            known_browser(&HeaderMap::new(), &secret(), email.as_str()),
            None
        );
        let short = HeaderValue::from_static("switchboard-browser=x; switchboard-browser=0");
        let short = HeaderMap::from_iter([(header::COOKIE, short)]);
        assert_eq!(known_browser(&short, &secret(), email.as_str()), None);
    }
}

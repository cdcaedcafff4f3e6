//! Dashboard accounts: sign-in, sessions and links.
//!
//! Start with `sign_in`, the routes below `/api/dashboard`. `link` and `state::passwords`
//! verify users, `session` is created by sign-in, carried by `cookie` and protected against other
//! sites by `same_site`. `known_browser` keeps the guesses of others from delaying a person.
//! `change` is the only way to change accounts.

pub(crate) mod bodies;
mod change;
mod cookie;
mod known_browser;
pub mod link;
mod same_site;
pub(crate) mod session;
mod sign_in;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    change::{AccountEdit, change_account, check_last_owner, create_account},
    cookie::has_session_cookie,
    same_site::check_same_site,
    session::SignedIn,
    sign_in::{LINK_PATH, PASSWORD_PATH, SESSION_PATH, routes},
};

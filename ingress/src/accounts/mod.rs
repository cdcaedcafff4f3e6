//! People: how they prove who they are, and what a browser holds of it.
//!
//! Reading order: `sign_in` is the routes below `/api/dashboard`; `password` and `link` are the two proofs; `session` is
//! what a proof is traded for, carried by `cookie` and guarded by `same_site` against other sites; `change` is the one way
//! in which accounts change.

mod change;
mod cookie;
pub mod link;
pub(crate) mod password;
mod same_site;
pub(crate) mod session;
mod sign_in;

pub(crate) use self::{
    change::{AccountEdit, change_account, last_owner, make_account},
    cookie::has_session_cookie,
    password::Passwords,
    same_site::check_same_site,
    session::SignedIn,
    sign_in::routes,
};

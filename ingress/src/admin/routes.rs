//! The routes of the administrative API, and nothing else.

use axum::{
    Router,
    routing::{MethodRouter, get, post},
};

use super::{
    analytics, api_keys, apply_document, audit_log, conversations, organizations, product_items,
    products,
    things::{self, Agents, Keys, Kind, Providers, Teams},
    trials, users,
};
use crate::{accounts, state::AppState};

/// Everything below `/api/admin`, and below `/api/dashboard` how people come there.
pub(crate) fn routes() -> Router<AppState> {
    accounts::routes()
        .route("/api/admin/apply", post(apply_document))
        .route(
            "/api/admin/organizations",
            get(organizations::list).post(organizations::create),
        )
        .route(
            "/api/admin/organizations/{org}",
            get(organizations::get)
                .put(organizations::replace)
                .patch(organizations::patch)
                .delete(organizations::remove),
        )
        .merge(things_of::<Agents>(
            "/api/admin/organizations/{org}/agents",
            "/api/admin/organizations/{org}/agents/{id}",
        ))
        .route(
            "/api/admin/organizations/{org}/agents/{id}/products",
            get(products::status)
                .put(products::upload)
                .delete(products::remove),
        )
        .route(
            "/api/admin/organizations/{org}/agents/{id}/products/items",
            get(product_items::list),
        )
        .route(
            "/api/admin/organizations/{org}/agents/{id}/products/refresh",
            post(products::refresh),
        )
        .route(
            "/api/admin/organizations/{org}/agents/{id}/try",
            post(trials::agent),
        )
        .merge(things_of::<Teams>(
            "/api/admin/organizations/{org}/teams",
            "/api/admin/organizations/{org}/teams/{id}",
        ))
        .route(
            "/api/admin/organizations/{org}/teams/{id}/try",
            post(trials::team),
        )
        .merge(things_of::<Providers>(
            "/api/admin/organizations/{org}/providers",
            "/api/admin/organizations/{org}/providers/{id}",
        ))
        .route(
            "/api/admin/organizations/{org}/keys",
            get(things::list::<Keys>).post(api_keys::create),
        )
        .route("/api/admin/organizations/{org}/keys/{id}", one_of::<Keys>())
        .route(
            "/api/admin/organizations/{org}/keys/{id}/rotate",
            post(api_keys::rotate),
        )
        .route(
            "/api/admin/organizations/{org}/users",
            get(users::list).post(users::create),
        )
        .route(
            "/api/admin/organizations/{org}/users/{id}",
            get(users::get).patch(users::patch).delete(users::remove),
        )
        .route(
            "/api/admin/organizations/{org}/users/{id}/link",
            post(users::link),
        )
        .route("/api/admin/organizations/{org}/audit", get(audit_log::list))
        .route(
            "/api/admin/organizations/{org}/analytics",
            get(analytics::get),
        )
        .route(
            "/api/admin/organizations/{org}/conversations",
            get(conversations::list),
        )
        .route(
            "/api/admin/organizations/{org}/conversations/export",
            get(conversations::export),
        )
        .route(
            "/api/admin/organizations/{org}/conversations/{id}",
            get(conversations::get).delete(conversations::remove),
        )
        .route(
            "/api/admin/organizations/{org}/conversations/{id}/messages/{message}/stream",
            get(conversations::follow),
        )
        .route(
            "/api/admin/organizations/{org}/erasures",
            get(conversations::erasures).post(conversations::erase),
        )
        .route(
            "/api/admin/organizations/{org}/erasures/{id}",
            get(conversations::erasure).post(conversations::go_on_erasing),
        )
}

fn things_of<K: Kind>(all: &str, one: &str) -> Router<AppState> {
    Router::new()
        .route(all, get(things::list::<K>).post(things::create::<K>))
        .route(one, one_of::<K>())
}

fn one_of<K: Kind>() -> MethodRouter<AppState> {
    get(things::get::<K>)
        .put(things::replace::<K>)
        .patch(things::patch::<K>)
        .delete(things::remove::<K>)
}

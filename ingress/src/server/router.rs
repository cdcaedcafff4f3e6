//! The route tables of the public API, the admin API and the dashboard.

use std::{any::Any, sync::LazyLock};

use axum::{
    Extension, Router, middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    admin,
    http::{
        ApiError,
        cors::cors,
        observe::observe,
        security_headers::security_headers,
        unknown_routes::{answer_unknown_route, unsupported_method, write_problems},
    },
    limits::write_limit_headers,
    openapi::{PublishedDocument, document},
    routes::{
        agent, agent_chat, conversation, dashboard, demo, docs, file_download, file_upload,
        message, openapi as openapi_route, root, team_chat, visitor_token, widget, widget_script,
    },
    state::AppState,
};

/// The OpenAPI document of the public routes, built on first use.
static PUBLIC_DOCUMENT: LazyLock<PublishedDocument> =
    LazyLock::new(|| PublishedDocument::new(&document(public_routes().into_openapi())));

/// Page for people, where the dashboard is served.
const DASHBOARD: &str = "dashboard";
/// Page for people, where it is not.
const DOCS: &str = "docs";

/// Returns both APIs and the dashboard, for a shared port.
pub(crate) fn router(state: AppState) -> Router {
    with_layers(
        public_part()
            .merge(admin::routes())
            .merge(dashboard::routes(None))
            .merge(root::routes(DASHBOARD)),
        state,
    )
}

/// Returns the public API, for installations with a separate admin port.
pub(crate) fn public_router(state: AppState) -> Router {
    // The address of the admin port is nobody's business here.
    with_layers(public_part().merge(root::routes(DOCS)), state)
}

/// Returns the admin API and the dashboard, for the admin port.
pub(crate) fn admin_router(state: AppState) -> Router {
    let dashboard = dashboard::routes(Some(&state.config.public_url));
    with_layers(
        admin::routes()
            .merge(docs::routes())
            .merge(dashboard)
            .merge(root::routes(DASHBOARD)),
        state,
    )
}

fn public_part() -> Router<AppState> {
    Router::from(public_routes())
        .merge(routes_with_empty_ids())
        .merge(docs::routes())
        .merge(widget_script::routes())
        .merge(demo::routes())
        .layer(Extension(&PUBLIC_DOCUMENT))
}

/// Adds the layers and fallbacks that apply to all routes, including unknown ones.
fn with_layers(routes: Router<AppState>, state: AppState) -> Router {
    let routes = routes
        .method_not_allowed_fallback(unsupported_method)
        .fallback(answer_unknown_route)
        .layer(CatchPanicLayer::custom(panic_response))
        .layer(middleware::from_fn(write_limit_headers))
        .layer(middleware::from_fn(cors))
        .layer(middleware::from_fn(security_headers))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            observe::<AppState>,
        ))
        .with_state(state);
    Router::new()
        .fallback_service(routes)
        .layer(middleware::from_fn(write_problems))
}

/// Returns the public routes with their OpenAPI documentation, so that no route is undocumented.
pub(crate) fn public_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(agent_chat::chat_with_agent))
        .routes(routes!(team_chat::chat_with_team))
        .routes(routes!(agent::get_agent))
        .routes(routes!(widget::get_widget))
        .routes(routes!(
            conversation::get_conversation,
            conversation::update_conversation
        ))
        .routes(routes!(message::get_message))
        .routes(routes!(message::stream_message))
        .routes(routes!(message::cancel_message))
        .routes(routes!(file_upload::upload_agent_file))
        .routes(routes!(file_upload::upload_team_file))
        .routes(routes!(file_download::get_file))
        .routes(routes!(visitor_token::create_visitor_token))
        .routes(routes!(openapi_route::get_document))
}

/// Path parameters do not match empty segments, but empty ids have their own documented errors.
fn routes_with_empty_ids() -> Router<AppState> {
    let conversation = get(conversation::get_conversation).patch(conversation::update_conversation);
    Router::new()
        .route("/api/public/agents/", get(agent::get_agent))
        .route(
            "/api/public/agents//chat",
            post(agent_chat::chat_with_agent),
        )
        .route(
            "/api/public/agents//files",
            post(file_upload::upload_agent_file),
        )
        .route("/api/public/agents//widget", get(widget::get_widget))
        .route("/api/public/agents//conversations/", conversation.clone())
        .route(
            "/api/public/agents//conversations/{sessionId}",
            conversation.clone(),
        )
        .route("/api/public/agents/{agentId}/conversations/", conversation)
        .route("/api/public/teams//chat", post(team_chat::chat_with_team))
        .route(
            "/api/public/teams//files",
            post(file_upload::upload_team_file),
        )
}

/// The panic message may contain anything; the panic hook has already logged its location.
fn panic_response(_message: Box<dyn Any + Send>) -> Response {
    ApiError::internal(&"a handler panicked").into_response()
}

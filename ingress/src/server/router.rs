//! The routes, and nothing else.

use std::any::Any;

use axum::{
    Router, middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    admin,
    cors::cors,
    error::{ApiError, ErrorCode},
    limits::tell_limits,
    observe::observe,
    routes::{
        agent, agent_chat, conversation, dashboard, demo, docs, message, openapi, team_chat,
        visitor_token, widget, widget_script,
    },
    security_headers::security_headers,
    state::AppState,
};

/// Both APIs and the dashboard, for a port that serves them together.
pub(crate) fn router(state: AppState) -> Router {
    with_layers(
        public_part()
            .merge(admin::routes())
            .merge(dashboard::routes(None)),
        state,
    )
}

/// The public API, for the public port of an installation that has a port for administrators.
pub(crate) fn public_router(state: AppState) -> Router {
    with_layers(public_part(), state)
}

/// The administrative API and the dashboard, for a port of their own.
pub(crate) fn admin_router(state: AppState) -> Router {
    let dashboard = dashboard::routes(Some(&state.config.public_url));
    with_layers(admin::routes().merge(dashboard), state)
}

fn public_part() -> Router<AppState> {
    Router::from(public_routes())
        .merge(routes_with_empty_ids())
        .merge(docs::routes())
        .merge(widget_script::routes())
        .merge(demo::routes())
}

/// What every route has, an unknown one included.
fn with_layers(routes: Router<AppState>, state: AppState) -> Router {
    routes
        .method_not_allowed_fallback(async || {
            ApiError::new(
                ErrorCode::MethodNotAllowed,
                "this path does not take this method",
            )
        })
        .fallback(async || ApiError::new(ErrorCode::NotFound, "nothing lives at this path"))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(tell_limits))
        .layer(middleware::from_fn(cors))
        .layer(middleware::from_fn(security_headers))
        .layer(middleware::from_fn_with_state(state.clone(), observe))
        .with_state(state)
}

/// The public routes with what the document says of them: a route is added to both or to none.
pub(crate) fn public_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(agent_chat::post))
        .routes(routes!(team_chat::post))
        .routes(routes!(agent::get))
        .routes(routes!(widget::get))
        .routes(routes!(conversation::get, conversation::patch))
        .routes(routes!(message::get))
        .routes(routes!(message::stream))
        .routes(routes!(message::cancel))
        .routes(routes!(visitor_token::post))
        .routes(routes!(openapi::get))
}

/// A parameter matches no empty segment, and yet an empty id has an answer of its own behind the checks of the key.
fn routes_with_empty_ids() -> Router<AppState> {
    let conversation = get(conversation::get).patch(conversation::patch);
    Router::new()
        .route("/api/public/agents/", get(agent::get))
        .route("/api/public/agents//chat", post(agent_chat::post))
        .route("/api/public/agents//widget", get(widget::get))
        .route("/api/public/agents//conversations/", conversation.clone())
        .route(
            "/api/public/agents//conversations/{sessionId}",
            conversation.clone(),
        )
        .route("/api/public/agents/{agentId}/conversations/", conversation)
        .route("/api/public/teams//chat", post(team_chat::post))
}

/// The panic's message may hold anything; the hook of the process has already written where it happened.
fn panicked(_message: Box<dyn Any + Send>) -> Response {
    ApiError::internal(&"a handler panicked").into_response()
}

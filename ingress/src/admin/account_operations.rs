//! Operations of dashboard accounts, which need no permission: sign-in, links and passwords.

use http::StatusCode;
use utoipa::{
    ToSchema,
    openapi::{
        HttpMethod::{Delete, Get, Post},
        ResponseBuilder,
        security::SecurityRequirement,
    },
};

use super::operations::{AdminOperation, JSON, OperationDescription};
use crate::{
    accounts::{
        LINK_PATH, PASSWORD_PATH, SESSION_PATH,
        bodies::{ChangePasswordRequest, SessionView, SignInRequest, UseLinkRequest},
    },
    http::ErrorCode,
    openapi::problems::ProblemCase::{Coded, Plain},
};

/// Returns the operations below `/api/dashboard`.
pub(super) fn account_operations() -> [AdminOperation; 5] {
    let operations: [(_, _, _, _, fn(&mut OperationDescription)); 5] = [
        (
            Get,
            SESSION_PATH,
            "readSession",
            "Read the session",
            describe_session,
        ),
        (Post, SESSION_PATH, "signIn", "Sign in", describe_sign_in),
        (
            Delete,
            SESSION_PATH,
            "signOut",
            "Sign out",
            describe_sign_out,
        ),
        (
            Post,
            LINK_PATH,
            "useLink",
            "Use a one-time link",
            describe_link,
        ),
        (
            Post,
            PASSWORD_PATH,
            "changePassword",
            "Change your password",
            describe_password_change,
        ),
    ];
    operations.map(|(method, path, id, summary, describe)| AdminOperation {
        path: path.to_owned(),
        method,
        id: id.to_owned(),
        summary: summary.to_owned(),
        describe,
    })
}

fn describe_session(description: &mut OperationDescription) {
    require_session(description);
    describe_session_response(description);
}

fn describe_sign_in(description: &mut OperationDescription) {
    description.operation.security = Some(vec![]);
    describe_body::<SignInRequest>(description);
    describe_session_response(description);
}

fn describe_sign_out(description: &mut OperationDescription) {
    description.operation.security = Some(vec![]);
    let response = ResponseBuilder::new().description("The session has ended.");
    description.add_response(204, response.build());
    description.problems.extend([
        Coded(ErrorCode::DomainNotAllowed),
        Coded(ErrorCode::Internal),
        Coded(ErrorCode::Unavailable),
    ]);
}

fn describe_link(description: &mut OperationDescription) {
    description.operation.security = Some(vec![]);
    describe_body::<UseLinkRequest>(description);
    describe_session_response(description);
    description.problems.push(Coded(ErrorCode::NotFound));
}

fn describe_password_change(description: &mut OperationDescription) {
    require_session(description);
    describe_body::<ChangePasswordRequest>(description);
    describe_session_response(description);
    description.problems.push(Coded(ErrorCode::NotFound));
}

fn require_session(description: &mut OperationDescription) {
    let session = SecurityRequirement::new("session", [] as [&str; 0]);
    description.operation.security = Some(vec![session]);
    description.problems.extend([
        Coded(ErrorCode::MissingApiKey),
        Coded(ErrorCode::RateLimited),
    ]);
}

fn describe_body<B: ToSchema>(description: &mut OperationDescription) {
    let body = description.refer::<B>();
    description.add_body(&[JSON], &body);
    description.problems.extend([
        Coded(ErrorCode::DomainNotAllowed),
        Coded(ErrorCode::RateLimited),
    ]);
}

fn describe_session_response(description: &mut OperationDescription) {
    description.add_json::<SessionView>(200);
    description.problems.extend([
        Plain(StatusCode::UNAUTHORIZED),
        Coded(ErrorCode::Internal),
        Coded(ErrorCode::Unavailable),
    ]);
}

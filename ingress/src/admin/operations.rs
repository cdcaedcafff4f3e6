//! Operations of the admin API and their descriptions. Only a handler with [`Admin`] as its first
//! argument can be added, and the types of its arguments and its response describe the operation.

use axum::{
    Extension, Json, Router,
    extract::Query,
    handler::Handler,
    routing::{MethodFilter, on},
};
use http::{HeaderMap, StatusCode};
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        AllOfBuilder, Content, ContentBuilder, HttpMethod, ObjectBuilder, Ref, RefOr, Required,
        Response, ResponseBuilder, Schema,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        schema::Type,
    },
};

use super::{
    authorization::{Admin, PathIds, PermissionSubject, ResourceId},
    bodies::{ChangeBody, FormBody, JsonBody, ProductFile},
    permissions::Permission,
    preconditions::{ExpectedVersion, VersionPrecondition},
    responses::{
        AcceptedDeletion, ConflictingJson, DeletedResource, DeletionResponse, EventStream,
        FileDownload, JsonResponse, ListOrFile, NoContent, StoredFileDownload, TableResponse,
    },
};
use crate::{
    files::FileUploadForm,
    http::{ApiResult, ErrorCode, query::QueryTexts},
    openapi::problems::{
        BODY,
        ProblemCase::{self, Coded, Plain},
        REPLY,
    },
    reply::resume::{LastEventIdHeader, ResumeQuery},
    state::AppState,
};

/// The suffix of the schema of a change to all fields.
const CHANGE_SUFFIX: &str = "Change";
/// The suffix of the schema of a merge patch.
pub(super) const PATCH_SUFFIX: &str = "Patch";
pub(super) const JSON: &str = "application/json";

/// The description of an operation. Each argument of its handler and its response add their part.
#[derive(Default)]
pub(super) struct OperationDescription {
    pub(super) operation: Operation,
    /// The schemas that it refers to, by name.
    pub(super) schemas: Vec<(String, RefOr<Schema>)>,
    /// The errors of the operation.
    pub(super) problems: Vec<ProblemCase>,
}

pub(super) struct AdminOperation {
    /// The path with its parameters in braces.
    pub(super) path: String,
    pub(super) method: HttpMethod,
    /// The `operationId`.
    pub(super) id: String,
    pub(super) summary: String,
    /// Adds the descriptions of the types of the handler.
    pub(super) describe: fn(&mut OperationDescription),
}

/// The routes of the admin API and the operations that they serve.
#[derive(Default)]
pub(super) struct AdminRoutes {
    pub(super) router: Router<AppState>,
    /// The operations, in the order in which they were added.
    pub(super) operations: Vec<AdminOperation>,
}

/// A handler whose first argument is [`Admin`].
pub(super) trait AdminHandler<Arguments> {
    /// Describes the operation that the handler serves.
    fn describe(description: &mut OperationDescription);
}

pub(super) trait DescribeArgument {
    /// Adds the parts of a request that the argument is read from.
    fn describe(_description: &mut OperationDescription) {}
}

pub(super) trait DescribeResponse {
    /// Adds the responses of a success.
    fn describe(description: &mut OperationDescription);
}

impl AdminRoutes {
    /// Adds an operation at a path.
    pub(super) fn add<H, Arguments, AxumArguments>(
        &mut self,
        method: HttpMethod,
        path: &str,
        (id, summary): (impl Into<String>, impl Into<String>),
        handler: H,
    ) where
        H: AdminHandler<Arguments> + Handler<AxumArguments, AppState>,
        AxumArguments: 'static,
    {
        let filter = match method {
            HttpMethod::Post => MethodFilter::POST,
            HttpMethod::Put => MethodFilter::PUT,
            HttpMethod::Patch => MethodFilter::PATCH,
            HttpMethod::Delete => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, on(filter, handler));
        self.operations.push(AdminOperation {
            path: path.to_owned(),
            method,
            id: id.into(),
            summary: summary.into(),
            describe: H::describe,
        });
    }
}

macro_rules! impl_admin_handler {
    ($($argument:ident),*) => {
        impl<F, Fut, P, S, A, $($argument),*> AdminHandler<(Admin<P, S>, $($argument,)*)> for F
        where
            F: Fn(Admin<P, S>, $($argument),*) -> Fut,
            Fut: Future<Output = ApiResult<A>>,
            P: Permission,
            S: PermissionSubject,
            A: DescribeResponse,
            $($argument: DescribeArgument,)*
        {
            fn describe(description: &mut OperationDescription) {
                describe_permission::<P, S>(description);
                $($argument::describe(description);)*
                A::describe(description);
            }
        }
    };
}

impl_admin_handler!();
impl_admin_handler!(A1);
impl_admin_handler!(A1, A2);
impl_admin_handler!(A1, A2, A3);
impl_admin_handler!(A1, A2, A3, A4);
impl_admin_handler!(A1, A2, A3, A4, A5);

fn describe_permission<P: Permission, S: PermissionSubject>(
    description: &mut OperationDescription,
) {
    let least = match P::LEAST_ROLE {
        Some(role) => format!("the role `{}` or a higher one", role_name(role)),
        None => "the admin token".to_owned(),
    };
    let text = format!("Needs the permission `{}`: {least}.", P::NAME);
    description.operation.description = Some(text);
    description.problems.extend([
        Coded(ErrorCode::MissingApiKey),
        Coded(ErrorCode::InvalidApiKey),
        Plain(StatusCode::UNAUTHORIZED),
        Coded(ErrorCode::InsufficientScope),
        Coded(ErrorCode::DomainNotAllowed),
        Plain(StatusCode::FORBIDDEN),
        Coded(ErrorCode::RateLimited),
        Coded(ErrorCode::Internal),
        Coded(ErrorCode::Unavailable),
    ]);
    if S::CAN_BE_MISSING {
        description.problems.push(Coded(ErrorCode::NotFound));
    }
}

fn role_name(role: impl serde::Serialize) -> String {
    let name = serde_json::to_value(role).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

impl OperationDescription {
    /// Adds the schema of `T` and returns a reference to it.
    pub(super) fn refer<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let name = schema_name::<T>();
        T::schemas(&mut self.schemas);
        self.schemas.push((name.clone(), T::schema()));
        RefOr::Ref(Ref::from_schema_name(name))
    }

    pub(super) fn add_response(&mut self, status: u16, response: Response) {
        self.operation
            .responses
            .responses
            .insert(status.to_string(), response.into());
    }

    pub(super) fn add_json<T: ToSchema>(&mut self, status: u16) {
        let schema = self.refer::<T>();
        let status_text = StatusCode::from_u16(status).ok();
        let status_text = status_text.and_then(|status| status.canonical_reason());
        let response = ResponseBuilder::new()
            .description(status_text.unwrap_or_default())
            .content(JSON, content(schema));
        self.add_response(status, response.build());
    }

    pub(super) fn add_body(&mut self, media_types: &[&str], schema: &RefOr<Schema>) {
        let body = media_types
            .iter()
            .fold(RequestBodyBuilder::new(), |body, media_type| {
                body.content(*media_type, content(schema.clone()))
            });
        self.operation.request_body = Some(body.required(Some(Required::True)).build().into());
        self.problems.extend(BODY.iter().copied());
    }

    /// Adds a body that changes a resource.
    fn add_change(&mut self, media_types: &[&str], schema: &RefOr<Schema>) {
        self.add_body(media_types, schema);
        self.problems.push(Coded(ErrorCode::Conflict));
    }

    fn add_parameter(&mut self, name: &str, place: ParameterIn, description: &str) {
        let is_required = place == ParameterIn::Path;
        let is_required = if is_required {
            Required::True
        } else {
            Required::False
        };
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(place)
            .required(is_required)
            .description(Some(description))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)));
        self.add_parameters(vec![parameter.build()]);
    }

    fn add_parameters(&mut self, parameters: Vec<Parameter>) {
        let all = self.operation.parameters.get_or_insert_default();
        all.extend(parameters.into_iter().map(RefOr::T));
    }

    pub(super) fn add_path_parameters(&mut self, path: &str) {
        let segments = path.split('/');
        for name in segments.filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')) {
            let description = match name {
                "org" => "The id of the organization.",
                "message" => "The id of the reply.",
                "file" => "The id of the file.",
                _ => "The id of the resource.",
            };
            self.add_parameter(name, ParameterIn::Path, description);
            self.problems.push(Coded(ErrorCode::NotFound));
        }
    }
}

/// Returns the name of a type in the document: generic arguments follow an underscore.
fn schema_name<T>() -> String {
    let parts = std::any::type_name::<T>().split(['<', '>', ',']);
    let names = parts
        .filter_map(|part| part.rsplit("::").next())
        .filter(|name| !name.is_empty());
    names.collect::<Vec<_>>().join("_")
}

fn content(schema: RefOr<Schema>) -> Content {
    ContentBuilder::new().schema(Some(schema)).build()
}

fn text_schema() -> RefOr<Schema> {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    schema.build().into()
}

impl<T> DescribeArgument for Extension<T> {}
impl DescribeArgument for PathIds {}
impl DescribeArgument for ResourceId {}
impl DescribeArgument for HeaderMap {}

impl DescribeArgument for LastEventIdHeader {
    fn describe(description: &mut OperationDescription) {
        description.add_parameters(Self::into_params(|| None));
    }
}

impl DescribeArgument for QueryTexts<ResumeQuery> {
    fn describe(description: &mut OperationDescription) {
        description.add_parameters(ResumeQuery::into_params(|| None));
        description.problems.extend([
            Coded(ErrorCode::InvalidRequestData),
            Coded(ErrorCode::RangeNotSatisfiable),
            Coded(ErrorCode::ReplyRestarted),
        ]);
    }
}

impl<T: IntoParams> DescribeArgument for Query<T> {
    fn describe(description: &mut OperationDescription) {
        description.add_parameters(T::into_params(|| Some(ParameterIn::Query)));
        // A malformed query string has no code; a value that breaks a rule has one.
        description.problems.extend([
            Coded(ErrorCode::InvalidRequestData),
            Plain(StatusCode::BAD_REQUEST),
        ]);
    }
}

impl DescribeArgument for VersionPrecondition {
    fn describe(description: &mut OperationDescription) {
        let text = "The `ETag` of the version to change; the response is 409 if the resource has another version.";
        description.add_parameter("If-Match", ParameterIn::Header, text);
        description.problems.push(Coded(ErrorCode::Conflict));
    }
}

impl<T: ToSchema> DescribeArgument for JsonBody<T> {
    fn describe(description: &mut OperationDescription) {
        let schema = description.refer::<T>();
        description.add_change(&[JSON], &schema);
    }
}

impl<F: ToSchema, const IS_PATCH: bool> DescribeArgument for JsonBody<ChangeBody<F, IS_PATCH>> {
    fn describe(description: &mut OperationDescription) {
        let (suffix, media_types): (_, &[_]) = if IS_PATCH {
            (PATCH_SUFFIX, &["application/merge-patch+json", JSON])
        } else {
            (CHANGE_SUFFIX, &[JSON])
        };
        let parts = AllOfBuilder::new()
            .description(Some(
                "The fields of a change, and the version that it applies to.",
            ))
            .item(description.refer::<F>())
            .item(description.refer::<ExpectedVersion>());
        let name = format!("{}{suffix}", schema_name::<F>());
        let schema = Schema::AllOf(parts.build());
        description.schemas.push((name.clone(), schema.into()));
        let schema = RefOr::Ref(Ref::from_schema_name(name));
        description.add_change(media_types, &schema);
    }
}

impl DescribeArgument for ProductFile {
    fn describe(description: &mut OperationDescription) {
        let media_types = [
            "text/csv",
            JSON,
            "application/x-ndjson",
            "application/xml",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ];
        description.add_change(&media_types, &text_schema());
    }
}

impl DescribeArgument for FormBody {
    fn describe(description: &mut OperationDescription) {
        let schema = description.refer::<FileUploadForm>();
        description.add_body(&["multipart/form-data"], &schema);
    }
}

impl DescribeResponse for StoredFileDownload {
    fn describe(description: &mut OperationDescription) {
        for (status, text) in [(200, "The file."), (206, "A part of the file.")] {
            let response = ResponseBuilder::new()
                .description(text)
                .content("application/octet-stream", content(text_schema()));
            description.add_response(status, response.build());
        }
        description
            .problems
            .push(Coded(ErrorCode::RangeNotSatisfiable));
    }
}

impl<T: ToSchema> DescribeResponse for Json<T> {
    fn describe(description: &mut OperationDescription) {
        description.add_json::<T>(200);
    }
}

impl<const STATUS: u16, T: ToSchema> DescribeResponse for JsonResponse<STATUS, T> {
    fn describe(description: &mut OperationDescription) {
        description.add_json::<T>(STATUS);
        // A resource in another state refuses a task.
        if STATUS == StatusCode::ACCEPTED.as_u16() {
            description.problems.push(Coded(ErrorCode::Conflict));
        }
    }
}

impl<T: ToSchema> DescribeResponse for ConflictingJson<T> {
    fn describe(description: &mut OperationDescription) {
        description.add_json::<T>(200);
        description.problems.push(Coded(ErrorCode::Conflict));
    }
}

impl DescribeResponse for NoContent {
    fn describe(description: &mut OperationDescription) {
        let response = ResponseBuilder::new().description("The resource was deleted.");
        description.add_response(204, response.build());
        description.problems.push(Coded(ErrorCode::Conflict));
    }
}

impl DescribeResponse for DeletedResource {
    fn describe(description: &mut OperationDescription) {
        NoContent::describe(description);
    }
}

impl DescribeResponse for DeletionResponse {
    fn describe(description: &mut OperationDescription) {
        NoContent::describe(description);
        description.add_json::<AcceptedDeletion>(202);
    }
}

impl DescribeResponse for EventStream {
    fn describe(description: &mut OperationDescription) {
        let response = ResponseBuilder::new()
            .description("The reply as events, in the form of the public API.")
            .content("text/event-stream", Content::default());
        description.add_response(200, response.build());
        description.problems.extend(REPLY.iter().copied());
    }
}

impl DescribeResponse for FileDownload {
    fn describe(description: &mut OperationDescription) {
        let response = ResponseBuilder::new()
            .description("The file.")
            .content("application/x-ndjson", content(text_schema()))
            .content("text/csv", content(text_schema()));
        description.add_response(200, response.build());
    }
}

impl<T: ToSchema> DescribeResponse for TableResponse<T> {
    fn describe(description: &mut OperationDescription) {
        describe_json_or_text::<T>(description, &["text/csv"]);
    }
}

impl<T: ToSchema> DescribeResponse for ListOrFile<T> {
    fn describe(description: &mut OperationDescription) {
        describe_json_or_text::<T>(description, &["text/csv", "application/x-ndjson"]);
    }
}

fn describe_json_or_text<T: ToSchema>(
    description: &mut OperationDescription,
    media_types: &[&str],
) {
    description.add_json::<T>(200);
    let response = description.operation.responses.responses.get_mut("200");
    if let Some(RefOr::T(response)) = response {
        for media_type in media_types {
            let text = content(text_schema()).into();
            response.content.insert((*media_type).to_owned(), text);
        }
    }
}

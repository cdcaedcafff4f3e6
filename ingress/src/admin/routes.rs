//! The routes of the admin API.

use axum::Router;
use utoipa::openapi::HttpMethod::{Delete, Get, Patch, Post, Put};

use super::{
    analytics, api_document, apply_document, audit_log, conversations,
    operations::AdminRoutes,
    product_items, products,
    resources::{
        self, Resource, agents::Agents, keys, keys::Keys, organizations, providers::Providers,
        teams::Teams,
    },
    trials, users,
};
use crate::{accounts, state::AppState};

/// Returns all routes below `/api/admin`, and the routes of people below `/api/dashboard`.
pub(crate) fn routes() -> Router<AppState> {
    accounts::routes()
        .merge(api_document::routes())
        .merge(admin_routes().router)
}

/// Returns the routes of the admin API with their descriptions.
pub(super) fn admin_routes() -> AdminRoutes {
    let routes = AdminRoutes::default().add(
        Post,
        "/api/admin/apply",
        (
            "applyDocument",
            "Create or update resources from a document",
        ),
        apply_document,
    );
    let routes = add_products(add_trials(add_keys(add_organizations(routes))));
    let routes = add_resource::<Providers>(add_resource::<Teams>(add_resource::<Agents>(routes)));
    add_erasures(add_conversations(add_users(routes)))
}

fn org_path(rest: &str) -> String {
    format!("/api/admin/organizations/{{org}}{rest}")
}

fn add_organizations(routes: AdminRoutes) -> AdminRoutes {
    let (all, one) = ("/api/admin/organizations", &org_path(""));
    routes
        .add(
            Get,
            all,
            ("listOrganizations", "List organizations"),
            organizations::list,
        )
        .add(
            Post,
            all,
            ("createOrganization", "Create an organization"),
            organizations::create,
        )
        .add(
            Get,
            one,
            ("readOrganization", "Read an organization"),
            organizations::read,
        )
        .add(
            Put,
            one,
            ("replaceOrganization", "Replace an organization"),
            organizations::replace,
        )
        .add(
            Patch,
            one,
            ("patchOrganization", "Change an organization"),
            organizations::patch,
        )
        .add(
            Delete,
            one,
            ("deleteOrganization", "Delete an organization"),
            organizations::delete,
        )
}

/// Adds the operations that all resources have, except the creation, which keys make differently.
fn add_shared<R: Resource>(routes: AdminRoutes) -> AdminRoutes {
    let all = &org_path(&format!("/{}", R::COLLECTION));
    let one = &format!("{all}/{{id}}");
    let named = |verb: &str, summary: &str| {
        let thing = R::KIND.name();
        (format!("{verb}{}", R::NAME), format!("{summary} {thing}"))
    };
    routes
        .add(
            Get,
            all,
            (
                format!("list{}s", R::NAME),
                format!("List {}", R::COLLECTION),
            ),
            resources::list::<R>,
        )
        .add(Get, one, named("read", "Read one"), resources::read::<R>)
        .add(
            Put,
            one,
            named("replace", "Replace all fields of one"),
            resources::replace::<R>,
        )
        .add(
            Patch,
            one,
            named("patch", "Change fields of one"),
            resources::patch::<R>,
        )
        .add(
            Delete,
            one,
            named("delete", "Delete one"),
            resources::delete::<R>,
        )
}

fn add_resource<R: Resource>(routes: AdminRoutes) -> AdminRoutes {
    let all = &org_path(&format!("/{}", R::COLLECTION));
    let names = (
        format!("create{}", R::NAME),
        format!("Create one {}", R::KIND.name()),
    );
    add_shared::<R>(routes).add(Post, all, names, resources::create::<R>)
}

fn add_keys(routes: AdminRoutes) -> AdminRoutes {
    let (all, rotation) = (&org_path("/keys"), &org_path("/keys/{id}/rotate"));
    add_shared::<Keys>(routes)
        .add(Post, all, ("createKey", "Create an API key"), keys::create)
        .add(
            Post,
            rotation,
            ("rotateKey", "Rotate an API key"),
            keys::rotate,
        )
}

fn add_trials(routes: AdminRoutes) -> AdminRoutes {
    let (agent, team) = (&org_path("/agents/{id}/try"), &org_path("/teams/{id}/try"));
    routes
        .add(
            Post,
            agent,
            ("tryAgent", "Try an agent or its draft"),
            trials::try_agent,
        )
        .add(
            Post,
            team,
            ("tryTeam", "Try the routing of a team or its draft"),
            trials::try_team,
        )
}

fn add_products(routes: AdminRoutes) -> AdminRoutes {
    let path = &org_path("/agents/{id}/products");
    let items = &format!("{path}/items");
    let refresh = &format!("{path}/refresh");
    routes
        .add(
            Get,
            path,
            ("readProducts", "Read the state of an agent's products"),
            products::read,
        )
        .add(
            Put,
            path,
            ("uploadProducts", "Replace an agent's products"),
            products::upload,
        )
        .add(
            Delete,
            path,
            ("deleteProducts", "Delete an agent's products"),
            products::delete,
        )
        .add(
            Get,
            items,
            ("listProducts", "List an agent's products"),
            product_items::list,
        )
        .add(
            Post,
            refresh,
            ("refreshProducts", "Fetch an agent's feed now"),
            products::refresh,
        )
}

fn add_users(routes: AdminRoutes) -> AdminRoutes {
    let all = &org_path("/users");
    let one = &format!("{all}/{{id}}");
    let link = &format!("{one}/link");
    routes
        .add(Get, all, ("listUsers", "List people"), users::list)
        .add(Post, all, ("createUser", "Invite a person"), users::create)
        .add(Get, one, ("readUser", "Read a person"), users::read)
        .add(Patch, one, ("patchUser", "Change a person"), users::patch)
        .add(
            Delete,
            one,
            ("deleteUser", "Remove a person"),
            users::delete,
        )
        .add(
            Post,
            link,
            ("createUserLink", "Create a link for a person"),
            users::create_link,
        )
}

fn add_conversations(routes: AdminRoutes) -> AdminRoutes {
    let all = &org_path("/conversations");
    let export = &format!("{all}/export");
    let one = &format!("{all}/{{id}}");
    let stream = &format!("{one}/messages/{{message}}/stream");
    routes
        .add(
            Get,
            &org_path("/audit"),
            ("listAuditEntries", "List audit entries"),
            audit_log::list,
        )
        .add(
            Get,
            &org_path("/analytics"),
            ("readAnalytics", "Read analytics"),
            analytics::read,
        )
        .add(
            Get,
            all,
            ("listConversations", "List conversations"),
            conversations::list,
        )
        .add(
            Get,
            export,
            ("exportConversations", "Export conversations"),
            conversations::export,
        )
        .add(
            Get,
            one,
            ("readConversation", "Read a conversation"),
            conversations::read,
        )
        .add(
            Delete,
            one,
            ("deleteConversation", "Delete a conversation"),
            conversations::delete,
        )
        .add(
            Get,
            stream,
            ("followReply", "Stream a running reply"),
            conversations::follow,
        )
}

fn add_erasures(routes: AdminRoutes) -> AdminRoutes {
    let erasures = &org_path("/erasures");
    let erasure = &format!("{erasures}/{{id}}");
    routes
        .add(
            Get,
            erasures,
            ("listErasures", "List erasures"),
            conversations::list_erasures,
        )
        .add(
            Post,
            erasures,
            ("createErasure", "Erase a visitor's conversations"),
            conversations::create_erasure,
        )
        .add(
            Get,
            erasure,
            ("readErasure", "Read an erasure"),
            conversations::read_erasure,
        )
        .add(
            Post,
            erasure,
            ("proceedErasure", "Continue an erasure"),
            conversations::proceed_erasure,
        )
}

//! The table of the admin API's routes.

use utoipa::openapi::HttpMethod;

use super::{
    analytics,
    apply::apply_document,
    audit_log, conversations,
    document_plan::plan_document,
    files,
    operations::AdminRoutes,
    playground, product_items, products, provider_test, removals,
    resources::{
        agents::AgentResource, handlers, key_handlers, keys::KeyResource, organization_handlers,
        organizations::OrganizationResource, providers::ProviderResource, resource::Resource,
        teams::TeamResource,
    },
    users, widget_pages,
};

/// Adds operations below a path: method, path, operation id, summary and handler of each.
macro_rules! add_operations {
    ($routes:ident, $base:literal; $($method:ident $path:literal $id:literal $summary:literal $handler:expr;)*) => {
        $($routes.add(HttpMethod::$method, concat!($base, $path), ($id, $summary), $handler);)*
    };
}

/// Returns the routes of the admin API with their descriptions.
pub(super) fn admin_routes() -> AdminRoutes {
    let mut routes = AdminRoutes::default();
    add_operations! { routes, "/api/admin";
        Post "/apply" "applyDocument" "Create or update resources from a document" apply_document;
        Post "/apply/plan" "planDocument" "Show what a document would change" plan_document;
        Get "/organizations" "listOrganizations" "List organizations" organization_handlers::list;
        Post "/organizations" "createOrganization" "Create an organization" organization_handlers::create;
    }
    add_shared::<OrganizationResource>(&mut routes, "/api/admin/organizations/{org}");
    add_operations! { routes, "/api/admin";
        Get "/removals" "listRemovals" "List removed organizations" removals::list;
        Get "/removals/{id}" "readRemoval" "Read the receipt of a removed organization" removals::read;
    }
    add_collection::<AgentResource>(&mut routes);
    add_collection::<TeamResource>(&mut routes);
    add_collection::<ProviderResource>(&mut routes);
    add_collection::<KeyResource>(&mut routes);
    add_operations! { routes, "/api/admin/organizations/{org}";
        Post "/agents" "createAgent" "Create one agent" handlers::create::<AgentResource>;
        Post "/teams" "createTeam" "Create one team" handlers::create::<TeamResource>;
        Post "/providers" "createProvider" "Create one provider" handlers::create::<ProviderResource>;
        Post "/providers/{id}/test" "testProvider" "Test the connection to a provider" provider_test::test_provider;
        Post "/keys" "createKey" "Create an API key" key_handlers::create;
        Post "/keys/{id}/rotate" "rotateKey" "Rotate an API key" key_handlers::rotate;

        Post "/agents/{id}/try" "tryAgent" "Try an agent or its draft" playground::try_agent;
        Post "/agents/{id}/files" "uploadPlaygroundFile" "Upload a file for a try of an agent" files::upload;
        Post "/teams/{id}/try" "tryTeam" "Try the routing of a team or its draft" playground::try_team;

        Get "/agents/{id}/pages" "listWidgetPages" "List the pages with an agent's widget" widget_pages::list;
        Get "/agents/{id}/products" "readProducts" "Read the state of an agent's products" products::read;
        Put "/agents/{id}/products" "uploadProducts" "Replace an agent's products" products::upload;
        Delete "/agents/{id}/products" "deleteProducts" "Delete an agent's products" products::delete;
        Post "/agents/{id}/products/preview" "previewProducts" "Read a product file without storing it" products::preview;
        Post "/agents/{id}/products/restore" "restoreProducts" "Restore an agent's previous products" products::restore;
        Get "/agents/{id}/products/items" "listProducts" "List an agent's products" product_items::list;
        Post "/agents/{id}/products/refresh" "refreshProducts" "Fetch an agent's feed now" products::refresh;

        Get "/users" "listUsers" "List users" users::list;
        Post "/users" "createUser" "Invite a user" users::create;
        Get "/users/{id}" "readUser" "Read a user" users::read;
        Patch "/users/{id}" "patchUser" "Change a user" users::patch;
        Delete "/users/{id}" "deleteUser" "Delete a user" users::delete;
        Post "/users/{id}/link" "createUserLink" "Create a link for a user" users::create_link;

        Get "/audit" "listAuditEntries" "List audit entries" audit_log::list;
        Get "/analytics" "readAnalytics" "Read analytics" analytics::read;

        Get "/conversations" "listConversations" "List conversations" conversations::list;
        Get "/conversations/export" "exportConversations" "Export conversations" conversations::export;
        Get "/conversations/{id}" "readConversation" "Read a conversation" conversations::read;
        Delete "/conversations/{id}" "deleteConversation" "Delete a conversation" conversations::delete;
        Get "/conversations/{id}/messages/{message}/stream" "followReply" "Stream a running reply"
            conversations::follow;

        Get "/files/{file}" "downloadFile" "Download a file of a conversation" files::download;

        Get "/leads" "listLeads" "List or export leads" conversations::list_leads;

        Get "/erasures" "listErasures" "List erasures" conversations::list_erasures;
        Post "/erasures" "createErasure" "Erase a visitor's conversations" conversations::create_erasure;
        Get "/erasures/{id}" "readErasure" "Read an erasure" conversations::read_erasure;
        Post "/erasures/{id}" "proceedErasure" "Continue an erasure" conversations::proceed_erasure;
    }
    routes
}

/// Adds the list of a resource and the operations on one.
fn add_collection<R: Resource>(routes: &mut AdminRoutes) {
    let all = format!("/api/admin/organizations/{{org}}/{}", R::COLLECTION);
    let names = (
        format!("list{}s", R::NAME),
        format!("List {}", R::COLLECTION),
    );
    routes.add(HttpMethod::Get, &all, names, handlers::list::<R>);
    add_shared::<R>(routes, &format!("{all}/{{id}}"));
}

/// Adds the operations on one resource that are the same for all kinds.
fn add_shared<R: Resource>(routes: &mut AdminRoutes, path: &str) {
    let names = |verb: &str, summary: &str| {
        let kind = R::KIND.name();
        (format!("{verb}{}", R::NAME), format!("{summary} {kind}"))
    };
    let (read, replace) = (
        names("read", "Read one"),
        names("replace", "Replace all fields of one"),
    );
    let (patch, delete) = (
        names("patch", "Change fields of one"),
        names("delete", "Delete one"),
    );
    routes.add(HttpMethod::Get, path, read, handlers::read::<R>);
    routes.add(HttpMethod::Put, path, replace, handlers::replace::<R>);
    routes.add(HttpMethod::Patch, path, patch, handlers::patch::<R>);
    routes.add(HttpMethod::Delete, path, delete, handlers::delete::<R>);
}

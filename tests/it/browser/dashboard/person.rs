//! A user of the dashboard: a real account that signs in by its one-time link.

use serde_json::{Value, json};

use crate::support::{Browser, Organization, TestService, unique};

/// Password of every user in these tests.
pub(super) const PASSWORD: &str = "a long and quiet evening";
const PAGE: &str = include_str!("page.js");
const COMES_IN: &str = "
    await type('New password', input); await press('Continue');
    await until('the agents', () => location.pathname === '/dashboard/agents'); await control('Agents');";

/// A dashboard user with a browser.
pub(super) struct Person {
    /// Browser window of this user alone, so that no session is shared.
    pub(super) browser: Browser,
    /// Base URL of the service.
    pub(super) url: String,
    /// Id of the account.
    pub(super) id: String,
    /// E-mail address for sign-in with [`PASSWORD`].
    pub(super) email: String,
    /// Secret of the sign-in link, after its `#`.
    pub(super) secret: String,
}

/// An invited account and the secret of its link.
pub(super) struct InvitedPerson {
    /// Id of the account.
    pub(super) id: String,
    /// E-mail address of the user.
    pub(super) email: String,
    /// Secret of the link, after its `#`.
    pub(super) secret: String,
}

impl Person {
    /// Signs in a user of this role and opens this page.
    pub(super) async fn at(
        service: &TestService,
        organization: &Organization,
        role: &str,
        path: &str,
    ) -> Self {
        let person = Self::with_link(service, invited(service, organization, role).await).await;
        person.does_with(COMES_IN, json!(PASSWORD)).await;
        if path != "/agents" {
            person.goes_to(path).await;
        }
        person
    }

    /// Opens a link that signs in without a password.
    pub(super) async fn with_link_that_signs_in(service: &TestService, secret: String) -> Self {
        let account = InvitedPerson {
            id: String::new(),
            email: String::new(),
            secret,
        };
        let mut person = Self::with_link(service, account).await;
        let who = "await press('Not now'); await control('Agents'); return (await (await fetch('/api/dashboard/session')).json()).user;";
        let user = person.does(who).await;
        (person.id, person.email) = (text(&user, "id"), text(&user, "email"));
        person
    }

    /// Opens the link of a user who is then asked for a password.
    pub(super) async fn with_link(service: &TestService, account: InvitedPerson) -> Self {
        let url = service.admin_urls().into_iter().next().unwrap();
        let browser = Browser::at(&format!("{url}/dashboard/link#{}", account.secret)).await;
        let InvitedPerson { id, email, secret } = account;
        Self {
            browser,
            url,
            id,
            email,
            secret,
        }
    }

    /// Signs in an owner of an organization of the shared service and opens this page.
    pub(super) async fn owner_at(organization: &Organization, path: &str) -> Self {
        Self::at(organization.service(), organization, "owner", path).await
    }

    /// Opens another browser of the same user without a session.
    pub(super) async fn in_another_browser(&self, path: &str) -> Self {
        let browser = Browser::at(&format!("{}/dashboard{path}", self.url)).await;
        Self {
            browser,
            url: self.url.clone(),
            id: self.id.clone(),
            email: self.email.clone(),
            secret: self.secret.clone(),
        }
    }

    /// Opens a dashboard page by its path.
    pub(super) async fn goes_to(&self, path: &str) {
        self.browser
            .visit(&format!("{}/dashboard{path}", self.url))
            .await;
    }

    /// Runs a script with the helpers of `page.js` and returns its result.
    pub(super) async fn does(&self, steps: &str) -> Value {
        self.does_with(steps, Value::Null).await
    }

    /// Runs a script like [`Self::does`] with a value for `input`.
    pub(super) async fn does_with(&self, steps: &str, input: Value) -> Value {
        self.browser.run(&format!("{PAGE}\n{steps}"), input).await
    }
}

/// Invites a user of this role.
pub(super) async fn invited(
    service: &TestService,
    organization: &Organization,
    role: &str,
) -> InvitedPerson {
    let email = format!("{}@people.example", unique(role));
    let path = organization.admin_path("/users");
    let user = json!({"email": email, "role": role, "name": name_of(role)});
    let answer = service.admin().post(&path, &user).await;
    answer.assert_status(201);
    let user = answer.json();
    let secret = secret_of(user["link"]["url"].as_str().unwrap()).unwrap();
    InvitedPerson {
        id: text(&user, "id"),
        email,
        secret,
    }
}

/// Returns the secret after the `#` of the last link in a text.
pub(super) fn secret_of(text: &str) -> Option<String> {
    let (_, behind) = text.rsplit_once("/dashboard/link#")?;
    Some(behind.split_whitespace().next()?.to_owned())
}

fn text(user: &Value, field: &str) -> String {
    user[field].as_str().unwrap().to_owned()
}

/// Returns the name of a user of this role.
pub(super) fn name_of(role: &str) -> &'static str {
    match role {
        "owner" => "Olga Ortiz",
        "editor" => "Edith Eng",
        "operator" => "Omar Okafor",
        _ => "Vera Voss",
    }
}

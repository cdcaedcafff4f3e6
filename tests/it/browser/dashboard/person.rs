//! A person at the dashboard, with an account of the real service: invited, and come in by the one-time link.

use serde_json::{Value, json};

use crate::support::{Browser, Organization, TestService, unique};

/// What everybody chooses as their password.
pub(super) const PASSWORD: &str = "a long and quiet evening";
const PAGE: &str = include_str!("page.js");
const COMES_IN: &str = "
    await type('New password', input); await press('Continue');
    await until('the agents', () => location.pathname === '/dashboard/agents'); await control('Agents');";

/// A person and their browser.
pub(super) struct Person {
    /// Where they look at the dashboard; of their own, so that nobody shares a session with them.
    pub(super) browser: Browser,
    /// Address of the service.
    pub(super) url: String,
    /// Id of the account.
    pub(super) id: String,
    /// What they sign in with, beside [`PASSWORD`].
    pub(super) email: String,
    /// What stood behind the `#` of their link.
    pub(super) secret: String,
}

/// An account that was invited: its id, its address, and the secret of its link.
pub(super) struct Invited {
    /// Id of the account.
    pub(super) id: String,
    /// Address of the person.
    pub(super) email: String,
    /// What stands behind the `#` of the link.
    pub(super) secret: String,
}

impl Person {
    /// Somebody of this role, signed in and at this page.
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

    /// Somebody whose link signs in without a password.
    pub(super) async fn with_link_that_signs_in(service: &TestService, secret: String) -> Self {
        let account = Invited {
            id: String::new(),
            email: String::new(),
            secret,
        };
        let mut person = Self::with_link(service, account).await;
        let who = "await control('Agents'); return (await (await fetch('/api/dashboard/session')).json()).user;";
        let user = person.does(who).await;
        (person.id, person.email) = (text(&user, "id"), text(&user, "email"));
        person
    }

    /// Somebody who has opened their link, and who is asked for a password.
    pub(super) async fn with_link(service: &TestService, account: Invited) -> Self {
        let url = service.admin_urls().into_iter().next().unwrap();
        let browser = Browser::at(&format!("{url}/dashboard/link#{}", account.secret)).await;
        let Invited { id, email, secret } = account;
        Self {
            browser,
            url,
            id,
            email,
            secret,
        }
    }

    /// An owner at this page.
    pub(super) async fn owner_at(
        service: &TestService,
        organization: &Organization,
        path: &str,
    ) -> Self {
        Self::at(service, organization, "owner", path).await
    }

    /// The same person in a browser where nobody is signed in.
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

    /// Goes to a page of the dashboard by its address.
    pub(super) async fn goes_to(&self, path: &str) {
        self.browser
            .visit(&format!("{}/dashboard{path}", self.url))
            .await;
    }

    /// Does something as `page.js` has it, and tells what came of it.
    pub(super) async fn does(&self, steps: &str) -> Value {
        self.does_with(steps, Value::Null).await
    }

    /// The same with something to use as `input`.
    pub(super) async fn does_with(&self, steps: &str, input: Value) -> Value {
        self.browser.run(&format!("{PAGE}\n{steps}"), input).await
    }
}

/// An account of this role, whose invitation nobody has used.
pub(super) async fn invited(
    service: &TestService,
    organization: &Organization,
    role: &str,
) -> Invited {
    let email = format!("{}@people.example", unique(role));
    let path = format!("/api/admin/organizations/{}/users", organization.id);
    let user = json!({"email": email, "role": role, "name": name_of(role)});
    let answer = service.admin().post(&path, &user).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let user = answer.json();
    let secret = secret_of(user["link"]["url"].as_str().unwrap()).unwrap();
    Invited {
        id: text(&user, "id"),
        email,
        secret,
    }
}

/// What stands behind the `#` of the last link in a text.
pub(super) fn secret_of(text: &str) -> Option<String> {
    let (_, behind) = text.rsplit_once("/dashboard/link#")?;
    Some(behind.split_whitespace().next()?.to_owned())
}

fn text(user: &Value, field: &str) -> String {
    user[field].as_str().unwrap().to_owned()
}

/// What people of a role are called in these tests.
pub(super) fn name_of(role: &str) -> &'static str {
    match role {
        "owner" => "Olga Ortiz",
        "editor" => "Edith Eng",
        "operator" => "Omar Okafor",
        _ => "Vera Voss",
    }
}

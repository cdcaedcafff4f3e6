//! Coming in, being sent away, and going.

use super::{Person, door};
use crate::support::{Browser, Organization, Script, SharedService};

#[tokio::test]
async fn a_stranger_is_sent_to_the_sign_in_page_and_then_to_where_they_wanted() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let url = door::closed(&service, &organization);
    let person = Person { browser: Browser::at(&format!("{url}/dashboard/settings/keys")).await, url };
    person.does("await type('E-mail', 'olga@example.com'); await type('Password', 'a quiet evening'); await press('Sign in');").await;
    person.does("await shows('API keys'); await until('the address', () => location.pathname === '/dashboard/settings/keys');").await;
    person.goes_to("/agents").await;
    let leaving = "hit(await until('the menu', () => [...document.querySelectorAll('button[aria-haspopup=menu]')].find(visible)));
        await press('Sign out'); await field('Password');
        return document.body.innerText.includes('Agent shop');";
    assert_eq!(person.does(leaving).await, false);
}

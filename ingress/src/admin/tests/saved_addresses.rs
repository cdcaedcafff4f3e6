//! Tests of teams that nobody can answer and of addresses that workers may not reach.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{admin, create, of, shop};
use crate::{state::AddressUsage, testing::World};

#[tokio::test]
async fn team_that_nobody_can_answer_is_not_made_active() {
    let world = World::new().await;
    for (slug, settings) in [
        ("draft", json!({ "status": "draft" })),
        ("hidden", json!({ "public": false })),
    ] {
        let mut agent = json!({ "slug": slug, "name": slug });
        for (name, value) in settings.as_object().unwrap() {
            agent[name] = value.clone();
        }
        create(&world, "agents", agent).await;
    }
    let team = |slug: &str, members: &[&str], default: Option<&str>| {
        let members: Vec<_> = members
            .iter()
            .map(|slug| json!({ "agent": slug }))
            .collect();
        json!({ "slug": slug, "name": "T", "status": "active", "members": members, "defaultAgent": default })
    };
    for (members, default) in [
        (&[][..], None),
        (&["draft", "hidden"], None),
        (&["hidden"], Some("draft")),
    ] {
        let answer = admin(&world, "POST", &of("/teams"), team("t", members, default)).await;
        let problem = answer.expect(400);
        assert_eq!(problem["param"], "members", "{members:?} {default:?}");
    }
    for (slug, members, default) in [
        ("one", &["draft", "shop"][..], None),
        ("two", &[], Some("hidden")),
    ] {
        let created = create(&world, "teams", team(slug, members, default)).await;
        assert_eq!(created["answerable"], true, "{slug}");
    }
    let unset = create(&world, "teams", json!({ "slug": "three", "name": "T" })).await;
    assert_eq!(
        (&unset["status"], &unset["answerable"]),
        (&json!("draft"), &json!(false))
    );
    let path = of(&format!("/teams/{}", unset["id"].as_str().unwrap()));
    let answer = admin(&world, "PATCH", &path, json!({ "status": "active" })).await;
    assert_eq!(answer.expect(400)["param"], "members");
    let document = json!({ "organizations": [{
        "slug": "acme", "name": "Acme", "teams": [team("four", &["draft"], None)],
    }] });
    let applied = world.admin("POST", "/api/admin/apply", &[], document).await;
    let param = &applied.expect(400)["param"];
    assert_eq!(param, "organizations[0].teams[0].members");
}

#[tokio::test]
async fn team_that_lost_its_last_agent_is_not_answerable() {
    let world = World::new().await;
    let team = json!({ "slug": "t", "name": "T", "members": [{ "agent": "shop" }] });
    let team = create(&world, "teams", team).await;
    let path = of(&format!("/teams/{}", team["id"].as_str().unwrap()));
    let inactive = json!({ "status": "inactive" });
    admin(&world, "PATCH", &shop(), inactive).await.expect(200);
    let read = admin(&world, "GET", &path, Value::Null).await.expect(200);
    assert_eq!(
        (&read["status"], &read["answerable"]),
        (&json!("active"), &json!(false))
    );
    // Other changes are accepted, also as the team was read.
    let mut renamed = read.clone();
    renamed["name"] = "Renamed".into();
    renamed["answerable"] = true.into();
    let renamed = admin(&world, "PUT", &path, renamed).await.expect(200);
    assert_eq!(renamed["name"], "Renamed");
    let emptied = admin(&world, "PATCH", &path, json!({ "members": [] })).await;
    assert_eq!(emptied.expect(400)["param"], "members");
}

#[tokio::test]
async fn feed_that_may_not_be_reached_is_refused_when_it_changes() {
    let world = World::new().await;
    let feed = |url: &str| json!({ "ecommerce": { "feed": { "url": url } } });
    let (old, new) = ("https://10.0.0.1/old", "https://10.0.0.1/new");
    admin(&world, "PATCH", &shop(), feed(old)).await.expect(200);
    world.check_addresses(Arc::new(|usage, url| {
        assert_eq!(usage, AddressUsage::Feed);
        let reason = url.contains("10.0.0.1").then(|| "is private".to_owned());
        Box::pin(async move { reason })
    }));
    let refused = admin(&world, "PATCH", &shop(), feed(new)).await.expect(400);
    assert_eq!(
        (&refused["param"], &refused["detail"]),
        (&json!("ecommerce.feed.url"), &json!("is private"))
    );
    let mut same = feed(old);
    same["name"] = "Renamed".into();
    admin(&world, "PATCH", &shop(), same).await.expect(200);
    let public = feed("https://shop.example/feed");
    admin(&world, "PATCH", &shop(), public).await.expect(200);
}

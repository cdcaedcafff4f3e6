//! One-time links: single use, replacement and the lock service.

use super::*;

#[tokio::test]
async fn password_change_invalidates_earlier_links() {
    let world = World::with(unthrottled()).await;
    let (mut browser, id) = person(&world, "ada@example.org", "viewer").await;
    let made = admin(&world, "POST", &format!("/users/{id}/link"), json!({}))
        .await
        .json();
    let body = json!({ "currentPassword": PASS, "newPassword": NEW_PASS });
    assert_eq!(browser.keep(PASSWORD, body).await.status, 200);
    let used = Browser::new(&world)
        .keep(LINK, json!({ "link": link_of(&made), "password": PASS }))
        .await;
    assert_eq!(used.status, 401, "{}", used.text);
    assert!(browser.is_signed_in().await);
}

#[tokio::test]
async fn link_is_single_use_and_replaced_by_the_next() {
    let world = World::with(unthrottled()).await;
    let second = world.second_ingress().await;
    let user = invited(&world, "ada@example.org", "owner").await;
    let path = format!("/users/{}/link", user["id"].as_str().unwrap());
    let newer = admin(&world, "POST", &path, json!({})).await;
    assert_eq!(
        (newer.status.as_u16(), &newer.json()["link"]["purpose"]),
        (201, &json!("invitation"))
    );
    let body = |link: &str| json!({ "link": link, "password": PASS });
    let (mut one, mut two) = (Browser::new(&world), Browser::new(&second));
    assert_eq!(
        one.keep(LINK, body(&link_of(&user))).await.status,
        401,
        "it was replaced"
    );
    let link = link_of(&newer.json());
    let (left, right) = tokio::join!(one.keep(LINK, body(&link)), two.keep(LINK, body(&link)));
    let mut statuses = [left.status.as_u16(), right.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(
        statuses,
        [200, 401],
        "of two at once, on two processes, one is used"
    );
    assert_eq!(one.keep(LINK, body(&link)).await.status, 401);
    let reset = admin(&world, "POST", &path, json!({})).await.json();
    assert_eq!(reset["link"]["purpose"], "reset");
    let mut third = Browser::new(&world);
    let answer = third
        .keep(
            LINK,
            json!({ "link": link_of(&reset), "password": NEW_PASS }),
        )
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!one.is_signed_in().await && !two.is_signed_in().await && third.is_signed_in().await);
}

#[tokio::test]
async fn link_is_not_redeemed_without_the_relay() {
    let world = World::with(unthrottled()).await;
    let user = invited(&world, "ada@example.org", "owner").await;
    let body = json!({ "link": link_of(&user), "password": PASS });
    world.relay.faults.set_down(true);
    assert_eq!(
        Browser::new(&world)
            .keep(LINK, body.clone())
            .await
            .problem(),
        (503, "UNAVAILABLE".into())
    );
    world.relay.faults.set_down(false);
    assert_eq!(Browser::new(&world).keep(LINK, body).await.status, 200);
}

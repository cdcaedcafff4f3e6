//! Replies that are longer than the window, also by their products.

use serde_json::{Value, json};

use super::{
    page::Visitor,
    stub_service::{Stub, event, reply},
};
use crate::support::{Script, SharedService, shop_saying};

/// Distance of the last reply's first line from the top of the log; negative if it is out of view.
const FIRST_LINE: &str = "Math.round(all('.row.assistant').at(-1).getBoundingClientRect().top - $('.log').getBoundingClientRect().top)";

/// Distance of the log from its end.
const FROM_END: &str =
    "Math.round($('.log').scrollHeight - $('.log').clientHeight - $('.log').scrollTop)";

const TOP: i32 = 8;

fn lines(count: usize) -> String {
    "one line\n\n".repeat(count)
}

#[tokio::test]
async fn first_line_of_a_long_reply_stays_in_view() {
    let organization = shop_saying(&lines(60)).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("hello").await;
    visitor.sees("the end", "!$('.send.stop')").await;
    visitor.reads(FIRST_LINE, json!(TOP)).await;
    visitor.browser.command("refresh", &json!({})).await;
    visitor
        .sees(
            "the reply",
            "$('.bubble.drawn') && all('.row.assistant').length === 2",
        )
        .await;
    visitor.reads(FIRST_LINE, json!(TOP)).await;
    visitor.clicks(".latest").await;
    visitor.reads(FROM_END, json!(0)).await;
    // The next reply is short, and its end is in view.
    organization.script(Script::says("short"));
    visitor.says("shorter?").await;
    visitor.is_answered("short").await;
    visitor.reads(FROM_END, json!(0)).await;
}

#[tokio::test]
async fn visitor_who_scrolls_on_follows_a_streaming_reply() {
    let (script, gate) = Script::says(&lines(60)).chunk_chars(300).gated();
    let organization = shop_saying("").await;
    organization.script(script);
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("hello").await;
    gate.open(1);
    visitor.sees("more than fits", "shown($('.latest'))").await;
    visitor.reads(FIRST_LINE, json!(TOP)).await;
    visitor.clicks(".latest").await;
    visitor.reads(FROM_END, json!(0)).await;
    let before = visitor.read("$('.log').scrollHeight").await;
    gate.open(10);
    visitor
        .sees(
            "the end",
            &format!("!$('.send.stop') && $('.log').scrollHeight > {before}"),
        )
        .await;
    visitor.reads(FROM_END, json!(0)).await;
}

#[tokio::test]
async fn products_are_a_row_below_the_answer() {
    let service = SharedService::get().await;
    let products: Vec<Value> = (1..=12)
        .map(|number| json!({"title": format!("Tea {number}"), "price": "$9", "image": "", "url": ""}))
        .collect();
    let spec = json!({"type": "product-grid", "data": products});
    let events = reply(&event("ui", "0.0", &spec), &lines(12));
    let visitor = Stub::says(events).visitor(&service).await;
    for on_a_phone in [false, true] {
        if on_a_phone {
            visitor.takes_a_phone().await;
        } else {
            visitor.opens().await;
        }
        visitor.says("tea?").await;
        visitor
            .sees("the end", "!$('.send.stop') && $('.cards')")
            .await;
        let is_in_view = format!("{FIRST_LINE} >= 0");
        visitor.sees("the first line", &is_in_view).await;
        let rows = "new Set(all('.cards').at(-1).querySelectorAll('.card').values().map(card => card.getBoundingClientRect().top)).size";
        assert_eq!(visitor.read(rows).await, 1, "one row");
        // The arrow keys reach the rest of the row.
        visitor
            .run("all('.cards').at(-1).focus();", Value::Null)
            .await;
        visitor.presses("\u{e014}").await;
        visitor
            .sees("further products", "all('.cards').at(-1).scrollLeft > 0")
            .await;
        assert_eq!(
            visitor
                .read("$('.log').scrollWidth > $('.log').clientWidth")
                .await,
            false,
            "only the row scrolls sideways"
        );
    }
}

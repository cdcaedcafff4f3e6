//! A table of every widget setting and theme field that can be measured in a page: two values each,
//! the form control that sets it, and its expected effect.

use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::support::PATIENCE;

/// Question and answer in the widgets of this table.
pub(super) const QUESTION: &str = "hello";
pub(super) const ANSWER: &str = "**bold**";

/// Form control of a setting.
#[derive(Clone, Copy)]
pub(super) enum Control {
    /// A field to write in.
    Field,
    /// A list; these are the names of the two values in it.
    List([&'static str; 2]),
    Switch,
}

pub(super) struct Setting {
    /// Path in the agent configuration.
    pub(super) field: &'static str,
    /// Name of the form tab.
    pub(super) tab: &'static str,
    /// Label in the form.
    pub(super) label: &'static str,
    /// Control in the form.
    pub(super) control: Control,
    pub(super) values: [Value; 2],
    /// JavaScript expression that measures the effect.
    measure: &'static str,
    /// Expected result of the expression for each of the two values.
    effects: [Value; 2],
}

/// Returns all settings in measuring order; the last ones type and send a message.
pub(super) fn settings() -> Vec<Setting> {
    [
        window_theme(),
        conversation_theme(),
        texts(),
        looks(),
        features(),
        limits(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns an agent configuration with the first or the second value of every setting.
pub(super) fn configuration(which: usize) -> Value {
    let mut agent = Map::new();
    for setting in settings() {
        let value = setting.values[which].clone();
        match setting.field.split_once('.') {
            Some((part, field)) => agent.entry(part).or_insert_with(|| json!({}))[field] = value,
            None => drop(agent.insert(setting.field.to_owned(), value)),
        }
    }
    Value::Object(agent)
}

/// Returns the body of a function that measures the settings in an open widget with a reply.
fn measuring(settings: &[Setting]) -> String {
    let measures = settings
        .iter()
        .map(|setting| format!("'{}': {},", setting.field, setting.measure));
    format!("{TOOLS}\nreturn {{{}}};", measures.collect::<String>())
}

/// Waits until every setting has the effect of its first or second value. `measure` runs the body
/// of a function in an open widget with a reply. A window that has just opened is still animated.
pub(super) async fn assert_effects(
    settings: &[Setting],
    which: usize,
    measure: impl AsyncFn(&str) -> Value,
) {
    let body = measuring(settings);
    let began = Instant::now();
    loop {
        let measured = measure(&body).await;
        let wrong: Vec<String> = settings
            .iter()
            .filter(|setting| measured[setting.field] != setting.effects[which])
            .map(|setting| format!("{}: {}", setting.field, measured[setting.field]))
            .collect();
        if wrong.is_empty() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "value {which}: {wrong:#?}");
    }
}

const TOOLS: &str = "
    const box = selector => $(selector).getBoundingClientRect();
    const style = selector => getComputedStyle($(selector));
    const corner = () => {
        // The window hides the button, so that its place is known by style only.
        const {top, left} = style('.launcher');
        return [top === 'auto' ? 'bottom' : 'top', left === 'auto' ? 'right' : 'left'].join('-');
    };
    const write = text => {
        $('.field textarea').value = text;
        $('.field textarea').dispatchEvent(new Event('input', {bubbles: true}));
    };
    const isTooLong = length => {
        write('x'.repeat(length));
        const isWrong = $('.field textarea').getAttribute('aria-invalid') === 'true';
        write('');
        return isWrong;
    };
    const isAskedToWait = () => {
        write('and another');
        $('.send').click();
        return $('.note').innerText.includes('too fast');
    };";

/// Returns the theme fields of the launcher and the whole window.
fn window_theme() -> Vec<Setting> {
    vec![
        themed(
            "theme.primaryColor",
            "Primary",
            ["#102030", "#ffcc00"],
            "style('.launcher').backgroundColor",
            ["rgb(16, 32, 48)", "rgb(255, 204, 0)"],
        ),
        themed(
            "theme.backgroundColor",
            "Chat background",
            ["#fefefe", "#101014"],
            "style('.panel').backgroundColor",
            ["rgb(254, 254, 254)", "rgb(16, 16, 20)"],
        ),
        themed(
            "theme.textColor",
            "Text",
            ["#010203", "#f0f0f0"],
            "style('.root').color",
            ["rgb(1, 2, 3)", "rgb(240, 240, 240)"],
        ),
        themed(
            "theme.chatHeaderColor",
            "Header",
            ["rgb(1, 60, 90)", "#223344"],
            "style('.header').backgroundColor",
            ["rgb(1, 60, 90)", "rgb(34, 51, 68)"],
        ),
        themed(
            "theme.fontFamily",
            "Font family",
            ["Georgia, serif", "monospace"],
            "style('.bubble').fontFamily",
            ["Georgia, serif", "monospace"],
        ),
    ]
}

/// Returns the theme fields of bubbles and the input.
fn conversation_theme() -> Vec<Setting> {
    vec![
        themed(
            "theme.borderRadius",
            "Corner radius",
            ["14px", "0"],
            "style('.bubble').borderTopRightRadius",
            ["14px", "0px"],
        ),
        themed(
            "theme.userMessageColor",
            "Visitor’s bubble",
            ["navy", "#004400"],
            "style('.row.user .bubble').backgroundColor",
            ["rgb(0, 0, 128)", "rgb(0, 68, 0)"],
        ),
        themed(
            "theme.botMessageColor",
            "Agent’s bubble",
            ["#eeeeee", "#202020"],
            "style('.row.assistant .bubble').backgroundColor",
            ["rgb(238, 238, 238)", "rgb(32, 32, 32)"],
        ),
        themed(
            "theme.inputBackgroundColor",
            "Input background",
            ["#f5f5f5", "#000000"],
            "style('.field').backgroundColor",
            ["rgb(245, 245, 245)", "rgb(0, 0, 0)"],
        ),
        themed(
            "theme.sendButtonColor",
            "Send button",
            ["hsl(120, 100%, 20%)", "#ff8800"],
            "style('.send').backgroundColor",
            ["rgb(0, 102, 0)", "rgb(255, 136, 0)"],
        ),
    ]
}

fn texts() -> Vec<Setting> {
    let text = |tab, field, label, values, measure| {
        text_setting(tab, field, label, values, measure, values)
    };
    vec![
        text(
            "General",
            "name",
            "Name",
            ["Anna", "Berta"],
            "$('#title').innerText",
        ),
        text(
            "Appearance",
            "welcomeMessage",
            "Welcome message",
            ["Welcome!", "Servus"],
            "$('.row.assistant .bubble').innerText",
        ),
        text(
            "Appearance",
            "placeholderText",
            "Input placeholder",
            ["Write", "Ask"],
            "$('.field textarea').placeholder",
        ),
        text(
            "Appearance",
            "widget.triggerText",
            "Button text",
            ["Ask us!", "Talk to us"],
            "$('.launcher .label').textContent",
        ),
    ]
}

fn looks() -> Vec<Setting> {
    vec![
        listed(
            "widget.position",
            "Position",
            ["bottom-right", "top-left"],
            ["Bottom right", "Top left"],
            "corner()",
            [json!("bottom-right"), json!("top-left")],
        ),
        listed(
            "widget.size",
            "Size",
            ["small", "large"],
            ["Small", "Large"],
            "box('.panel').width",
            [json!(336), json!(456)],
        ),
        switched(
            "Appearance",
            "widget.showAvatar",
            "Show agent avatar",
            "shown($('.row.assistant .avatar'))",
        ),
        switched(
            "Appearance",
            "widget.showTimestamp",
            "Show message times",
            "shown($('time'))",
        ),
        switched(
            "Appearance",
            "widget.showPoweredBy",
            "Show “Powered by Switchboard”",
            "shown($('.powered'))",
        ),
    ]
}

fn features() -> Vec<Setting> {
    vec![
        switched(
            "Behavior",
            "features.enableMarkdown",
            "Formatted replies",
            "all('.row.assistant strong').length > 0",
        ),
        switched(
            "Behavior",
            "features.enableEmailCapture",
            "Email form",
            "shown($('.ask:not(.rating)'))",
        ),
        switched(
            "Behavior",
            "features.enableRating",
            "Rating",
            "shown($('.rating'))",
        ),
    ]
}

fn limits() -> Vec<Setting> {
    let limit = |field, label, values: [u32; 2], measure| Setting {
        values: values.map(Value::from),
        effects: [json!(true), json!(false)],
        ..text_setting("Behavior", field, label, ["", ""], measure, ["", ""])
    };
    vec![
        limit(
            "limits.maxMessageLength",
            "Maximum message length",
            [12, 4000],
            "isTooLong(13)",
        ),
        limit(
            "limits.rateLimitPerMinute",
            "Messages per minute",
            [1, 100],
            "isAskedToWait()",
        ),
    ]
}

fn themed(
    field: &'static str,
    label: &'static str,
    values: [&'static str; 2],
    measure: &'static str,
    effects: [&'static str; 2],
) -> Setting {
    text_setting("Appearance", field, label, values, measure, effects)
}

fn text_setting(
    tab: &'static str,
    field: &'static str,
    label: &'static str,
    values: [&'static str; 2],
    measure: &'static str,
    effects: [&'static str; 2],
) -> Setting {
    let (values, effects) = (values.map(Value::from), effects.map(Value::from));
    Setting {
        field,
        tab,
        label,
        control: Control::Field,
        values,
        measure,
        effects,
    }
}

fn listed(
    field: &'static str,
    label: &'static str,
    values: [&'static str; 2],
    names: [&'static str; 2],
    measure: &'static str,
    effects: [Value; 2],
) -> Setting {
    let values = values.map(Value::from);
    Setting {
        field,
        tab: "Appearance",
        label,
        control: Control::List(names),
        values,
        measure,
        effects,
    }
}

fn switched(
    tab: &'static str,
    field: &'static str,
    label: &'static str,
    measure: &'static str,
) -> Setting {
    let both = || [json!(true), json!(false)];
    Setting {
        field,
        tab,
        label,
        control: Control::Switch,
        values: both(),
        measure,
        effects: both(),
    }
}

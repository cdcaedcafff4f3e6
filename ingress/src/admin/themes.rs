//! Validation of theme values. They are inserted into style sheets of other pages, so that only
//! colors, lengths and lists of fonts are accepted.

use switchboard_schemas::agent::WidgetTheme;

use super::errors::ValidationError;

const VALUE_BYTES_MAX: usize = 200;

/// Fails with the first invalid field of a theme.
pub(super) fn check_theme(theme: &WidgetTheme) -> Result<(), ValidationError> {
    let colors = [
        ("primaryColor", &theme.primary_color),
        ("backgroundColor", &theme.background_color),
        ("textColor", &theme.text_color),
        ("chatHeaderColor", &theme.chat_header_color),
        ("userMessageColor", &theme.user_message_color),
        ("botMessageColor", &theme.bot_message_color),
        ("inputBackgroundColor", &theme.input_background_color),
        ("sendButtonColor", &theme.send_button_color),
    ];
    if let Some((name, _)) = colors.into_iter().find(|(_, value)| !is_color(value)) {
        let reason = "must be a CSS color such as #2563eb, rgb(37, 99, 235) or a color name";
        return Err(ValidationError::new(name, reason));
    }
    if !is_length(&theme.border_radius) {
        let reason = "must be a CSS length such as 12px or 0.5rem";
        return Err(ValidationError::new("borderRadius", reason));
    }
    if !is_font_list(&theme.font_family) {
        return Err(ValidationError::new(
            "fontFamily",
            "must be a list of font names",
        ));
    }
    Ok(())
}

fn is_color(value: &str) -> bool {
    if let Some(digits) = value.strip_prefix('#') {
        return matches!(digits.len(), 3 | 4 | 6 | 8)
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    let is_name = |text: &str| {
        !text.is_empty() && text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    is_name(value) || is_color_function(value)
}

fn is_color_function(value: &str) -> bool {
    let Some((name, arguments)) = value
        .strip_suffix(')')
        .and_then(|value| value.split_once('('))
    else {
        return false;
    };
    let is_argument =
        |byte: u8| byte.is_ascii_digit() || b" ,.%/-".contains(&byte) || b"deg".contains(&byte);
    matches!(name, "rgb" | "rgba" | "hsl" | "hsla")
        && arguments.len() <= 64
        && arguments.bytes().all(is_argument)
}

fn is_length(value: &str) -> bool {
    let unit_start = value
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(value.len());
    let (number, unit) = value.split_at(unit_start);
    number.len() <= 16
        && number.parse::<f64>().is_ok_and(f64::is_finite)
        && (matches!(unit, "px" | "em" | "rem" | "%" | "pt" | "vh" | "vw")
            || (unit.is_empty() && number == "0"))
}

fn is_font_list(value: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || " ,-_'\"".contains(character);
    let quotes = |quote: char| value.matches(quote).count().is_multiple_of(2);
    !value.trim().is_empty()
        && value.len() <= VALUE_BYTES_MAX
        && value.chars().all(is_part)
        && quotes('\'')
        && quotes('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_values_are_accepted() {
        assert_eq!(check_theme(&WidgetTheme::default()), Ok(()));
        for color in [
            "#fff",
            "#FFAA0080",
            "red",
            "transparent",
            "rgb(1, 2, 3)",
            "hsl(120deg 50% 50% / 0.5)",
        ] {
            assert!(is_color(color), "{color}");
        }
        for length in ["0", "12px", "0.5rem", "50%"] {
            assert!(is_length(length), "{length}");
        }
        assert!(is_font_list("\"Open Sans\", 'Noto', sans-serif"));
    }

    #[test]
    fn values_that_could_inject_styles_are_rejected() {
        for text in [
            "",
            "red;",
            "red}",
            "url(https://x)",
            "expression(1)",
            "#ggg",
            "rgb(1;2)",
            "var(--x)",
            "rgb(url())",
            "</style>",
            "1px;",
            "calc(1px)",
            "a\\b",
            "a;b",
            "it's",
            "image(x)",
        ] {
            assert!(
                !is_color(text) && !is_length(text) && !is_font_list(text),
                "{text}"
            );
        }
    }
}

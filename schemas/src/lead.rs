//! Lead forms: the contact data that an agent asks visitors for, and the leads that they submit.

use std::collections::HashSet;

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::{email::is_email, text_schemas::LeadOption, time::Timestamp};

/// Metadata key of a conversation's lead.
pub const LEAD_KEY: &str = "lead";
/// Field of a submitted lead that contains the visitor's consent.
pub const CONSENT_FIELD: &str = "consent";
/// Field of a submitted lead that contains the version of the form that was shown.
pub const VERSION_FIELD: &str = "formVersion";

/// Fields of a submitted lead that no form defines.
const RESERVED_NAMES: [&str; 2] = [CONSENT_FIELD, VERSION_FIELD];
const FIELDS_MAX: usize = 8;
const OPTIONS_MAX: usize = 20;
const FIELD_NAME_CHARS_MAX: usize = 40;
/// Maximum length of titles, labels, options and values of one line, in characters.
const LINE_CHARS_MAX: usize = 200;
/// Maximum length of texts of the form and of values of type `text`, in characters.
const TEXT_CHARS_MAX: usize = 2000;
const REPLIES_MAX: u32 = 20;
/// Digits of a phone number with an extension; E.164 has at most 15.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 4..=20;
/// Length of a form's version, in hexadecimal digits.
const VERSION_CHARS: usize = 12;

/// Contact data that an agent asks visitors for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeadForm {
    /// Heading of the form, at most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub title: String,
    /// Text below the heading, at most 2000 characters.
    #[serde(default)]
    #[schema(max_length = 2000)]
    pub text: String,
    /// Consent without which nothing can be submitted.
    pub consent: LeadConsent,
    /// Fields in the order in which they are shown, 1 to 8.
    #[schema(min_items = 1, max_items = 8)]
    pub fields: Vec<LeadField>,
    /// Moment at which the form is shown.
    pub trigger: LeadTrigger,
    /// Number of replies, 1 to 20, before the form is shown; for the trigger `after-replies` only.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 20)]
    pub after_replies: Option<u32>,
}

/// The consent that a visitor gives with a lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeadConsent {
    /// Statement beside the check box, stored with the lead.
    #[schema(min_length = 1, max_length = 2000)]
    pub text: String,
    /// Address of the privacy notice.
    #[serde(default)]
    #[schema(max_length = 2048)]
    pub link: Option<String>,
}

/// A field of a lead form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeadField {
    /// Key of the value in a submitted lead: a lower-case letter, then letters, digits and `_`.
    #[schema(pattern = "^[a-z][a-zA-Z0-9_]{0,39}$")]
    pub name: String,
    /// Text beside the field.
    #[schema(min_length = 1, max_length = 200)]
    pub label: String,
    /// Kind of the value.
    #[serde(rename = "type")]
    pub kind: LeadFieldKind,
    /// `true` if a lead without this field is refused.
    #[serde(default)]
    pub required: bool,
    /// Possible values, 1 to 20; for the type `select` only.
    #[serde(default)]
    #[schema(max_items = 20, value_type = Vec<LeadOption>)]
    pub options: Vec<String>,
}

/// The kind of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LeadFieldKind {
    /// Name of a person, which becomes `visitorName`.
    Name,
    /// E-mail address, which becomes `visitorEmail`.
    Email,
    /// Phone number: digits of any script, spaces, `+ ( ) - . / , # *` and `ext`.
    Phone,
    /// Name of a company.
    Company,
    /// One of the field's options.
    Select,
    /// Text of several lines.
    Text,
}

/// The moment at which a lead form is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeadTrigger {
    /// Before the visitor sends the first message.
    BeforeFirstMessage,
    /// After `afterReplies` replies.
    AfterReplies,
    /// When the model calls the tool `capture_lead`.
    Tool,
}

/// A submitted lead, stored with its conversation. Personal data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapturedLead {
    /// Values by the name of their field.
    #[schema(value_type = Object)]
    pub values: Map<String, Value>,
    /// Statement that the visitor agreed to.
    pub consent: String,
    /// Version of the form: a digest of its content.
    pub form_version: String,
    /// Trigger of the form.
    pub trigger: LeadTrigger,
    /// Time at which the lead was accepted.
    pub captured_at: Timestamp,
}

/// The reason for which a form or a lead is refused, with the path of its field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {reason}")]
pub struct LeadError {
    /// Path below the form or the lead; empty for the whole.
    pub path: String,
    /// Reason that completes a sentence about the field.
    pub reason: String,
}

impl LeadError {
    fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
        }
    }
}

impl LeadForm {
    /// Checks everything but the address of the privacy notice.
    ///
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), LeadError> {
        check_text("title", &self.title, LINE_CHARS_MAX, false)?;
        check_text("text", &self.text, TEXT_CHARS_MAX, true)?;
        require_text("consent.text", &self.consent.text)?;
        check_text("consent.text", &self.consent.text, TEXT_CHARS_MAX, true)?;
        if !(1..=FIELDS_MAX).contains(&self.fields.len()) {
            return Err(LeadError::new("fields", "must have 1 to 8 entries"));
        }
        let mut names = HashSet::new();
        for (index, field) in self.fields.iter().enumerate() {
            let below = |error: LeadError| {
                LeadError::new(format!("fields[{index}].{}", error.path), error.reason)
            };
            field.check().map_err(below)?;
            if !names.insert(&field.name) {
                return Err(below(LeadError::new("name", "occurs twice")));
            }
        }
        let is_after_replies = self.trigger == LeadTrigger::AfterReplies;
        match self.after_replies {
            None if is_after_replies => Err(LeadError::new("afterReplies", "is required")),
            Some(_) if !is_after_replies => Err(LeadError::new(
                "afterReplies",
                "needs the trigger after-replies",
            )),
            Some(count) if !(1..=REPLIES_MAX).contains(&count) => {
                Err(LeadError::new("afterReplies", "must be from 1 to 20"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the form without texts and options, for lists: only its fields have names.
    #[must_use]
    pub fn summary(&self) -> Self {
        let fields = self.fields.iter().map(|field| LeadField {
            options: Vec::new(),
            ..field.clone()
        });
        Self {
            title: String::new(),
            text: String::new(),
            consent: LeadConsent {
                text: String::new(),
                link: None,
            },
            fields: fields.collect(),
            trigger: self.trigger,
            after_replies: self.after_replies,
        }
    }

    /// Returns a digest of the form, the same in every process.
    #[must_use]
    pub fn version(&self) -> String {
        let form = serde_json::to_vec(self).unwrap_or_default();
        let mut version = HEXLOWER.encode(&Sha256::digest(form));
        version.truncate(VERSION_CHARS);
        version
    }

    /// Returns the lead that a visitor submitted at `captured_at`.
    ///
    /// # Errors
    /// The first field that is missing, unknown or invalid, or that consent was not given.
    pub fn accept(
        &self,
        submitted: &Map<String, Value>,
        captured_at: Timestamp,
    ) -> Result<CapturedLead, LeadError> {
        let is_known = |name: &str| {
            RESERVED_NAMES.contains(&name) || self.fields.iter().any(|it| it.name == name)
        };
        if let Some(name) = submitted.keys().find(|name| !is_known(name)) {
            // The name is the client's text, of any length.
            let name: String = name.chars().take(FIELD_NAME_CHARS_MAX).collect();
            return Err(LeadError::new(name, "is not a field of the form"));
        }
        let shown = submitted
            .get(VERSION_FIELD)
            .filter(|shown| !shown.is_null());
        if shown.is_some_and(|shown| *shown != self.version()) {
            let reason = "is not that of the current form; show that one";
            return Err(LeadError::new(VERSION_FIELD, reason));
        }
        let mut values = Map::new();
        for field in &self.fields {
            if let Some(value) = field.accept(submitted.get(&field.name))? {
                values.insert(field.name.clone(), value.into());
            }
        }
        if submitted.get(CONSENT_FIELD) != Some(&Value::Bool(true)) {
            return Err(LeadError::new(CONSENT_FIELD, "must be true"));
        }
        Ok(CapturedLead {
            values,
            consent: self.consent.text.clone(),
            form_version: self.version(),
            trigger: self.trigger,
            captured_at,
        })
    }

    /// Returns a lead's first value of this kind.
    #[must_use]
    pub fn value_of<'a>(&self, lead: &'a CapturedLead, kind: LeadFieldKind) -> Option<&'a str> {
        let mut fields = self.fields.iter().filter(|field| field.kind == kind);
        fields.find_map(|field| lead.values.get(&field.name)?.as_str())
    }
}

impl LeadField {
    fn check(&self) -> Result<(), LeadError> {
        let mut characters = self.name.chars();
        let is_name = characters.next().is_some_and(|it| it.is_ascii_lowercase())
            && characters.all(|it| it.is_ascii_alphanumeric() || it == '_')
            && self.name.len() <= FIELD_NAME_CHARS_MAX;
        if !is_name {
            let reason = "must be a lower-case letter and at most 39 letters, digits or _";
            return Err(LeadError::new("name", reason));
        }
        if RESERVED_NAMES.contains(&self.name.as_str()) {
            let reason = "must not be consent or formVersion";
            return Err(LeadError::new("name", reason));
        }
        require_text("label", &self.label)?;
        check_text("label", &self.label, LINE_CHARS_MAX, false)?;
        let is_select = self.kind == LeadFieldKind::Select;
        if !is_select && !self.options.is_empty() {
            return Err(LeadError::new("options", "needs the type select"));
        }
        if is_select && !(1..=OPTIONS_MAX).contains(&self.options.len()) {
            return Err(LeadError::new("options", "must have 1 to 20 entries"));
        }
        let mut seen = HashSet::new();
        for (index, option) in self.options.iter().enumerate() {
            let path = format!("options[{index}]");
            require_text(&path, option)?;
            check_text(&path, option, LINE_CHARS_MAX, false)?;
            if !seen.insert(option.trim()) {
                return Err(LeadError::new(path, "occurs twice"));
            }
        }
        Ok(())
    }

    /// Returns the value without surrounding spaces; `None` for a field that was left empty.
    fn accept(&self, value: Option<&Value>) -> Result<Option<String>, LeadError> {
        let refuse = |reason: &str| Err(LeadError::new(&self.name, reason));
        let text = match value {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text.trim(),
            Some(_) => return refuse("must be a string"),
        };
        if text.is_empty() {
            return if self.required {
                refuse("is required")
            } else {
                Ok(None)
            };
        }
        let is_long = self.kind == LeadFieldKind::Text;
        let chars_max = if is_long {
            TEXT_CHARS_MAX
        } else {
            LINE_CHARS_MAX
        };
        check_text(&self.name, text, chars_max, is_long)?;
        match self.kind {
            LeadFieldKind::Email if !is_email(text) => refuse("is not an e-mail address"),
            LeadFieldKind::Phone if !is_phone(text) => refuse("is not a phone number"),
            LeadFieldKind::Select if !self.options.iter().any(|option| option.trim() == text) => {
                refuse("is not one of the options")
            }
            _ => Ok(Some(text.to_owned())),
        }
    }
}

fn require_text(path: &str, text: &str) -> Result<(), LeadError> {
    if text.trim().is_empty() {
        return Err(LeadError::new(path, "must not be blank"));
    }
    Ok(())
}

fn check_text(path: &str, text: &str, chars_max: usize, has_lines: bool) -> Result<(), LeadError> {
    if text.chars().count() > chars_max {
        let reason = format!("must have at most {chars_max} characters");
        return Err(LeadError::new(path, reason));
    }
    let is_line_end = |it: char| has_lines && matches!(it, '\n' | '\r' | '\t');
    let is_refused = |it: char| (it.is_control() && !is_line_end(it)) || is_deceptive(it);
    if text.chars().any(is_refused) {
        return Err(LeadError::new(path, "must not have control characters"));
    }
    Ok(())
}

/// Returns true for characters that are invisible or turn the direction of what follows, so that a
/// text looks like another one.
const fn is_deceptive(character: char) -> bool {
    matches!(
        character,
        '\u{200b}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

fn is_phone(text: &str) -> bool {
    let text = text.to_lowercase().replace("ext", "").replace('x', "");
    let digits = text.chars().filter(|it| it.is_numeric()).count();
    let is_allowed = |it: char| it.is_numeric() || " +＋()-./,#*".contains(it);
    PHONE_DIGITS.contains(&digits) && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests;

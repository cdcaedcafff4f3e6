//! Golden tests of the topic contract: the committed JSON Schemas match the Rust types, and the
//! examples of every version ever written are valid, readable and complete.
//!
//! After an intended change run `UPDATE_SCHEMAS=1 cargo test -p switchboard-schemas --test golden
//! committed` and review the diff.
#![cfg(test)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};
use switchboard_schemas::{
    control_event::ControlEvent,
    conversation_job::ConversationJob,
    ids::MessageId,
    message_event::{EventBody, MessageEvent},
    routing_job::RoutingJob,
    topics::Topic,
    versioned::{DecodeError, TopicRecord, decode, encode},
};

/// Schema files and codec of the records of one topic.
struct Contract {
    /// Name of the schema files; topics with the same records share them.
    schema_name: &'static str,
    version: u32,
    schema: Value,
    /// Decodes a record and encodes it again.
    rewrite: fn(&Value) -> Result<Value, DecodeError>,
}

fn contract(topic: Topic) -> Contract {
    match topic {
        Topic::Route => contract_of::<RoutingJob>("chat.route"),
        // Dead letters may contain any bytes; readable ones are unchanged jobs.
        Topic::Jobs | Topic::JobsRetry | Topic::DeadLetters => {
            contract_of::<ConversationJob>("chat.jobs")
        }
        Topic::Messages => contract_of::<MessageEvent>("chat.messages"),
        Topic::Control => contract_of::<ControlEvent>("chat.control"),
    }
}

fn contract_of<T: TopicRecord + JsonSchema>(schema_name: &'static str) -> Contract {
    let rewrite = |value: &Value| {
        let record: T = decode(value.to_string().as_bytes())?;
        Ok(serde_json::from_slice(&encode(&record).unwrap()).unwrap())
    };
    Contract {
        schema_name,
        version: T::VERSION,
        schema: schema_of::<T>(),
        rewrite,
    }
}

/// Returns the schema of a record with the version that [`encode`] adds.
fn schema_of<T: TopicRecord + JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>();
    let version =
        json!({ "description": "Version of this schema.", "type": "integer", "const": T::VERSION });
    let properties = schema
        .ensure_object()
        .entry("properties")
        .or_insert_with(|| json!({}));
    properties
        .as_object_mut()
        .unwrap()
        .insert("version".into(), version);
    let required = schema
        .ensure_object()
        .entry("required")
        .or_insert_with(|| json!([]));
    required.as_array_mut().unwrap().insert(0, "version".into());
    // Doc comments link to Rust items, which other readers cannot follow.
    let mut text = schema.as_value().to_string();
    for topic in Topic::ALL {
        text = text.replace(
            &format!("[`crate::topics::Topic::{topic:?}`]"),
            topic.name(),
        );
    }
    serde_json::from_str(&text).unwrap()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn schema_path(contract: &Contract, version: u32) -> PathBuf {
    folder("json").join(format!("{}.v{version}.schema.json", contract.schema_name))
}

fn read_json(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A golden record.
struct Example {
    topic: Topic,
    version: u32,
    path: PathBuf,
    value: Value,
}

/// Returns the examples of all versions of all topics.
fn examples() -> Vec<Example> {
    Topic::ALL.into_iter().flat_map(examples_of).collect()
}

fn examples_of(topic: Topic) -> Vec<Example> {
    let versions = 1..=contract(topic).version;
    versions
        .flat_map(|version| examples_in(topic, version))
        .collect()
}

fn examples_in(topic: Topic, version: u32) -> Vec<Example> {
    let folder = folder("examples")
        .join(topic.name())
        .join(format!("v{version}"));
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| Example {
            topic,
            version,
            value: read_json(&path),
            path,
        })
        .collect()
}

#[test]
fn committed_schemas_match_the_rust_types() {
    for topic in Topic::ALL {
        let contract = contract(topic);
        let path = schema_path(&contract, contract.version);
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::create_dir_all(folder("json")).unwrap();
            fs::write(&path, format!("{:#}\n", contract.schema)).unwrap();
        }
        assert_eq!(
            read_json(&path),
            contract.schema,
            "{} is stale, see the head of this file",
            path.display()
        );
    }
}

#[test]
fn fields_are_named_in_camel_case() {
    for topic in Topic::ALL {
        let mut names = Vec::new();
        collect_field_names(&contract(topic).schema, &mut names);
        assert!(names.len() >= 4, "{topic}: {names:?}");
        let foreign: Vec<&String> = names
            .iter()
            .filter(|name| !name.chars().all(char::is_alphanumeric))
            .collect();
        assert!(foreign.is_empty(), "{topic}: {foreign:?}");
    }
}

fn collect_field_names(schema: &Value, names: &mut Vec<String>) {
    for (key, value) in schema.as_object().into_iter().flatten() {
        if key == "properties" {
            names.extend(
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| name.clone()),
            );
        }
        collect_field_names(value, names);
    }
    for value in schema.as_array().into_iter().flatten() {
        collect_field_names(value, names);
    }
}

#[test]
fn schema_files_exist_for_exactly_the_known_versions() {
    let expected: BTreeSet<PathBuf> = Topic::ALL
        .into_iter()
        .map(contract)
        .flat_map(|contract| {
            (1..=contract.version).map(move |version| schema_path(&contract, version))
        })
        .collect();
    let found: BTreeSet<PathBuf> = fs::read_dir(folder("json"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn topic_has_an_example_of_every_version_ever_written() {
    for topic in Topic::ALL {
        for version in 1..=contract(topic).version {
            assert!(
                !examples_in(topic, version).is_empty(),
                "{topic} v{version}"
            );
        }
    }
}

#[test]
fn examples_are_valid_by_the_schema_of_their_version() {
    for example in examples() {
        let schema = read_json(&schema_path(&contract(example.topic), example.version));
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&example.value)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", example.path.display());
    }
}

#[test]
fn record_without_a_required_field_is_invalid() {
    for example in examples() {
        let schema = read_json(&schema_path(&contract(example.topic), example.version));
        let validator = jsonschema::validator_for(&schema).unwrap();
        for missing in ["version", "eventId", "type", "turn", "kind", "id"] {
            let mut value = example.value.clone();
            if value.as_object_mut().unwrap().remove(missing).is_some() {
                assert!(
                    !validator.is_valid(&value),
                    "{} without {missing}",
                    example.path.display()
                );
            }
        }
    }
}

#[test]
fn examples_of_all_versions_round_trip() {
    for example in examples() {
        let contract = contract(example.topic);
        assert_eq!(
            example.value["version"],
            example.version,
            "{}",
            example.path.display()
        );
        let rewritten =
            (contract.rewrite)(&example.value).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(rewritten, example.value, "{}", example.path.display());
    }
}

#[test]
fn unknown_fields_are_ignored_at_any_depth() {
    for example in examples() {
        let rewrite = contract(example.topic).rewrite;
        let mut extended = example.value.clone();
        extended["addedLater"] = json!({ "at": "any depth" });
        for nested in ["turn", "routed"] {
            if extended[nested].is_object() {
                extended[nested]["addedLater"] = json!([1, 2]);
            }
        }
        assert_eq!(
            rewrite(&extended).unwrap(),
            rewrite(&example.value).unwrap(),
            "{}",
            example.path.display()
        );
    }
}

#[test]
fn newer_version_is_reported_and_version_zero_malformed() {
    for example in examples() {
        let contract = contract(example.topic);
        let (mut value, newer) = (example.value.clone(), contract.version + 1);
        value["version"] = newer.into();
        let error = (contract.rewrite)(&value).unwrap_err();
        assert!(
            matches!(error, DecodeError::UnknownVersion(version) if version == newer),
            "{error}"
        );
        value["version"] = 0.into();
        let error = (contract.rewrite)(&value).unwrap_err();
        assert!(matches!(error, DecodeError::Malformed(_)), "{error}");
    }
}

#[test]
fn examples_cover_every_variant() {
    let texts = |topic: Topic, field: &str| -> BTreeSet<String> {
        examples_of(topic)
            .iter()
            .map(|example| example.value[field].as_str().unwrap_or("null").to_owned())
            .collect()
    };
    let set = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>()
    };
    let messages = Topic::Messages;
    assert_eq!(
        texts(messages, "type"),
        set(&[
            "message.user",
            "message.assistant",
            "conversation.updated",
            "lead.captured"
        ])
    );
    assert_eq!(texts(messages, "actor"), set(&["visitor", "agent", "api"]));
    assert_eq!(texts(messages, "source"), set(&["api", "widget", "null"]));
    assert_eq!(
        texts(messages, "status"),
        set(&["completed", "incomplete", "failed", "cancelled", "null"])
    );
    assert_eq!(
        texts(messages, "finishReason"),
        set(&["stop", "length", "content_filter", "cancelled", "null"])
    );
    assert_eq!(
        texts(Topic::Jobs, "kind"),
        set(&["answer", "patch", "trial", "delete"])
    );
    assert_eq!(
        texts(Topic::Control, "kind"),
        set(&["organization", "provider", "agent", "team", "key"])
    );

    let shown = |wanted: fn(&Value) -> bool| {
        examples_of(messages)
            .iter()
            .any(|example| wanted(&example.value))
    };
    assert!(shown(|value| value["uiSpec"].is_object()));
    assert!(shown(
        |value| value["routingReason"].is_string() && value["teamId"].is_string()
    ));
    assert!(shown(|value| value["deleted"] == true));
    assert!(shown(|value| value["changes"]
        .as_object()
        .is_some_and(|keys| keys.values().any(Value::is_null))));
}

#[test]
fn examples_are_consistent_with_each_other() {
    let mut event_ids = BTreeSet::new();
    for example in examples_of(Topic::Messages) {
        let event: MessageEvent = decode(example.value.to_string().as_bytes()).unwrap();
        assert!(
            event_ids.insert(event.event_id.clone()),
            "two facts with one event id: {}",
            event.event_id
        );
        let message: Option<&MessageId> = match &event.body {
            EventBody::UserMessage(fact) => Some(&fact.message_id),
            EventBody::AssistantMessage(fact) => {
                assert_eq!(
                    fact.message_id,
                    fact.in_reply_to.reply(),
                    "{}",
                    example.path.display()
                );
                Some(&fact.message_id)
            }
            EventBody::ConversationUpdated(_) | EventBody::LeadCaptured(_) => None,
        };
        assert!(
            message.is_none_or(|id| id.conversation() == event.conversation_id),
            "{}",
            example.path.display()
        );
    }
}

#[test]
fn readme_explains_every_topic_and_field_with_personal_data() {
    let readme = fs::read_to_string(folder("README.md")).unwrap();
    for topic in Topic::ALL {
        assert!(readme.contains(&format!("## `{topic}`")), "{topic}");
    }
    let schema = contract(Topic::Messages).schema;
    let facts = schema["$defs"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(|fact| fact["properties"].as_object());
    let personal: Vec<&String> = facts
        .flatten()
        .filter(|(_, field)| {
            field["description"]
                .as_str()
                .is_some_and(|text| text.contains("ersonal data"))
        })
        .map(|(name, _)| name)
        .collect();
    assert!(personal.len() >= 4, "{personal:?}");
    for name in personal {
        assert!(readme.contains(&format!("`{name}`")), "{name}");
    }
}

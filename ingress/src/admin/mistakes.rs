//! All mistakes of a document that was refused. The checks stop at the first one: it is taken out
//! of a copy of the document, which is then checked again.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    apply::check_document,
    errors::ValidationError,
    planner::{ApplyError, ReferenceChecks},
    validation::OCCURS_TWICE,
};
use crate::{
    http::{ApiError, ErrorCode},
    state::apply_context::ApplyContext,
};

/// Largest number of mistakes in one error.
const MISTAKES_MAX: usize = 50;
/// Largest number of checks of one document: a mistake can need several until it is taken out.
const CHECKS_MAX: usize = 4 * MISTAKES_MAX;
/// Lists whose entries other resources refer to.
const REFERRED_LISTS: [&str; 2] = ["agents", "providers"];

/// Creates the error for a refused document: its first mistake, and all of them in the details.
pub(super) fn mistakes_error(mistakes: &[ValidationError]) -> ApiError {
    let Some(first) = mistakes.first() else {
        return ApiError::internal(&"a document was refused without a mistake");
    };
    let detail = match mistakes.len() - 1 {
        0 => first.reason.clone(),
        more => format!("{} (details.errors has {more} more)", first.reason),
    };
    let errors = mistakes
        .iter()
        .map(|mistake| json!({ "param": mistake.path, "detail": mistake.reason }));
    let error = ApiError::new(ErrorCode::InvalidRequestData, detail)
        .details(json!({ "errors": errors.collect::<Vec<_>>() }));
    if first.path.is_empty() {
        error
    } else {
        error.param(&first.path)
    }
}

/// Returns the mistakes of a document in the order in which they are found. Mistakes that only
/// follow from others are left out.
pub(super) async fn all_mistakes(context: &ApplyContext, document: Value) -> Vec<ValidationError> {
    let mut reduced = ReducedDocument {
        document,
        kept: HashMap::new(),
    };
    let mut mistakes: Vec<ValidationError> = Vec::new();
    let mut references = ReferenceChecks::All;
    for check in 0..CHECKS_MAX {
        let copy = reduced.document.clone();
        let Err(ApplyError::Invalid(found)) = check_document(context, copy, references).await
        else {
            break;
        };
        let found = found.naming_missing_field();
        let mut steps = parse_path(&found.path);
        let path = reduced.original_path(&steps);
        let is_known = mistakes.iter().any(|known| is_related(&known.path, &path));
        if !is_known {
            // What is missing or occurs twice has no name that others could refer to.
            let is_nameless = reduced.get(&steps).is_none() || found.reason == OCCURS_TWICE;
            if !is_nameless && is_referred(&steps) {
                references = ReferenceChecks::None;
            }
            mistakes.push(ValidationError::new(path, found.reason));
            if mistakes.len() == MISTAKES_MAX {
                break;
            }
        }
        if reduced.get(&steps).is_none() && reduced.fill(&steps, check) {
            continue;
        }
        if is_known && reduced.is_filled(&steps) {
            steps.pop();
        }
        while !steps.is_empty() && !reduced.take_out(&steps) {
            steps.pop();
        }
        if steps.is_empty() {
            break;
        }
    }
    mistakes
}

/// A step from a value to one inside it.
#[derive(Clone, Debug, PartialEq)]
enum PathStep {
    Field(String),
    Item(usize),
}

/// A document without the parts that were refused.
struct ReducedDocument {
    document: Value,
    /// Original indexes of the items of each list from which some were taken out, by its original
    /// path.
    kept: HashMap<String, Vec<usize>>,
}

/// Beginning of the texts that stand for missing ones.
const FILLER: &str = "filler-";

impl ReducedDocument {
    fn get(&self, steps: &[PathStep]) -> Option<&Value> {
        steps
            .iter()
            .try_fold(&self.document, |value, step| match step {
                PathStep::Field(name) => value.get(name),
                PathStep::Item(index) => value.get(index),
            })
    }

    fn get_mut(&mut self, steps: &[PathStep]) -> Option<&mut Value> {
        steps
            .iter()
            .try_fold(&mut self.document, |value, step| match step {
                PathStep::Field(name) => value.get_mut(name),
                PathStep::Item(index) => value.get_mut(index),
            })
    }

    fn is_filled(&self, steps: &[PathStep]) -> bool {
        let text = self.get(steps).and_then(Value::as_str);
        text.is_some_and(|text| text.starts_with(FILLER))
    }

    /// Puts a text in place of a missing field.
    fn fill(&mut self, steps: &[PathStep], number: usize) -> bool {
        let Some((PathStep::Field(name), parent)) = steps.split_last() else {
            return false;
        };
        let Some(Value::Object(fields)) = self.get_mut(parent) else {
            return false;
        };
        fields.insert(name.clone(), format!("{FILLER}{number}").into());
        true
    }

    /// Removes a value. Returns false if there is none.
    fn take_out(&mut self, steps: &[PathStep]) -> bool {
        let Some((last, parent)) = steps.split_last() else {
            return false;
        };
        let list = self.original_path(parent);
        match (last, self.get_mut(parent)) {
            (PathStep::Field(name), Some(Value::Object(fields))) => fields.remove(name).is_some(),
            (PathStep::Item(index), Some(Value::Array(items))) if *index < items.len() => {
                let count = items.len();
                items.remove(*index);
                let kept = self.kept.entry(list);
                kept.or_insert_with(|| (0..count).collect()).remove(*index);
                true
            }
            _ => false,
        }
    }

    /// Returns a path with the indexes that the items had at first.
    fn original_path(&self, steps: &[PathStep]) -> String {
        let mut path = String::new();
        for step in steps {
            match step {
                PathStep::Field(name) if path.is_empty() => path.clone_from(name),
                PathStep::Field(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                PathStep::Item(index) => {
                    let kept = self.kept.get(&path).and_then(|kept| kept.get(*index));
                    path.push_str(&format!("[{}]", kept.unwrap_or(index)));
                }
            }
        }
        path
    }
}

fn parse_path(path: &str) -> Vec<PathStep> {
    let parts = path.split(['.', '[']).filter(|part| !part.is_empty());
    let step = |part: &str| {
        let index = part.strip_suffix(']').and_then(|part| part.parse().ok());
        index.map_or_else(|| PathStep::Field(part.to_owned()), PathStep::Item)
    };
    parts.map(step).collect()
}

/// Returns true if one path is the other or leads into it.
fn is_related(one: &str, other: &str) -> bool {
    let is_below = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    is_below(one, other) || is_below(other, one)
}

/// Returns true if references to the refused value would be refused as well.
fn is_referred(steps: &[PathStep]) -> bool {
    let is_list = |step: Option<&PathStep>| matches!(step, Some(PathStep::Field(name)) if REFERRED_LISTS.contains(&name.as_str()));
    match steps.split_last() {
        Some((PathStep::Field(name), [parent @ .., PathStep::Item(_)])) if name == "slug" => {
            is_list(parent.last())
        }
        Some((PathStep::Item(_), parent)) => is_list(parent.last()),
        Some((last, _)) => is_list(Some(last)),
        None => true,
    }
}

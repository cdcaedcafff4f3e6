//! Pages of a list: the parameters that select one, and the response that holds it.

use std::str::FromStr;

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::{ApiError, ApiResult, query};

/// The number of items of a page by default, and at most.
const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 200;

/// The query of a list. A value that is not a whole number counts as absent.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct PageQuery {
    /// Items to return: 50 by default, at most 200.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: Option<String>,
    /// Items to skip.
    #[param(value_type = Option<u64>, minimum = 0, default = 0)]
    offset: Option<String>,
}

/// A page of a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page<T> {
    /// The items of this page.
    pub(super) items: Vec<T>,
    /// The number of items in the whole list.
    pub(super) total: usize,
    /// The largest number of items of a page.
    pub(super) limit: usize,
    /// The number of items before this page.
    pub(super) offset: usize,
    /// `true` if a later page has items.
    pub(super) has_more: bool,
}

/// The page of a list that is read from a cursor on.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct CursorQuery {
    /// Items to return: 50 by default, at most 200.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: Option<String>,
    /// The `nextCursor` of an earlier page.
    cursor: Option<String>,
}

/// A page of a list that is read from a cursor on.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CursorPage<T> {
    /// The matching items, which can be fewer than `limit` before the end.
    pub(super) items: Vec<T>,
    /// The largest number of items of a page.
    pub(super) limit: usize,
    /// The `cursor` of the next page; `null` at the end.
    #[schema(required)]
    pub(super) next_cursor: Option<String>,
}

impl<T> CursorPage<T> {
    /// Creates the response that holds a page.
    pub(super) const fn new(
        items: Vec<T>,
        limit: usize,
        next_cursor: Option<String>,
    ) -> Json<Self> {
        Json(Self {
            items,
            limit,
            next_cursor,
        })
    }
}

impl PageQuery {
    /// Returns the number of items before the page, and the largest number of items on it.
    pub(super) fn range(&self) -> (u64, u32) {
        let limit = u32::try_from(self.limit()).unwrap_or(u32::MAX);
        (self.offset() as u64, limit)
    }

    /// Creates the page with `items` out of `total`.
    pub(super) fn page<T>(&self, items: Vec<T>, total: usize) -> Page<T> {
        let end = self.offset().saturating_add(items.len());
        Page {
            has_more: !items.is_empty() && end < total,
            items,
            total,
            limit: self.limit(),
            offset: self.offset(),
        }
    }

    fn limit(&self) -> usize {
        page_limit(self.limit.as_deref())
    }

    fn offset(&self) -> usize {
        whole_number(self.offset.as_deref()).unwrap_or_default()
    }
}

impl CursorQuery {
    /// Returns the largest number of items of the page.
    pub(super) fn limit(&self) -> usize {
        page_limit(self.limit.as_deref())
    }

    /// Returns the position at which the page begins.
    pub(super) fn cursor<T>(&self, parse: impl Fn(&str) -> Option<T>) -> ApiResult<Option<T>> {
        let rule = "must be the nextCursor of an earlier page";
        let parse = |text| parse(text).ok_or_else(|| ApiError::field("cursor", rule));
        self.cursor.as_deref().map(parse).transpose()
    }
}

fn page_limit(text: Option<&str>) -> usize {
    whole_number(text)
        .filter(|limit| *limit >= 1)
        .unwrap_or(LIMIT_DEFAULT)
        .min(LIMIT_MAX)
}

/// Parses a query parameter.
///
/// # Errors
/// 400 with `rule` as the text if the value does not parse.
pub(super) fn parse_parameter<T: FromStr>(
    name: &str,
    text: Option<&str>,
    rule: &str,
) -> ApiResult<Option<T>> {
    let value = text.map(str::parse).transpose();
    value.map_err(|_| ApiError::field(name, rule))
}

fn whole_number(text: Option<&str>) -> Option<usize> {
    query::whole_number(text?).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_limits_and_offsets_use_the_default() {
        let page = |limit: &str, offset: &str| PageQuery {
            limit: Some(limit.into()),
            offset: Some(offset.into()),
        };
        for (limit, offset, expected) in [
            ("", "", (50, 0)),
            ("0", "-1", (50, 0)),
            ("999", "x", (200, 0)),
            ("99999999999999999999", "3", (200, 3)),
        ] {
            assert_eq!(
                (page(limit, offset).limit(), page(limit, offset).offset()),
                expected
            );
        }
    }

    #[test]
    fn has_more_is_true_before_the_last_page() {
        let page = PageQuery {
            limit: Some("1".into()),
            offset: Some("1".into()),
        };
        assert!(page.page(vec![1], 3).has_more);
        assert!(!page.page(vec![1], 2).has_more);
        assert!(!page.page(Vec::<u32>::new(), 0).has_more);
    }
}

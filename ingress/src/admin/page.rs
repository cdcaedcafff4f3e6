//! Which part of a list an answer holds.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::query;

/// Items of a page that says nothing of its size, and of the largest one.
const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 200;

/// The query of a list. What is no whole number counts as absent, and too large a page as the largest.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Page {
    limit: Option<String>,
    offset: Option<String>,
}

impl Page {
    /// Its part of `items`.
    pub(super) fn of<'a, T>(&self, items: &'a [T]) -> &'a [T] {
        let start = self.offset().min(items.len());
        &items[start..self.offset().saturating_add(self.limit()).min(items.len())]
    }

    /// Its first place, and how many it holds at most.
    pub(super) fn range(&self) -> (u64, u32) {
        (
            self.offset() as u64,
            u32::try_from(self.limit()).unwrap_or(u32::MAX),
        )
    }

    /// The answer that holds `items` out of `total`.
    pub(super) fn answer(&self, items: Vec<Value>, total: usize) -> Value {
        let end = self.offset().saturating_add(items.len());
        let has_more = !items.is_empty() && end < total;
        json!({
            "items": items,
            "total": total,
            "limit": self.limit(),
            "offset": self.offset(),
            "hasMore": has_more,
        })
    }

    fn limit(&self) -> usize {
        limit(self.limit.as_deref())
    }

    fn offset(&self) -> usize {
        whole_number(self.offset.as_deref()).unwrap_or_default()
    }
}

/// Size of a page.
pub(super) fn limit(text: Option<&str>) -> usize {
    whole_number(text)
        .filter(|limit| *limit >= 1)
        .unwrap_or(LIMIT_DEFAULT)
        .min(LIMIT_MAX)
}

fn whole_number(text: Option<&str>) -> Option<usize> {
    query::whole_number(text?).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_add_up_to_the_list_and_invalid_limits_use_the_default() {
        let page = |limit: &str, offset: &str| Page {
            limit: Some(limit.into()),
            offset: Some(offset.into()),
        };
        let items: Vec<u32> = (0..5).collect();
        assert_eq!(
            [
                page("2", "0").of(&items),
                page("2", "2").of(&items),
                page("2", "4").of(&items)
            ]
            .concat(),
            items
        );
        assert_eq!(page("2", "9").of(&items), [] as [u32; 0]);
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
    fn an_answer_says_whether_there_is_more() {
        let page = Page {
            limit: Some("1".into()),
            offset: Some("1".into()),
        };
        assert_eq!(page.answer(vec![json!(1)], 3)["hasMore"], true);
        assert_eq!(page.answer(vec![json!(1)], 2)["hasMore"], false);
        assert_eq!(page.answer(vec![], 0)["hasMore"], false);
    }
}

//! The analytics reader: returns stored totals where they are still valid, and recounts the other
//! days.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    day::{HOURS_PER_DAY, UtcDay},
    ids::OrgId,
};

use super::{
    AnalyticsStore, ChangeMarks, DayRange,
    totals::{GroupedTotals, HourCounter, TotalsGroup, UsageTotals},
};
use crate::{
    error::StoreError,
    json::{decode, encode},
};

/// Number of facts after which a request counts no further day, a second or two of work. Counted
/// days are stored, so that the next request continues there.
const FACTS_PER_READING_MAX: u64 = 500_000;
/// Number of facts read at once.
const FACTS_PER_PAGE: u32 = 1000;
/// Number of hours counted at once. The embedded backend has this many readers, and other requests
/// need them too.
const HOURS_AT_ONCE: usize = 3;
/// Version of the stored totals, changed with their meaning so that older ones are not used.
const TOTALS_SHAPE: u32 = 1;

/// The reason why there are no totals.
#[derive(Debug, thiserror::Error)]
pub enum AnalyticsError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There are too many uncounted facts for one request; the next one continues.
    #[error("counting goes on")]
    Unfinished,
}

/// The totals of a day and its change marks at that time.
#[derive(Serialize, Deserialize)]
struct StoredTotals {
    shape: u32,
    marks: ChangeMarks,
    groups: Vec<(TotalsGroup, UsageTotals)>,
}

/// Returns the totals of the days that have any.
///
/// # Errors
/// [`AnalyticsError`].
pub async fn read_totals(
    analytics: &dyn AnalyticsStore,
    org: &OrgId,
    days: DayRange,
) -> Result<BTreeMap<UtcDay, GroupedTotals>, AnalyticsError> {
    read_bounded(analytics, org, days, FACTS_PER_READING_MAX).await
}

async fn read_bounded(
    analytics: &dyn AnalyticsStore,
    org: &OrgId,
    days: DayRange,
    facts_max: u64,
) -> Result<BTreeMap<UtcDay, GroupedTotals>, AnalyticsError> {
    // Read the marks first: totals counted after them include at least the facts of these marks.
    let marked = analytics.marked_days(org, days).await?;
    let kept = analytics.stored_totals(org, days).await?;
    let (mut read, mut facts_counted) = (BTreeMap::new(), 0);
    for (day, marks) in marked {
        if let Some(totals) = kept
            .get(&day)
            .and_then(|body| decode_if_valid(body, &marks))
        {
            read.insert(day, totals);
            continue;
        }
        if facts_counted >= facts_max {
            return Err(AnalyticsError::Unfinished);
        }
        let (totals, facts) = count_day(analytics, org, day).await?;
        facts_counted += facts;
        let groups = totals
            .0
            .iter()
            .map(|(group, totals)| (group.clone(), totals.clone()))
            .collect();
        analytics
            .put_totals(
                org,
                day,
                encode(&StoredTotals {
                    shape: TOTALS_SHAPE,
                    marks,
                    groups,
                })?,
            )
            .await?;
        read.insert(day, totals);
    }
    Ok(read)
}

fn decode_if_valid(body: &str, marks: &ChangeMarks) -> Option<GroupedTotals> {
    let kept: StoredTotals = decode(body).ok()?;
    (kept.shape == TOTALS_SHAPE && kept.marks == *marks)
        .then(|| GroupedTotals(kept.groups.into_iter().collect()))
}

/// Counts the facts of a day and returns its totals and the number of facts.
async fn count_day(
    analytics: &dyn AnalyticsStore,
    org: &OrgId,
    day: UtcDay,
) -> Result<(GroupedTotals, u64), StoreError> {
    let hours = (0..HOURS_PER_DAY).map(|hour| count_hour(analytics, org, day.first_hour() + hour));
    let counted = stream::iter(hours).buffer_unordered(HOURS_AT_ONCE);
    let add = |(mut totals, facts): (GroupedTotals, u64), (hour, facts_of_hour)| async move {
        totals.merge(hour);
        Ok((totals, facts + facts_of_hour))
    };
    counted.try_fold((GroupedTotals::default(), 0), add).await
}

async fn count_hour(
    analytics: &dyn AnalyticsStore,
    org: &OrgId,
    hour: i64,
) -> Result<(GroupedTotals, u64), StoreError> {
    let (mut counter, mut facts, mut behind) = (HourCounter::default(), 0, String::new());
    loop {
        let page = analytics
            .hour_facts(org, hour, &behind, FACTS_PER_PAGE)
            .await?;
        for row in &page {
            row.read()?.into_iter().for_each(|fact| counter.add(fact));
        }
        facts += page.len() as u64;
        match page.into_iter().next_back() {
            Some(last) if facts % u64::from(FACTS_PER_PAGE) == 0 => behind = last.id,
            _ => return Ok((counter.finish(), facts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::json;
    use switchboard_schemas::secret::InstallationSecret;

    use super::*;
    use crate::analytics::facts::FactRow;

    /// Uncounted days with a number of facts each, all in their first hour.
    struct UncountedDays {
        days: i64,
        facts: usize,
        kept: std::sync::Mutex<BTreeMap<UtcDay, String>>,
    }

    #[async_trait]
    impl AnalyticsStore for UncountedDays {
        async fn marked_days(
            &self,
            _: &OrgId,
            _: DayRange,
        ) -> Result<BTreeMap<UtcDay, ChangeMarks>, StoreError> {
            Ok((0..self.days)
                .map(|day| (UtcDay::from_number(day), ChangeMarks::new()))
                .collect())
        }

        async fn hour_facts(
            &self,
            _: &OrgId,
            hour: i64,
            behind: &str,
            limit: u32,
        ) -> Result<Vec<FactRow>, StoreError> {
            let from = behind.parse::<usize>().map_or(0, |last| last + 1);
            let end = if hour % HOURS_PER_DAY == 0 {
                self.facts.min(from + limit as usize)
            } else {
                0
            };
            let body = json!({ "status": "completed", "usage": { "promptTokens": 1, "completionTokens": 2 } });
            Ok((from..end)
                .map(|id| FactRow {
                    id: format!("{id:07}"),
                    body: Some(body.to_string()),
                })
                .collect())
        }

        async fn stored_totals(
            &self,
            _: &OrgId,
            _: DayRange,
        ) -> Result<BTreeMap<UtcDay, String>, StoreError> {
            Ok(self.kept.lock().unwrap().clone())
        }

        async fn put_totals(&self, _: &OrgId, day: UtcDay, body: String) -> Result<(), StoreError> {
            self.kept.lock().unwrap().insert(day, body);
            Ok(())
        }
    }

    fn days(days: i64, facts: usize) -> UncountedDays {
        UncountedDays {
            days,
            facts,
            kept: std::sync::Mutex::default(),
        }
    }

    async fn messages(busy: &UncountedDays, facts_max: u64) -> Result<u64, AnalyticsError> {
        let org = OrgId::derive(&InstallationSecret::from_bytes([7; 32]), "acme");
        let range = DayRange {
            first: UtcDay::from_number(0),
            last: UtcDay::from_number(busy.days),
        };
        let read = read_bounded(busy, &org, range, facts_max).await?;
        Ok(read
            .values()
            .flat_map(|totals| totals.0.values())
            .map(UsageTotals::messages)
            .sum())
    }

    #[tokio::test]
    async fn hour_is_counted_across_pages_of_facts() {
        let page = FACTS_PER_PAGE as usize;
        for facts in [0, 1, page - 1, page, page + 1, 2 * page, 2 * page + 1] {
            assert_eq!(
                messages(&days(1, facts), u64::MAX).await.unwrap(),
                facts as u64
            );
        }
    }

    #[tokio::test]
    async fn counting_continues_over_several_requests() {
        let busy = days(5, 30);
        for _ in 0..2 {
            assert!(matches!(
                messages(&busy, 50).await,
                Err(AnalyticsError::Unfinished)
            ));
        }
        assert_eq!(messages(&busy, 50).await.unwrap(), 5 * 30);
    }
}

//! Records of erasures in the embedded store.

use rusqlite::{OptionalExtension, params};
use switchboard_schemas::{
    erasure::Erasure,
    ids::{ErasureId, OrgId},
};

use super::{erasures::LAST, rows::position_column};
use crate::{
    error::StoreError,
    json::{decode, encode},
    sqlite::SqliteDatabase,
};

const PUT: &str = "INSERT INTO erasures (org_id, erasure_id, body, steps) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET body = excluded.body, steps = excluded.steps
    WHERE (excluded.steps, excluded.body) > (steps, body)";
const GET: &str = "SELECT body FROM erasures WHERE org_id = ?1 AND erasure_id = ?2";
const LIST: &str = "SELECT body FROM erasures WHERE org_id = ?1 AND erasure_id < ?2
    ORDER BY erasure_id DESC LIMIT ?3";

/// Stores the state of an erasure.
pub(super) async fn put(database: &SqliteDatabase, erasure: &Erasure) -> Result<(), StoreError> {
    let (body, steps) = (encode(erasure)?, position_column(erasure.steps)?);
    let (org, id) = (erasure.org_id.clone(), erasure.id.clone());
    database
        .write(move |connection| {
            connection.prepare_cached(PUT)?.execute(params![
                org.as_str(),
                id.as_str(),
                body,
                steps
            ])?;
            Ok(())
        })
        .await
}

/// Returns the latest state of an erasure.
pub(super) async fn get(
    database: &SqliteDatabase,
    org: &OrgId,
    id: &ErasureId,
) -> Result<Option<Erasure>, StoreError> {
    let key = [org.to_string(), id.to_string()];
    let body: Option<String> = database
        .read(move |connection| {
            Ok(connection
                .prepare_cached(GET)?
                .query_row(key, |row| row.get(0))
                .optional()?)
        })
        .await?;
    body.as_deref().map(decode).transpose()
}

/// Returns a page of erasures, latest first.
pub(super) async fn list(
    database: &SqliteDatabase,
    org: &OrgId,
    before: Option<&ErasureId>,
    limit: u32,
) -> Result<Vec<Erasure>, StoreError> {
    let (org, before) = (
        org.clone(),
        before.map_or(LAST, ErasureId::as_str).to_owned(),
    );
    let bodies: Vec<String> = database
        .read(move |connection| {
            let mut statement = connection.prepare_cached(LIST)?;
            let rows =
                statement.query_map(params![org.as_str(), before, limit], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await?;
    bodies.iter().map(|body| decode(body)).collect()
}

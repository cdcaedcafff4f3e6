//! `…/agents/{id}/products/items`: what an upload or a feed brought, page by page, all of it or what has certain words.
//! Whoever looks for a mistake in a file wants the rows as they were read; what a visitor would be shown is for trials.

use axum::{
    Json,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_backends::products::{ProductStore, PublishedProducts, reader::products_of};
use switchboard_schemas::{agent::Agent, catalog_product::CatalogProduct};

use super::{
    administrator::{Action, Administrator},
    page::Page,
    products::{Names, agent},
};
use crate::{
    http::{ApiError, ApiResult},
    state::AppState,
};

/// Words of a search that count.
const WORDS_MAX: usize = 16;
/// How often a reading is begun anew because the products were replaced meanwhile.
const READINGS_MAX: u32 = 3;

/// What is looked for, beside the page.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    search: String,
}

/// A page of what was found, and how much there is of it.
#[derive(Default)]
struct Found {
    items: Vec<Value>,
    total: usize,
}

/// The products of an agent, in the order of their file.
pub(super) async fn list(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(names): Names,
    Query(page): Query<Page>,
    Query(wanted): Query<Wanted>,
) -> ApiResult<Response> {
    let agent = agent(&state, &administrator, &names, Action::ReadConfiguration).await?;
    let words = words(&wanted.search);
    let products = state.backends.products.as_ref();
    for _ in 0..READINGS_MAX {
        let kept = products.status(&agent.org_id, &agent.id).await?.kept;
        let found = match &kept {
            Some(kept) => read(products, &agent, kept, &words, page.range()).await?,
            None => Some(Found::default()),
        };
        let Some(found) = found else { continue };
        let mut answer = page.answer(found.items, found.total);
        // Pages of two versions do not join.
        answer["version"] = json!(kept.map(|kept| kept.version));
        return Ok(Json(answer).into_response());
    }
    Err(ApiError::unavailable("the products are being replaced"))
}

/// Reads a version chunk by chunk, so that a large one costs no memory; none when another took its place meanwhile.
async fn read(
    products: &dyn ProductStore,
    agent: &Agent,
    kept: &PublishedProducts,
    words: &[String],
    (offset, limit): (u64, u32),
) -> ApiResult<Option<Found>> {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let shown = offset..offset.saturating_add(limit as usize);
    let mut found = Found::default();
    for number in 0..kept.chunks {
        let chunk = products
            .chunk(&agent.org_id, &agent.id, &kept.version, number)
            .await?;
        let Some(chunk) = chunk else { return Ok(None) };
        for product in products_of(&chunk) {
            let product = product?;
            if !has_all(&product, words) {
                continue;
            }
            if shown.contains(&found.total) {
                found.items.push(json!(product));
            }
            found.total += 1;
        }
        // Without a search it is known how much follows.
        if words.is_empty() && found.total >= shown.end {
            break;
        }
    }
    if words.is_empty() {
        found.total = usize::try_from(kept.count).unwrap_or(usize::MAX);
    }
    Ok(Some(found))
}

fn words(search: &str) -> Vec<String> {
    search
        .to_lowercase()
        .split_whitespace()
        .take(WORDS_MAX)
        .map(str::to_owned)
        .collect()
}

/// Whether each word stands somewhere in what the product says of itself.
fn has_all(product: &CatalogProduct, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let shown = &product.product;
    let own = [&shown.title, &shown.price, &shown.url, &product.description];
    let text = own
        .into_iter()
        .chain(product.attributes.values())
        .fold(String::new(), |text, part| text + part + "\n");
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::agent::Product;

    use super::*;

    #[test]
    fn each_word_is_found_in_whatever_a_product_says_of_itself() {
        let product = Product {
            title: "Grüner TEE".into(),
            price: "5 €".into(),
            ..Product::default()
        };
        let mut product = CatalogProduct::from(product);
        product.description = "From Japan.".into();
        product.attributes.insert("colour".into(), "Jade".into());
        for (search, is_found) in [
            ("", true),
            ("grüner", true),
            ("tee japan jade 5", true),
            ("  TEE\t", true),
            ("colour", false),
            ("tee coffee", false),
            ("teejapan", false),
        ] {
            assert_eq!(has_all(&product, &words(search)), is_found, "{search}");
        }
    }
}

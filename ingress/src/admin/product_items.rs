//! Pages of the stored products of an agent, all of them or the results of a search. Products are
//! returned as they were read from their file with the price that is valid now, so that editors can
//! check it; a playground run shows them as visitors see them.

use std::{ops::Range, sync::Arc};

use axum::{Json, extract::Query};
use serde::{Deserialize, Serialize};
use switchboard_backends::{
    StoreError,
    products::{ProductReader, ProductsVersion, PublishedProducts, reader::products_of},
};
use switchboard_schemas::{agent::Agent, catalog_product::CatalogProduct, time::Timestamp};
use utoipa::{IntoParams, ToSchema};

use super::{
    authorization::Admin,
    pages::{Page, PageQuery},
    permissions::ReadConfiguration,
};
use crate::http::{ApiError, ApiResult};

/// The most words of a search; further words are ignored.
const WORDS_MAX: usize = 16;
/// The number of attempts of one request; each restarts because the products were replaced.
const READS_MAX: u32 = 3;

/// The search in a list of products.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct ProductSearch {
    /// Words that each product in the list contains.
    #[serde(default)]
    search: String,
}

/// A page of stored products.
#[derive(Serialize, ToSchema)]
pub(super) struct ProductPage {
    #[serde(flatten)]
    page: Page<CatalogProduct>,
    /// The version of the products; pages of different versions do not fit together. `null` without
    /// products.
    #[schema(required, value_type = Option<String>)]
    version: Option<ProductsVersion>,
}

/// The products of one page and the number of all matches.
#[derive(Default)]
struct FoundProducts {
    items: Vec<CatalogProduct>,
    total: usize,
}

impl FoundProducts {
    /// Adds the matches of a chunk.
    fn with_chunk(
        mut self,
        chunk: &[u8],
        words: &[String],
        shown: &Range<usize>,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        for product in products_of(chunk) {
            let product = product?.priced_at(now);
            if !has_all(&product, words) {
                continue;
            }
            if shown.contains(&self.total) {
                self.items.push(product);
            }
            self.total += 1;
        }
        Ok(self)
    }
}

/// Lists a page of the stored products, in the order of their file.
pub(super) async fn list(
    admin: Admin<ReadConfiguration, Agent>,
    Query(page): Query<PageQuery>,
    Query(search): Query<ProductSearch>,
) -> ApiResult<Json<ProductPage>> {
    let (words, agent) = (words(&search.search).into(), &admin.subject);
    let products = admin.state.backends.products.as_ref();
    for _ in 0..READS_MAX {
        let kept = products.read_status(&agent.org_id, &agent.id).await?.kept;
        let found = match &kept {
            Some(kept) => read(products, agent, kept, &words, page.range()).await?,
            None => Some(FoundProducts::default()),
        };
        if let Some(found) = found {
            return Ok(Json(ProductPage {
                page: page.page(found.items, found.total),
                version: kept.map(|kept| kept.version),
            }));
        }
    }
    Err(ApiError::unavailable("the products are being replaced"))
}

/// Reads a version chunk by chunk, so that memory does not depend on its size; `None` if it was
/// replaced meanwhile. Chunks are parsed on threads for blocking work.
async fn read(
    products: &dyn ProductReader,
    agent: &Agent,
    kept: &PublishedProducts,
    words: &Arc<[String]>,
    (offset, limit): (u64, u32),
) -> ApiResult<Option<FoundProducts>> {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let shown = offset..offset.saturating_add(limit as usize);
    let (mut found, now) = (FoundProducts::default(), Timestamp::now());
    for number in 0..kept.chunks {
        let chunk = products.read_chunk(&agent.org_id, &agent.id, &kept.version, number);
        let Some(chunk) = chunk.await? else {
            return Ok(None);
        };
        let (searched, page) = (Arc::clone(words), shown.clone());
        let parse = move || found.with_chunk(&chunk, &searched, &page, now);
        let parsed = tokio::task::spawn_blocking(parse).await;
        found = parsed.map_err(|error| ApiError::internal(&error))??;
        // Without a search, the total is known.
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
    let search = search.to_lowercase();
    let words = search.split_whitespace().take(WORDS_MAX);
    words.map(str::to_owned).collect()
}

/// Returns whether each word occurs in the texts of the product.
fn has_all(product: &CatalogProduct, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let shown = &product.product;
    let own = [&shown.title, &shown.price, &shown.url, &product.description];
    let parts = own.into_iter().chain(product.attributes.values());
    let text = parts.fold(String::new(), |text, part| text + part + "\n");
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::agent::Product;

    use super::*;

    #[test]
    fn words_are_searched_in_all_texts_of_a_product() {
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

//! Product search tool: finds products in the agent's own catalog and displays them as a grid.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use switchboard_schemas::{agent::Agent, ids::ConversationId};

use super::{AgentTool, ToolFailure, ToolOutcome, ToolSource, product_grid, product_results};
use crate::{
    config::WorkersConfig,
    products::{PriceLimits, ProductQuery, ProductSearch, ProductsFound},
};

pub(crate) const NAME: &str = "search_products";
/// Products that are displayed if the model does not say how many.
const LIMIT_DEFAULT: u64 = 8;
/// Most products that are displayed.
const LIMIT_MAX: u64 = 20;
const DESCRIPTION: &str = "Searches the shop's products and shows the best matches to the visitor as cards. Call it \
    whenever the visitor asks for products, prices, alternatives or recommendations, before you name any product. \
    Its result tells you what the catalog says of each of them: call it again, with the title, before you answer what \
    a product is like, and say nothing of it that you were not told. Leave `query` empty to see what there is.";

static PARAMETERS: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        // An ignored argument would be an ignored wish of the visitor.
        "additionalProperties": false,
        "properties": {
            "query": {"type": "string", "maxLength": 500, "description": "What is looked for, in a few words of the catalog's language."},
            "price_min": {"type": "number", "minimum": 0, "description": "Lowest price."},
            "price_max": {"type": "number", "minimum": 0, "description": "Highest price."},
            "attributes": {
                "type": "object", "maxProperties": 10, "additionalProperties": {"type": ["string", "number", "boolean"]},
                "description": "Attributes that a product must have, such as {\"color\": \"red\"}."
            },
            "limit": {"type": "integer", "minimum": 1, "description": "How many products to show."}
        }
    })
});

/// Provides the tool to agents whose ecommerce tools are enabled.
pub(crate) struct ProductTools {
    search: Arc<ProductSearch>,
    result_bytes_max: usize,
}

struct SearchProducts {
    agent: Arc<Agent>,
    search: Arc<ProductSearch>,
    result_bytes_max: usize,
}

impl ProductTools {
    pub(crate) fn new(search: ProductSearch, config: &WorkersConfig) -> Self {
        Self {
            search: Arc::new(search),
            result_bytes_max: product_results::result_bytes_max(config),
        }
    }
}

#[async_trait]
impl ToolSource for ProductTools {
    async fn tools_for(&self, agent: &Arc<Agent>, _: &ConversationId) -> Vec<Arc<dyn AgentTool>> {
        if !agent.settings.ecommerce.enabled {
            return Vec::new();
        }
        let (agent, search) = (Arc::clone(agent), Arc::clone(&self.search));
        vec![Arc::new(SearchProducts {
            agent,
            search,
            result_bytes_max: self.result_bytes_max,
        })]
    }
}

#[async_trait]
impl AgentTool for SearchProducts {
    fn kind(&self) -> &'static str {
        "products"
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        DESCRIPTION
    }

    fn parameters(&self) -> &Value {
        &PARAMETERS
    }

    async fn run(&self, arguments: Map<String, Value>) -> Result<ToolOutcome, ToolFailure> {
        let found = self
            .search
            .search(&self.agent, &parse_query(&arguments))
            .await
            .map_err(|error| {
                tracing::warn!(%error, agent.id = %self.agent.id, "product search failed");
                ToolFailure::Unavailable
            })?;
        Ok(tool_outcome(&found, self.result_bytes_max))
    }
}

fn parse_query(arguments: &Map<String, Value>) -> ProductQuery {
    let limit = arguments
        .get("limit")
        .and_then(Value::as_u64)
        .unwrap_or(LIMIT_DEFAULT)
        .min(LIMIT_MAX);
    let attributes = arguments
        .get("attributes")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let attributes: BTreeMap<_, _> = attributes
        .map(|(name, value)| (name.clone(), text(value)))
        .collect();
    let price = |name| arguments.get(name).and_then(Value::as_f64);
    ProductQuery {
        text: arguments
            .get("query")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        prices: PriceLimits {
            min: price("price_min"),
            max: price("price_max"),
        },
        attributes,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    }
}

/// Returns the findings. The tool loop describes the displayed cards to the model after all results
/// of a round.
fn tool_outcome(found: &ProductsFound, bytes_max: usize) -> ToolOutcome {
    let cards = found
        .products
        .iter()
        .filter_map(|found| Some((product_grid::card_of_product(&json!(found.product))?, found)));
    let cards: Vec<_> = cards.take(product_grid::PRODUCTS_MAX).collect();
    let text = product_results::render_result(found, &cards, bytes_max);
    ToolOutcome {
        text,
        ui: product_grid::grid_of(cards.into_iter().map(|(card, _)| card)),
    }
}

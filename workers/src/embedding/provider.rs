//! Embeddings from a provider's `/v1/embeddings` endpoint.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{EmbeddingError, EmbeddingSource};
use crate::model::{CallError, ModelEndpoint, openai::ModelClient};

/// A source that calls a provider; the model of its endpoint is an embedding model.
pub(crate) struct ProviderEmbeddings {
    client: ModelClient,
    endpoint: ModelEndpoint,
    name: String,
}

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingRow>,
}

#[derive(Deserialize)]
struct EmbeddingRow {
    index: usize,
    embedding: Vec<f32>,
}

impl ProviderEmbeddings {
    /// Creates a source for `endpoint`.
    pub(crate) fn new(client: ModelClient, endpoint: ModelEndpoint) -> Self {
        let name = format!("{} {}", endpoint.base_url, endpoint.model);
        Self {
            client,
            endpoint,
            name,
        }
    }
}

#[async_trait]
impl EmbeddingSource for ProviderEmbeddings {
    fn name(&self) -> &str {
        &self.name
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let request = EmbeddingRequest {
            model: &self.endpoint.model,
            input: texts,
            encoding_format: "float",
        };
        let client = self.client.document_client(&self.endpoint)?;
        let answer: EmbeddingResponse = client
            .embeddings()
            .create_byot(&request)
            .await
            .map_err(|error| CallError::from_library(&error))?;
        // Providers may return rows in any order; the index names the text.
        let mut rows = answer.data;
        rows.sort_by_key(|row| row.index);
        let is_whole = rows
            .iter()
            .enumerate()
            .all(|(place, row)| row.index == place);
        if !is_whole {
            return Err(EmbeddingError::Malformed);
        }
        Ok(rows.into_iter().map(|row| row.embedding).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Script, quick, start_model};

    async fn embed(
        answer: Script,
    ) -> (
        Vec<serde_json::Value>,
        Result<Vec<Vec<f32>>, EmbeddingError>,
    ) {
        let provider = start_model(vec![answer]);
        let endpoint = ModelEndpoint {
            base_url: provider.base_url().into(),
            api_key: None,
            model: "small-embeddings".into(),
            api: switchboard_schemas::provider::ProviderApi::ChatCompletions,
            continues_prefix: false,
            vision: false,
            first_token_timeout: None,
            reach: crate::outgoing::AddressReach::Any,
        };
        let embedder = ProviderEmbeddings::new(ModelClient::new(&quick()).unwrap(), endpoint);
        let vectors = embedder.embed(&["a".into(), "b".into()]).await;
        (provider.bodies(), vectors)
    }

    fn document(body: &'static str) -> Script {
        Script::instead("application/json", body)
    }

    #[tokio::test]
    async fn vectors_are_returned_in_the_order_of_the_texts() {
        let rows = r#"{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}]}"#;
        let (requests, vectors) = embed(document(rows)).await;
        assert_eq!(vectors.unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
        let (model, input) = (&requests[0]["model"], &requests[0]["input"]);
        assert_eq!(
            (requests.len(), model, input),
            (
                1,
                &"small-embeddings".into(),
                &serde_json::json!(["a", "b"])
            )
        );
    }

    #[tokio::test]
    async fn unusable_provider_responses_are_errors() {
        let gap = r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#;
        assert_eq!(embed(document(gap)).await.1, Err(EmbeddingError::Malformed));
        let other = embed(document(r#"{"object":"list"}"#)).await.1;
        assert_eq!(other, Err(EmbeddingError::Provider(CallError::NotAnAnswer)));
        let refused = embed(Script::refuses(404)).await.1;
        assert_eq!(
            refused,
            Err(EmbeddingError::Provider(CallError::Refused { status: 404 }))
        );
    }
}

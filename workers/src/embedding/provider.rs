//! Vectors from a provider's `/v1/embeddings`.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Embedder, EmbeddingError};
use crate::model::{CallError, Endpoint, openai::ModelClient};

/// An embedding model of a provider; the model of its endpoint is the embedding model.
pub(crate) struct ProviderEmbedder {
    client: ModelClient,
    endpoint: Endpoint,
    name: String,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    index: usize,
    embedding: Vec<f32>,
}

impl ProviderEmbedder {
    pub(crate) fn new(client: ModelClient, endpoint: Endpoint) -> Self {
        let name = format!("{} {}", endpoint.base_url, endpoint.model);
        Self {
            client,
            endpoint,
            name,
        }
    }
}

#[async_trait]
impl Embedder for ProviderEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let request = Request {
            model: &self.endpoint.model,
            input: texts,
            encoding_format: "float",
        };
        let client = self.client.document_client(&self.endpoint)?;
        let answer: Answer = client
            .embeddings()
            .create_byot(&request)
            .await
            .map_err(|error| CallError::from_library(&error))?;
        // The order is the provider's own; the index says which text a row is of.
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
    use crate::testing::{Act, Provider, quick};

    async fn embed(answer: Act) -> (Provider, Result<Vec<Vec<f32>>, EmbeddingError>) {
        let provider = Provider::start(vec![answer]).await;
        let endpoint = Endpoint {
            base_url: provider.base_url.clone(),
            api_key: None,
            model: "small-embeddings".into(),
            continues_prefix: false,
        };
        let embedder = ProviderEmbedder::new(ModelClient::new(&quick()).unwrap(), endpoint);
        let vectors = embedder.embed(&["a".into(), "b".into()]).await;
        (provider, vectors)
    }

    fn document(body: &'static str) -> Act {
        Act::Answer(200, &[("content-type", "application/json")], body)
    }

    #[tokio::test]
    async fn the_texts_go_in_one_request_and_the_vectors_come_in_their_order() {
        let rows = r#"{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}]}"#;
        let (provider, vectors) = embed(document(rows)).await;
        assert_eq!(vectors.unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
        let requests = provider.requests();
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
    async fn refusals_other_answers_and_rows_that_are_missing_are_errors() {
        let gap = r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#;
        assert_eq!(embed(document(gap)).await.1, Err(EmbeddingError::Malformed));
        let other = embed(document(r#"{"object":"list"}"#)).await.1;
        assert_eq!(other, Err(EmbeddingError::Provider(CallError::NotAnAnswer)));
        let refused = embed(Act::Answer(404, &[], "")).await.1;
        assert_eq!(
            refused,
            Err(EmbeddingError::Provider(CallError::Refused { status: 404 }))
        );
    }
}

//! Vectors from a sentence-transformers directory, computed in this process: no network, and a few milliseconds a text.
//!
//! Such a directory holds a BERT (`config.json`, `model.safetensors`, `tokenizer.json`) and says in `modules.json` and
//! `1_Pooling/config.json` how a text's vector is made of the vectors of its tokens. What is said there and not
//! built here is refused when the directory is opened: a vector made otherwise would be wrong without a sign.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use serde::{Deserialize, de::DeserializeOwned};
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};
use tokio::sync::Semaphore;

use super::{Embedder, EmbeddingError};

/// Batches that are computed at once: each one uses several cores by itself.
const AT_ONCE_MAX: usize = 1;
/// Tokens of a text, whatever the directory allows: the time grows with the square of it.
const TOKENS_MAX: usize = 256;
/// Texts of one pass through the model; of like length, so that little is computed for padding.
const PASS_TEXTS_MAX: usize = 16;

/// A sentence-transformers model in memory; clones share it.
#[derive(Clone)]
pub(crate) struct SentenceTransformer {
    name: String,
    model: Arc<Model>,
    turn: Arc<Semaphore>,
}

struct Model {
    bert: BertModel,
    tokenizer: Tokenizer,
    prompt: String,
}

/// What some models want before every text (`config_sentence_transformers.json`), by the names of their uses.
#[derive(Default, Deserialize)]
struct Prompts {
    #[serde(default)]
    prompts: HashMap<String, String>,
    #[serde(default)]
    default_prompt_name: Option<String>,
}

/// One step of `modules.json`.
#[derive(Deserialize)]
struct Module {
    path: PathBuf,
    r#type: String,
}

#[derive(Deserialize)]
struct Limits {
    max_seq_length: usize,
}

#[derive(Deserialize)]
struct Pooling {
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
}

impl SentenceTransformer {
    /// Reads the directory. Errors: something in it is missing, broken, or of a kind that is not built.
    pub(crate) fn open(directory: &Path) -> anyhow::Result<Self> {
        let transformer = check_modules(directory)?;
        let config: Config = read(&transformer.join("config.json"))?;
        let limits = transformer.join("sentence_bert_config.json");
        let tokens_max = if limits.exists() {
            read::<Limits>(&limits)?.max_seq_length
        } else {
            TOKENS_MAX
        };
        let tokens_max = tokens_max
            .min(TOKENS_MAX)
            .min(config.max_position_embeddings);
        let tokenizer = tokenizer(&transformer.join("tokenizer.json"), tokens_max)?;
        let weights = transformer.join("model.safetensors");
        let weights =
            fs::read(&weights).with_context(|| format!("cannot read {}", weights.display()))?;
        let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)?;
        let bert = BertModel::load(weights, &config)
            .context("model.safetensors is not the BERT of config.json")?;
        Ok(Self {
            name: directory.display().to_string(),
            model: Arc::new(Model {
                bert,
                tokenizer,
                prompt: prompt(directory)?,
            }),
            turn: Arc::new(Semaphore::new(AT_ONCE_MAX)),
        })
    }
}

#[async_trait]
impl Embedder for SentenceTransformer {
    fn name(&self) -> &str {
        &self.name
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let failed = |error: &dyn std::fmt::Display| EmbeddingError::Model(error.to_string());
        // The permit goes along: a caller that waits no longer must not let the next batch in beside this one.
        let turn = self
            .turn
            .clone()
            .acquire_owned()
            .await
            .map_err(|error| failed(&error))?;
        let (model, texts) = (self.model.clone(), texts.to_vec());
        let computed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            model.embed(&texts)
        });
        computed
            .await
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))
    }
}

impl Model {
    fn embed(&self, texts: &[String]) -> anyhow::Result<Vec<Vec<f32>>> {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|index| texts[*index].len());
        let mut vectors = vec![Vec::new(); texts.len()];
        for pass in order.chunks(PASS_TEXTS_MAX) {
            let together = pass
                .iter()
                .map(|index| format!("{}{}", self.prompt, texts[*index]))
                .collect();
            for (index, vector) in pass.iter().zip(self.pass(together)?) {
                vectors[*index] = vector;
            }
        }
        Ok(vectors)
    }

    /// Mean of the tokens' vectors, the padding left out. Its length is the caller's matter.
    fn pass(&self, texts: Vec<String>) -> anyhow::Result<Vec<Vec<f32>>> {
        let encoded = self
            .tokenizer
            .encode_batch_fast(texts, true)
            .map_err(anyhow::Error::msg)?;
        let rows = |of: fn(&tokenizers::Encoding) -> &[u32]| {
            encoded
                .iter()
                .map(|text| Tensor::new(of(text), &Device::Cpu))
                .collect::<Result<Vec<_>, _>>()
        };
        let tokens = Tensor::stack(&rows(tokenizers::Encoding::get_ids)?, 0)?;
        let mask = Tensor::stack(&rows(tokenizers::Encoding::get_attention_mask)?, 0)?;
        let hidden = self
            .bert
            .forward(&tokens, &tokens.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let sum = hidden.broadcast_mul(&mask)?.sum(1)?;
        Ok(sum.broadcast_div(&mask.sum(1)?)?.to_vec2()?)
    }
}

/// A transformer, then the mean of its tokens, then at most a normalization, which every vector gets here anyway.
fn check_modules(directory: &Path) -> anyhow::Result<PathBuf> {
    let modules: Vec<Module> = read(&directory.join("modules.json"))?;
    let kinds: Vec<&str> = modules
        .iter()
        .map(|module| module.r#type.rsplit('.').next().unwrap_or_default())
        .collect();
    let [transformer, pooling, ..] = modules.as_slice() else {
        bail!("modules.json names fewer than two modules")
    };
    ensure!(
        matches!(
            kinds.as_slice(),
            ["Transformer", "Pooling"] | ["Transformer", "Pooling", "Normalize"]
        ),
        "modules.json: only a Transformer, a Pooling and a Normalize are known, not {kinds:?}"
    );
    let pooling: Pooling = read(&directory.join(&pooling.path).join("config.json"))?;
    let others = [
        pooling.pooling_mode_cls_token,
        pooling.pooling_mode_max_tokens,
        pooling.pooling_mode_mean_sqrt_len_tokens,
    ];
    ensure!(
        pooling.pooling_mode_mean_tokens && others == [false; 3],
        "only pooling by the mean of tokens is known"
    );
    Ok(directory.join(&transformer.path))
}

/// The prompt that the directory names as the default, as in sentence-transformers; none if it names none.
fn prompt(directory: &Path) -> anyhow::Result<String> {
    let file = directory.join("config_sentence_transformers.json");
    let Prompts {
        mut prompts,
        default_prompt_name,
    } = if file.exists() {
        read(&file)?
    } else {
        Prompts::default()
    };
    let Some(name) = default_prompt_name else {
        return Ok(String::new());
    };
    prompts
        .remove(&name)
        .with_context(|| format!("{} has no prompt {name:?}", file.display()))
}

fn tokenizer(path: &Path, tokens_max: usize) -> anyhow::Result<Tokenizer> {
    let read = Tokenizer::from_file(path).map_err(anyhow::Error::msg);
    let mut tokenizer = read.with_context(|| format!("cannot read {}", path.display()))?;
    let truncation = TruncationParams {
        max_length: tokens_max,
        ..TruncationParams::default()
    };
    tokenizer
        .with_truncation(Some(truncation))
        .map_err(anyhow::Error::msg)?;
    // The file may ask for padding to its full length, which would make short texts as slow as the longest.
    let padding = tokenizer.get_padding().cloned().unwrap_or_default();
    tokenizer.with_padding(Some(PaddingParams {
        strategy: tokenizers::PaddingStrategy::BatchLongest,
        ..padding
    }));
    Ok(tokenizer)
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("cannot understand {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_none_or_of_another_kind_is_refused_with_a_word_of_why() {
        let folder = tempfile::tempdir().unwrap();
        let refusal =
            |folder: &Path| format!("{:#}", SentenceTransformer::open(folder).err().unwrap());
        assert!(refusal(folder.path()).contains("modules.json"));
        let modules = |kinds: &[&str]| {
            let modules: Vec<_> = kinds
                .iter()
                .map(|kind| serde_json::json!({"path": kind, "type": kind}))
                .collect();
            fs::write(
                folder.path().join("modules.json"),
                serde_json::to_vec(&modules).unwrap(),
            )
            .unwrap();
        };
        modules(&["a.Transformer", "a.Pooling", "a.Dense"]);
        assert!(refusal(folder.path()).contains("Dense"));
        modules(&["a.Transformer", "a.Pooling"]);
        fs::create_dir(folder.path().join("a.Pooling")).unwrap();
        let pooling = r#"{"pooling_mode_mean_tokens": false, "pooling_mode_cls_token": true}"#;
        fs::write(folder.path().join("a.Pooling/config.json"), pooling).unwrap();
        assert!(refusal(folder.path()).contains("mean"));
    }

    #[test]
    fn the_prompt_is_the_one_that_the_directory_names_as_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config_sentence_transformers.json");
        assert_eq!(prompt(folder.path()).unwrap(), "");
        fs::write(
            &file,
            r#"{"prompts": {"query": "query: "}, "default_prompt_name": null}"#,
        )
        .unwrap();
        assert_eq!(prompt(folder.path()).unwrap(), "");
        fs::write(
            &file,
            r#"{"prompts": {"query": "query: "}, "default_prompt_name": "query"}"#,
        )
        .unwrap();
        assert_eq!(prompt(folder.path()).unwrap(), "query: ");
        fs::write(&file, r#"{"prompts": {}, "default_prompt_name": "query"}"#).unwrap();
        assert!(format!("{:#}", prompt(folder.path()).unwrap_err()).contains("query"));
    }
}

/// Against the real model that `tests/routing/embedding_model.sh` fetches.
#[cfg(all(test, feature = "evaluation"))]
mod model_tests {
    use super::*;
    use crate::embedding::{Vectors, cosine};

    #[tokio::test]
    async fn vectors_are_those_that_the_authors_of_the_model_publish() {
        let directory = std::env::var("SWITCHBOARD_TEST_EMBEDDINGS");
        let directory = directory.expect(
            "SWITCHBOARD_TEST_EMBEDDINGS must name what tests/routing/embedding_model.sh prints",
        );
        let model: Arc<dyn Embedder> =
            Arc::new(SentenceTransformer::open(Path::new(&directory)).unwrap());
        let texts = [
            "The cat sits outside",
            "The dog plays in the garden",
            "A man is playing guitar",
            "A woman watches TV",
            "The new movie is awesome",
            "The new movie is so great",
        ];
        let wait = std::time::Duration::from_secs(60);
        let vectors = Vectors::new(1 << 20)
            .of(&model, &texts.map(Into::into), wait)
            .await
            .unwrap();
        for (pair, published) in vectors.chunks(2).zip([0.2838, -0.0327, 0.8939]) {
            let found = cosine(&pair[0], &pair[1]);
            assert!(
                (found - published).abs() < 0.001,
                "{found} instead of {published}"
            );
        }
    }
}

//! Embeddings from a sentence-transformers directory, computed in this process in a few
//! milliseconds per text.
//!
//! The directory holds a BERT (`config.json`, `model.safetensors`, `tokenizer.json`) and describes
//! the pooling of token vectors in `modules.json` and `1_Pooling/config.json`. A pooling that is
//! not implemented here is refused when the directory is opened, because other vectors would be
//! wrong without any error.

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

use super::{EmbeddingError, EmbeddingSource, ModelLanguages, language_fit::LanguageFit};

/// Batches that are computed at once; each one uses several cores.
const AT_ONCE_MAX: usize = 1;
/// Most tokens of a text, even if the directory allows more: the time grows with the square of the
/// length.
const TOKENS_MAX: usize = 256;
/// Texts of one pass through the model. They have similar lengths, so that little time is spent on
/// padding.
const PASS_TEXTS_MAX: usize = 16;

/// A sentence-transformers model in memory; clones share it.
#[derive(Clone)]
pub(crate) struct SentenceTransformer {
    name: String,
    model: Arc<BertEncoder>,
    turn: Arc<Semaphore>,
}

struct BertEncoder {
    bert: BertModel,
    tokenizer: Tokenizer,
    prompt: String,
    languages: LanguageFit,
}

/// Prefixes that some models need before every text (`config_sentence_transformers.json`), by
/// purpose.
#[derive(Default, Deserialize)]
struct PromptConfig {
    #[serde(default)]
    prompts: HashMap<String, String>,
    #[serde(default)]
    default_prompt_name: Option<String>,
}

/// One processing step of `modules.json`.
#[derive(Deserialize)]
struct ModuleEntry {
    path: PathBuf,
    r#type: String,
}

#[derive(Deserialize)]
struct TransformerLimits {
    max_seq_length: usize,
}

#[derive(Deserialize)]
struct PoolingConfig {
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
}

impl SentenceTransformer {
    /// Loads the directory. Fails if a file is missing or malformed, or if a module is not
    /// implemented.
    pub(crate) fn open(directory: &Path) -> anyhow::Result<Self> {
        let transformer = check_modules(directory)?;
        let config: Config = read_json(&transformer.join("config.json"))?;
        let limits = transformer.join("sentence_bert_config.json");
        let tokens_max = if limits.exists() {
            read_json::<TransformerLimits>(&limits)?.max_seq_length
        } else {
            TOKENS_MAX
        };
        let tokens_max = tokens_max
            .min(TOKENS_MAX)
            .min(config.max_position_embeddings);
        let tokenizer = load_tokenizer(&transformer.join("tokenizer.json"), tokens_max)?;
        let weights = transformer.join("model.safetensors");
        let weights =
            fs::read(&weights).with_context(|| format!("cannot read {}", weights.display()))?;
        let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)?;
        let bert = BertModel::load(weights, &config)
            .context("model.safetensors is not the BERT of config.json")?;
        Ok(Self {
            name: directory.display().to_string(),
            model: Arc::new(BertEncoder {
                bert,
                languages: LanguageFit::of(&tokenizer),
                tokenizer,
                prompt: default_prompt(directory)?,
            }),
            turn: Arc::new(Semaphore::new(AT_ONCE_MAX)),
        })
    }
}

#[async_trait]
impl EmbeddingSource for SentenceTransformer {
    fn name(&self) -> &str {
        &self.name
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let failed = |error: &dyn std::fmt::Display| EmbeddingError::Model(error.to_string());
        // The task owns the permit: if the caller stops waiting, the next batch must still not run
        // beside this one.
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

    fn languages(&self) -> ModelLanguages {
        match self.model.languages {
            LanguageFit::English { .. } => ModelLanguages::English,
            LanguageFit::Multilingual => ModelLanguages::Many,
        }
    }

    fn knows_language(&self, text: &str) -> bool {
        self.model.languages.knows(&self.model.tokenizer, text)
    }
}

impl BertEncoder {
    fn embed(&self, texts: &[String]) -> anyhow::Result<Vec<Vec<f32>>> {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|index| texts[*index].len());
        let mut vectors = vec![Vec::new(); texts.len()];
        for pass in order.chunks(PASS_TEXTS_MAX) {
            let together = pass
                .iter()
                .map(|index| format!("{}{}", self.prompt, texts[*index]))
                .collect();
            for (index, vector) in pass.iter().zip(self.embed_pass(together)?) {
                vectors[*index] = vector;
            }
        }
        Ok(vectors)
    }

    /// Returns the mean of the token vectors of each text without padding, not normalized.
    fn embed_pass(&self, texts: Vec<String>) -> anyhow::Result<Vec<Vec<f32>>> {
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

/// Returns the directory of the transformer. Fails unless the modules are a transformer, pooling by
/// mean and at most a normalization, which the cache applies to every vector anyway.
fn check_modules(directory: &Path) -> anyhow::Result<PathBuf> {
    let modules: Vec<ModuleEntry> = read_json(&directory.join("modules.json"))?;
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
    let pooling: PoolingConfig = read_json(&directory.join(&pooling.path).join("config.json"))?;
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

/// Returns the default prompt of the directory; empty if it names none.
fn default_prompt(directory: &Path) -> anyhow::Result<String> {
    let file = directory.join("config_sentence_transformers.json");
    let PromptConfig {
        mut prompts,
        default_prompt_name,
    } = if file.exists() {
        read_json(&file)?
    } else {
        PromptConfig::default()
    };
    let Some(name) = default_prompt_name else {
        return Ok(String::new());
    };
    prompts
        .remove(&name)
        .with_context(|| format!("{} has no prompt {name:?}", file.display()))
}

fn load_tokenizer(path: &Path, tokens_max: usize) -> anyhow::Result<Tokenizer> {
    let loaded = Tokenizer::from_file(path).map_err(anyhow::Error::msg);
    let mut tokenizer = loaded.with_context(|| format!("cannot read {}", path.display()))?;
    let truncation = TruncationParams {
        max_length: tokens_max,
        ..TruncationParams::default()
    };
    tokenizer
        .with_truncation(Some(truncation))
        .map_err(anyhow::Error::msg)?;
    // The file may demand padding to the full length, which would make short texts as slow as the
    // longest.
    let padding = tokenizer.get_padding().cloned().unwrap_or_default();
    tokenizer.with_padding(Some(PaddingParams {
        strategy: tokenizers::PaddingStrategy::BatchLongest,
        ..padding
    }));
    Ok(tokenizer)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("cannot understand {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_model_directory_is_refused_with_a_reason() {
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
    fn default_prompt_of_the_directory_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config_sentence_transformers.json");
        assert_eq!(default_prompt(folder.path()).unwrap(), "");
        fs::write(
            &file,
            r#"{"prompts": {"query": "query: "}, "default_prompt_name": null}"#,
        )
        .unwrap();
        assert_eq!(default_prompt(folder.path()).unwrap(), "");
        fs::write(
            &file,
            r#"{"prompts": {"query": "query: "}, "default_prompt_name": "query"}"#,
        )
        .unwrap();
        assert_eq!(default_prompt(folder.path()).unwrap(), "query: ");
        fs::write(&file, r#"{"prompts": {}, "default_prompt_name": "query"}"#).unwrap();
        assert!(format!("{:#}", default_prompt(folder.path()).unwrap_err()).contains("query"));
    }
}

/// Against the real model that `tests/routing/embedding_model.sh` fetches.
#[cfg(all(test, feature = "evaluation"))]
mod model_tests {
    use super::*;
    use crate::embedding::{EmbeddingCache, cosine};

    #[tokio::test]
    async fn vectors_match_the_published_reference_values() {
        let directory = std::env::var("SWITCHBOARD_TEST_EMBEDDINGS");
        let directory = directory.expect(
            "SWITCHBOARD_TEST_EMBEDDINGS must name what tests/routing/embedding_model.sh prints",
        );
        let model: Arc<dyn EmbeddingSource> =
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
        let vectors = EmbeddingCache::new(1 << 20)
            .embed_all(&model, &texts.map(Into::into), wait)
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

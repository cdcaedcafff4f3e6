//! The shared connection to Redis: multiplexed, opened in the background, restored after any
//! outage, with commands that fail fast.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use redis::{
    Client, Cmd, ConnectionInfo, FromRedisValue, IntoConnectionInfo, RedisError, RedisResult,
    ScriptInvocation,
    aio::{ConnectionManager, ConnectionManagerConfig, PubSub},
    io::tcp::TcpSettings,
};
use secrecy::ExposeSecret;

use crate::config::RedisConfig;

const RECONNECT_DELAY_MIN: Duration = Duration::from_millis(50);
const RECONNECT_DELAY_MAX: Duration = Duration::from_millis(500);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of commands that wait for the socket; the client's default of 50 stalls a busy
/// worker.
const PIPELINE_COMMANDS_MAX: usize = 1_024;
/// Timeout after which a silent peer is given up; the kernel's default is many minutes.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// Timeout after which a silent connection to a reachable peer is dropped, because the client would
/// keep it forever.
const SILENT_CONNECTION_MAX: Duration = Duration::from_secs(5);

/// A connection to Redis and the key prefix of the installation.
#[derive(Clone)]
pub(crate) struct RedisLink {
    client: Client,
    current: Arc<Mutex<CurrentConnection>>,
    command_timeout: Duration,
    prefix: String,
}

struct CurrentConnection {
    manager: ConnectionManager,
    answered_at: Instant,
}

/// An error of Redis. Its text contains no key, value or password.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RedisLinkError(pub(crate) String);

impl RedisLink {
    /// Opens the link. Redis need not be reachable yet.
    ///
    /// # Errors
    /// The URL is invalid.
    pub(crate) async fn connect(
        config: &RedisConfig,
        namespace: &str,
    ) -> Result<Self, RedisLinkError> {
        let command_timeout = Duration::from_millis(config.command_timeout_ms);
        // The client's own error would repeat the URL, which may contain a password.
        let info = config.url.expose_secret().into_connection_info();
        let info = info.map_err(|_| RedisLinkError("redis.url cannot be parsed".into()))?;
        let client = Client::open(with_tcp_settings(info))?;
        let current = Arc::new(Mutex::new(CurrentConnection::new(
            &client,
            command_timeout,
        )?));
        let prefix = if namespace.is_empty() {
            String::new()
        } else {
            format!("{namespace}:")
        };
        let link = Self {
            client,
            current,
            command_timeout,
            prefix,
        };
        // The connection is opened by its first user: better now than with the first reply.
        let _ = link.check().await;
        Ok(link)
    }

    /// Returns the full name of a key or channel of this installation.
    pub(crate) fn key(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    /// Returns the timeout of one command.
    pub(crate) fn command_timeout(&self) -> Duration {
        self.command_timeout
    }

    /// Fails if Redis does not respond.
    pub(crate) async fn check(&self) -> Result<(), RedisLinkError> {
        self.query(&redis::cmd("PING")).await
    }

    /// Runs a command. It must be safe to repeat, because the first one after an outage is
    /// repeated.
    pub(crate) async fn query<T: FromRedisValue>(
        &self,
        command: &Cmd,
    ) -> Result<T, RedisLinkError> {
        self.with_timeout(|mut manager: ConnectionManager| async move {
            match command.query_async(&mut manager).await {
                Err(error) if is_stale(&error) => command.query_async(&mut manager).await,
                result => result,
            }
        })
        .await
    }

    /// Runs a script by its hash and uploads it if Redis does not know it. It must be safe to
    /// repeat.
    pub(crate) async fn invoke<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, RedisLinkError> {
        self.with_timeout(|mut manager: ConnectionManager| async move {
            match script.invoke_async(&mut manager).await {
                Err(error) if is_stale(&error) => script.invoke_async(&mut manager).await,
                result => result,
            }
        })
        .await
    }

    /// Opens a connection that is subscribed to `channel`.
    pub(crate) async fn subscribe(&self, channel: &str) -> Result<PubSub, RedisLinkError> {
        let subscribe = async {
            let mut connection = self.client.get_async_pubsub().await?;
            connection.subscribe(channel).await?;
            Ok::<_, RedisLinkError>(connection)
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, subscribe).await {
            Ok(result) => result,
            Err(_) => Err(no_answer(CONNECT_TIMEOUT)),
        }
    }

    async fn with_timeout<T, F>(
        &self,
        work: impl FnOnce(ConnectionManager) -> F,
    ) -> Result<T, RedisLinkError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let manager = self.with_current(|current| current.manager.clone());
        let result = tokio::time::timeout(self.command_timeout, work(manager)).await;
        // The client has a timeout of its own of the same length; either may fire first.
        let is_silent = result.as_ref().map_or(true, |result| {
            result.as_ref().is_err_and(RedisError::is_timeout)
        });
        self.with_current(|current| {
            current.note_result(is_silent, &self.client, self.command_timeout)
        });
        match result {
            Ok(result) => Ok(result?),
            Err(_) => Err(no_answer(self.command_timeout)),
        }
    }

    fn with_current<T>(&self, work: impl FnOnce(&mut CurrentConnection) -> T) -> T {
        work(&mut self.current.lock())
    }
}

impl CurrentConnection {
    fn new(client: &Client, command_timeout: Duration) -> Result<Self, RedisLinkError> {
        let manager = ConnectionManager::new_lazy_with_config(
            client.clone(),
            manager_config(command_timeout),
        )?;
        Ok(Self {
            manager,
            answered_at: Instant::now(),
        })
    }

    fn note_result(&mut self, is_silent: bool, client: &Client, command_timeout: Duration) {
        if !is_silent {
            self.answered_at = Instant::now();
        } else if self.answered_at.elapsed() >= SILENT_CONNECTION_MAX
            && let Ok(fresh) = Self::new(client, command_timeout)
        {
            *self = fresh;
        }
    }
}

impl From<RedisError> for RedisLinkError {
    fn from(error: RedisError) -> Self {
        // Server errors can quote arguments; the code is sufficient.
        let code = error.code().unwrap_or_default();
        Self(format!("{} {code}", error.category()).trim_end().to_owned())
    }
}

fn no_answer(limit: Duration) -> RedisLinkError {
    RedisLinkError(format!("no answer within {} ms", limit.as_millis()))
}

/// Returns `true` if the connection turned out to be dead, which the first command after an outage
/// finds out.
fn is_stale(error: &RedisError) -> bool {
    error.is_connection_dropped() || (error.is_unrecoverable_error() && !error.is_timeout())
}

fn with_tcp_settings(info: ConnectionInfo) -> ConnectionInfo {
    let settings = TcpSettings::default().set_nodelay(true);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(UNACKNOWLEDGED_MAX);
    info.set_tcp_settings(settings)
}

fn manager_config(command_timeout: Duration) -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_number_of_retries(usize::MAX)
        .set_min_delay(RECONNECT_DELAY_MIN)
        .set_max_delay(RECONNECT_DELAY_MAX)
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(command_timeout))
        .set_pipeline_buffer_size(PIPELINE_COMMANDS_MAX)
}

/// Returns the address of Redis for tests.
#[cfg(test)]
#[cfg(feature = "real-services")]
pub(crate) fn test_config() -> RedisConfig {
    let url = std::env::var("SWITCHBOARD_TEST_REDIS")
        .expect("SWITCHBOARD_TEST_REDIS names the Redis to test with");
    RedisConfig {
        url: url.into(),
        command_timeout_ms: 5_000,
    }
}

/// Returns a namespace that no other test uses.
#[cfg(test)]
#[cfg(feature = "real-services")]
pub(crate) fn test_namespace() -> String {
    format!("test-{:032x}", rand::random::<u128>())
}

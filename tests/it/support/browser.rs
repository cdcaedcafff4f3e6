//! A real browser: the installed Chromium, driven through WebDriver (W3C) over HTTP. Tests serve
//! pages on origins of their own.

use std::{
    cell::RefCell,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use axum::{Router, response::Html};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Client, PATIENCE, Program, background, eventually, free_port};

/// Tests with browsers at the same time. A browser is a dozen processes, so that more of them only
/// make all tests wait for longer than they should.
const BROWSER_TESTS_MAX: usize = 3;
const SCRIPT_TIMEOUT_MS: u64 = 60_000;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A browser window that shares nothing with other windows and closes when dropped.
pub(crate) struct Browser {
    driver: Client,
    driver_port: u16,
    session: String,
    _permit: Arc<SemaphorePermit<'static>>,
}

/// A page served until the test process ends, under two host names and so on two origins.
pub(crate) struct Page {
    port: u16,
}

struct Driver {
    port: u16,
    _program: Program,
}

impl Browser {
    pub(crate) async fn open() -> Self {
        Self::open_in(
            json!({"binary": program("chromium-headless-shell")}),
            "--headless",
        )
        .await
    }

    /// Opens a window with these browser preferences, which only the whole browser has.
    pub(crate) async fn open_with(preferences: Value) -> Self {
        let options = json!({"binary": program("chromium"), "prefs": preferences});
        Self::open_in(options, "--headless=new").await
    }

    async fn open_in(mut options: Value, mode: &str) -> Self {
        let permit = permit_of_this_test().await;
        let driver_port = shared_driver().await;
        let driver = Client::new(&format!("http://127.0.0.1:{driver_port}"));
        // The pipe makes the browser end with its driver.
        let mut arguments = vec![
            mode,
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ];
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            // Chromium refuses to run as root with its sandbox, as in test containers.
            arguments.push("--no-sandbox");
        }
        options["args"] = json!(arguments);
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "timeouts": {"script": SCRIPT_TIMEOUT_MS},
            "goog:loggingPrefs": {"browser": "ALL"}
        }}});
        let value = value_of(&driver, "/session", &wanted).await;
        let session = value["sessionId"].as_str().unwrap().to_owned();
        Self {
            driver,
            driver_port,
            session,
            _permit: permit,
        }
    }

    /// Opens a window at a page.
    pub(crate) async fn at(url: &str) -> Self {
        let browser = Self::open().await;
        browser.visit(url).await;
        browser
    }

    /// Opens a page and waits until it is loaded.
    pub(crate) async fn visit(&self, url: &str) {
        self.command("url", &json!({ "url": url })).await;
    }

    /// Runs the body of an async function in the page with `input` and returns its result; panics
    /// if it throws.
    pub(crate) async fn run(&self, body: &str, input: Value) -> Value {
        let script = format!(
            "const [input, done] = arguments;
             (async () => {{ {body} }})().then(
                 value => done({{value: value === undefined ? null : value}}),
                 error => done({{error: String(error && error.stack || error)}}));"
        );
        let outcome = self
            .command("execute/async", &json!({"script": script, "args": [input]}))
            .await;
        assert!(
            outcome["error"].is_null(),
            "the page threw: {}\n{body}",
            outcome["error"]
        );
        outcome["value"].clone()
    }

    /// Sends a WebDriver command with a body.
    pub(crate) async fn command(&self, name: &str, body: &Value) -> Value {
        value_of(
            &self.driver,
            &format!("/session/{}/{name}", self.session),
            body,
        )
        .await
    }
}

impl Browser {
    /// Returns the handle of the current tab.
    pub(crate) async fn tab(&self) -> String {
        let answer = self
            .driver
            .get(&format!("/session/{}/window", self.session))
            .await;
        answer.json()["value"].as_str().unwrap().to_owned()
    }
}

/// Returns the path of a browser. The one without windows takes a third of the processor time to
/// start.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{name} is missing: run tests/services/install.sh edge"))
}

/// Waits until few other tests have browsers. All browsers of a test, which has a thread of its
/// own, share one permit: a test that waited for its second browser could wait for itself.
async fn permit_of_this_test() -> Arc<SemaphorePermit<'static>> {
    static PERMITS: Semaphore = Semaphore::const_new(BROWSER_TESTS_MAX);
    thread_local! {
        static HELD: RefCell<Weak<SemaphorePermit<'static>>> = const { RefCell::new(Weak::new()) };
    }
    if let Some(held) = HELD.with_borrow(Weak::upgrade) {
        return held;
    }
    let permit = Arc::new(PERMITS.acquire().await.unwrap());
    HELD.set(Arc::downgrade(&permit));
    permit
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Drop cannot await, and a failed test must not leave a browser behind.
        let address = format!("127.0.0.1:{}", self.driver_port);
        let Ok(mut connection) = TcpStream::connect(&address) else {
            return;
        };
        // The driver refuses requests to any other host, so that no page can drive it.
        let request = format!(
            "DELETE /session/{} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n",
            self.session
        );
        let _ = connection.set_read_timeout(Some(CLOSE_TIMEOUT));
        let _ = connection.write_all(request.as_bytes());
        let mut answer = [0; 64];
        let read = connection.read(&mut answer).unwrap_or_default();
        // Windows left open use up the memory after some hundred tests.
        let is_closed = answer[..read].starts_with(b"HTTP/1.1 200");
        assert!(
            is_closed || std::thread::panicking(),
            "not closed: {}",
            String::from_utf8_lossy(&answer[..read])
        );
    }
}

impl Page {
    /// Serves this document at every path.
    pub(crate) fn serve(html: &'static str) -> Self {
        Self::answer(Router::new().fallback(move || async move { Html(html) }))
    }

    pub(crate) fn answer(router: Router) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        background().spawn(async move {
            axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), router).await
        });
        Self { port }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the origin of the same page under the other host name.
    pub(crate) fn other_origin(&self) -> String {
        format!("http://localhost:{}", self.port)
    }
}

/// Returns the WebDriver process shared by all windows.
async fn shared_driver() -> u16 {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let port = free_port();
        Driver {
            port,
            _program: Program::start("chromedriver", |_| vec![format!("--port={port}")]),
        }
    });
    let client = Client::new(&format!("http://127.0.0.1:{}", driver.port));
    eventually("the browser's driver is ready", PATIENCE, async || {
        client.try_get("/status").await
    })
    .await;
    driver.port
}

async fn value_of(driver: &Client, path: &str, body: &Value) -> Value {
    let answer = driver.post(path, body).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.json()["value"].clone()
}

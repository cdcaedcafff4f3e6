//! Redis dies in the middle of replies and comes back with nothing.

use std::{path::PathBuf, process::Command, time::Duration};

use futures::future::join_all;
use serde_json::json;

use crate::support::{Organization, PATIENCE, Reply, Script, TestService, eventually, free_port};

/// A Redis of one test's own, which it may kill.
struct OwnRedis {
    directory: tempfile::TempDir,
    port: u16,
}

impl OwnRedis {
    fn start() -> Self {
        let redis = Self { directory: tempfile::tempdir().unwrap(), port: free_port() };
        redis.run("start");
        redis
    }

    /// SIGKILL: no goodbye to its clients.
    fn kill(&self) {
        let pid = std::fs::read_to_string(self.directory.path().join("pid")).unwrap();
        assert!(Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap().success());
    }

    fn run(&self, command: &str) {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/services/redis.sh");
        let mut run = Command::new(script);
        let status = run.arg(command).arg(self.directory.path()).arg(self.port.to_string()).status().unwrap();
        assert!(status.success(), "redis.sh {command}");
    }
}

impl Drop for OwnRedis {
    fn drop(&mut self) {
        self.run("stop");
    }
}

#[tokio::test]
async fn replies_arrive_whole_although_redis_dies_for_five_seconds_and_comes_back_empty() {
    let redis = OwnRedis::start();
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let service = TestService::start_with(&[("SWITCHBOARD__REDIS__URL", &url)]).await;
    let script = Script::counts(100, Duration::from_millis(100));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let urls = service.public_urls();
    let chats = (0..10).map(|number| {
        let client = organization.client_at(&urls[number % urls.len()]);
        let body = json!({"message": "go", "sessionId": format!("s{number}")});
        let agent = organization.shop().to_owned();
        async move { Reply::read(client.open_chat(&agent, &body).await).await }
    });
    let outage = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        redis.kill();
        tokio::time::sleep(Duration::from_secs(5)).await;
        redis.run("start");
    };
    let (replies, ()) = tokio::join!(join_all(chats), outage);
    for (number, reply) in replies.iter().enumerate() {
        assert_eq!(reply.complete(), script.text, "reply {number}");
        let history = organization.client().history(organization.shop(), &format!("s{number}")).await;
        assert_eq!(history["totalMessages"], 2, "{history}");
        assert_eq!(history["messages"][1]["content"], script.text);
    }
    organization.script(Script::says("back to normal"));
    eventually("new replies stream again", PATIENCE, async || {
        let reply = organization.client().chat(organization.shop(), "after", "hi").await;
        (reply.status == 200 && reply.ended_cleanly).then_some(())
    })
    .await;
}

//! nginx in front of the product.

use std::fs;

use super::{Client, PATIENCE, Program, eventually};

/// Starts nginx with these blocks in its `http` block, and waits until it answers at `url`. All
/// other settings have their defaults.
pub(crate) async fn start_nginx(blocks: &str, url: &str) -> Program {
    let configuration = format!(
        "daemon off; master_process off; pid nginx.pid;
         events {{ }}
         http {{
           access_log off;
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
           uwsgi_temp_path uwsgi; scgi_temp_path scgi;
           {blocks}
         }}"
    );
    let nginx = Program::start("nginx", |directory| {
        fs::write(directory.join("nginx.conf"), &configuration).unwrap();
        let directory = directory.to_str().unwrap();
        ["-p", directory, "-c", "nginx.conf", "-e", "stderr"]
            .map(str::to_owned)
            .to_vec()
    });
    let client = Client::new(url);
    eventually("nginx answers", PATIENCE, async || {
        client.try_get("/").await
    })
    .await;
    nginx
}

//! A raw TCP connection for bytes that HTTP libraries refuse to write.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use super::PATIENCE;

/// Smallest receive buffer of the kernel, in bytes.
const SMALL_WINDOW_BYTES: u32 = 4 << 10;

/// A TCP connection to the public port.
pub(crate) struct RawConnection {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// An HTTP/1.1 response as received.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    /// Status line and headers with their line ends.
    pub(crate) head: String,
    /// Body without chunk sizes.
    pub(crate) body: Vec<u8>,
}

impl RawConnection {
    /// Connects to the host of a URL.
    pub(crate) async fn open(url: &str) -> Self {
        let stream = TcpStream::connect(address(url)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    /// Connects with a small receive window, so that a server soon blocks on an unread response.
    pub(crate) async fn open_with_small_window(url: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(SMALL_WINDOW_BYTES).unwrap();
        let stream = socket.connect(address(url).parse().unwrap()).await.unwrap();
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    /// Writes all bytes; returns false if the other side has closed.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        timeout(PATIENCE, self.stream.write_all(bytes.as_ref()))
            .await
            .expect("the server reads")
            .is_ok()
    }

    /// Writes until the other side stops reading.
    pub(crate) async fn write_until_stalled(
        &mut self,
        bytes: impl AsRef<[u8]>,
        patience: Duration,
    ) {
        let _ = timeout(patience, self.stream.write_all(bytes.as_ref())).await;
    }

    /// Closes the writing half.
    pub(crate) async fn finish_writing(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Reads the next available bytes; empty at the end or after a reset.
    pub(crate) async fn read_some(&mut self) -> Vec<u8> {
        if !self.unread.is_empty() {
            return std::mem::take(&mut self.unread);
        }
        let mut buffer = vec![0; 16 << 10];
        let count = timeout(PATIENCE, self.stream.read(&mut buffer))
            .await
            .expect("the server writes")
            .unwrap_or(0);
        buffer.truncate(count);
        buffer
    }

    /// Reads to the end or reset of the connection; panics if it stays open.
    pub(crate) async fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = vec![];
        loop {
            match self.read_some().await {
                some if some.is_empty() => return bytes,
                some => bytes.extend(some),
            }
        }
    }

    /// Reads to the end and returns the bytes and true if the connection was reset.
    pub(crate) async fn read_to_break(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = std::mem::take(&mut self.unread);
        let ended = timeout(PATIENCE, self.stream.read_to_end(&mut bytes))
            .await
            .expect("the connection ends");
        (bytes, ended.is_err())
    }

    /// Reads an exact number of bytes.
    pub(crate) async fn read_exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![];
        while bytes.len() < count {
            match self.read_some().await {
                some if some.is_empty() => return None,
                some => bytes.extend(some),
            }
        }
        self.unread = bytes.split_off(count);
        Some(bytes)
    }

    /// Reads one response; `None` if the connection ended instead. Not for HEAD requests.
    pub(crate) async fn read_answer(&mut self) -> Option<RawAnswer> {
        let mut answer = self.read_head().await?;
        let length = answer
            .header("content-length")
            .map(|length| length.parse().unwrap());
        answer.body = match length {
            Some(length) => self.read_exactly(length).await?,
            None if answer.header("transfer-encoding").is_some() => self.read_chunks().await?,
            None => vec![],
        };
        Some(answer)
    }

    /// Reads the head of a response, which is all of a response to HEAD.
    pub(crate) async fn read_head(&mut self) -> Option<RawAnswer> {
        let head = self.read_through(b"\r\n\r\n").await?;
        let head = String::from_utf8(head).unwrap();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Some(RawAnswer {
            status: status.unwrap_or_else(|| panic!("no status: {head}")),
            head,
            body: vec![],
        })
    }

    /// Reads one chunk of a chunked body; empty at its end.
    pub(crate) async fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let line = String::from_utf8(self.read_through(b"\r\n").await?).unwrap();
        let size = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut chunk = self.read_exactly(size + 2).await?;
        chunk.truncate(size);
        Some(chunk)
    }

    async fn read_chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = vec![];
        loop {
            match self.read_chunk().await? {
                chunk if chunk.is_empty() => return Some(body),
                chunk => body.extend(chunk),
            }
        }
    }

    async fn read_through(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = vec![];
        loop {
            if let Some(start) = bytes.windows(mark.len()).position(|window| window == mark) {
                self.unread = bytes.split_off(start + mark.len());
                return Some(bytes);
            }
            match self.read_some().await {
                some if some.is_empty() => return None,
                some => bytes.extend(some),
            }
        }
    }
}

impl RawAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        lines
            .into_iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// Returns the body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

fn address(url: &str) -> &str {
    url.trim_start_matches("http://")
}

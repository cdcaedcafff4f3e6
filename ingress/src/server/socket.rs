//! Client sockets with control over how a connection ends. Closing with unread input resets the
//! connection, which can discard a response, and HTTP/1.0 clients take every orderly close for the
//! end of a complete reply.

use std::{
    io,
    net::Shutdown,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};

use crate::config::IngressConfig;

const TCP_KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// Maximum number of unread request bytes to discard after a response, such as a rejected upload.
const UNREAD_BYTES_MAX: usize = 2 << 20;
/// Maximum time of discarding unread bytes.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(2);
const UNREAD_BUFFER_BYTES: usize = 16 << 10;

/// A connection, shared by the HTTP layer and the code that closes it.
#[derive(Clone)]
pub(crate) struct ClientSocket(Arc<TcpStream>);

impl ClientSocket {
    /// Sets socket options: chunks are sent at once, and vanished clients are detected.
    pub(crate) fn configure(stream: TcpStream, config: &IngressConfig) -> Self {
        let socket = Self(Arc::new(stream));
        if let Err(error) = socket.set_options(config) {
            tracing::debug!(%error, "socket options not set");
        }
        socket
    }

    /// Makes every end except [`Self::close_orderly`] a reset, for clients that cannot detect a
    /// truncated response otherwise.
    pub(crate) fn reset_unless_closed(&self) {
        let _ = SockRef::from(&*self.0).set_linger(Some(Duration::ZERO));
    }

    /// Ends the connection orderly after a complete response.
    pub(crate) fn close_orderly(&self) {
        let _ = SockRef::from(&*self.0).set_linger(None);
        let _ = SockRef::from(&*self.0).shutdown(Shutdown::Write);
    }

    /// Gives the client time to stop sending and to read the response.
    pub(crate) async fn discard_unread(&self) {
        let _ = timeout(UNREAD_TIMEOUT, self.read_rest()).await;
    }

    async fn read_rest(&self) {
        let (mut buffer, mut read_bytes) = (vec![0; UNREAD_BUFFER_BYTES], 0);
        while read_bytes < UNREAD_BYTES_MAX && self.0.readable().await.is_ok() {
            match self.0.try_read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => read_bytes += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    fn set_options(&self, config: &IngressConfig) -> io::Result<()> {
        self.0.set_nodelay(true)?;
        let socket = SockRef::from(&*self.0);
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(TCP_KEEPALIVE_IDLE))?;
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(Some(Duration::from_millis(
            config.stalled_client_timeout_ms,
        )))?;
        #[cfg(not(target_os = "linux"))]
        let _ = config;
        Ok(())
    }

    fn poll_write_with(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match write(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.0.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result.map(drop)),
            }
        }
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match SockRef::from(&*self.0).shutdown(Shutdown::Write) {
            // The client has already closed the connection.
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    async fn pair() -> (TcpStream, ClientSocket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) = tokio::join!(
            TcpStream::connect(listener.local_addr().unwrap()),
            listener.accept()
        );
        (
            client.unwrap(),
            ClientSocket::configure(accepted.unwrap().0, &IngressConfig::default()),
        )
    }

    #[tokio::test]
    async fn accepted_socket_sends_at_once_and_detects_a_lost_client() {
        let (_client, socket) = pair().await;
        assert!(socket.0.nodelay().unwrap() && SockRef::from(&*socket.0).keepalive().unwrap());
        #[cfg(target_os = "linux")]
        assert_eq!(
            SockRef::from(&*socket.0).tcp_user_timeout().unwrap(),
            Some(Duration::from_secs(20))
        );
    }

    #[tokio::test]
    async fn response_arrives_while_the_client_is_still_sending() {
        let (mut client, mut socket) = pair().await;
        client.write_all(&[b'x'; 100_000]).await.unwrap();
        socket.write_all(b"refused").await.unwrap();
        let parting = async {
            socket.close_orderly();
            socket.discard_unread().await;
            drop(socket);
        };
        let reading = async {
            client.write_all(&[b'x'; 100_000]).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            drop(client);
            answer
        };
        let (answer, ()) = tokio::join!(reading, parting);
        assert_eq!(answer, "refused");
    }

    #[tokio::test]
    async fn socket_without_an_orderly_close_is_reset() {
        for (parts, breaks) in [(false, true), (true, false)] {
            let (mut client, mut socket) = pair().await;
            socket.reset_unless_closed();
            socket.write_all(b"half").await.unwrap();
            let mut answer = [0; 4];
            client.read_exact(&mut answer).await.unwrap();
            if parts {
                socket.close_orderly();
            }
            drop(socket);
            assert_eq!(
                client.read(&mut answer).await.is_err(),
                breaks,
                "parted: {parts}"
            );
        }
    }
}

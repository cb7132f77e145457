// SPDX-License-Identifier: MIT

use crate::rig::Options;
use std::future::Future;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\
                          Content-Length: 6\r\n\r\nhello\n";

fn serve<F>(options: &Options, session: fn(TcpStream) -> F)
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let accept = async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        println!("port {}", listener.local_addr().expect("address").port());
        loop {
            let (conn, _) = listener.accept().await.expect("accept");
            tokio::spawn(session(conn));
        }
    };
    let runtime = options.runtime();
    match options.workers {
        0 => runtime.block_on(accept),
        _ => runtime.block_on(async { tokio::spawn(accept).await.expect("task") }),
    }
}

async fn echo_session(mut conn: TcpStream) -> std::io::Result<()> {
    let mut buf = [0; 4096];
    loop {
        let n = conn.read(&mut buf).await?;
        if n == 0 {
            return Ok(());
        }
        conn.write_all(&buf[..n]).await?;
    }
}

/// A request ends with an empty line; no body is expected.
async fn hello_session(mut conn: TcpStream) -> std::io::Result<()> {
    let mut buf = [0; 4096];
    let mut filled = 0;
    while filled < buf.len() {
        let n = conn.read(&mut buf[filled..]).await?;
        if n == 0 {
            break;
        }
        filled += n;
        if buf[..filled].ends_with(b"\r\n\r\n") {
            filled = 0;
            conn.write_all(RESPONSE).await?;
        }
    }
    Ok(())
}

pub fn echo(options: &Options) {
    serve(options, echo_session)
}

pub fn hello(options: &Options) {
    serve(options, hello_session)
}

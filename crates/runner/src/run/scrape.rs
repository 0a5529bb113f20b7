//! The server of a run's metrics: HTTP for scrapes, each of which asks the hypervisor for a report.

use super::control::Asked;
use crate::metrics::{MEDIA_TYPE, text};
use crate::protocol::{Answer, Request};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Longest head of a request, in bytes.
const MAX_HEAD: u64 = 16 << 10;
/// Time that a client may take to ask and to read.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer to a request.
struct Response {
    status: &'static str,
    body: String,
}

/// Serves scrapes at `address`, one after another; each becomes a request for `take`, which says whether the run still goes on. Returns the
/// address with the port, which the host chooses where it was 0.
pub(super) fn listen(
    address: SocketAddr,
    take: impl Fn(Asked) -> bool + Send + 'static,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that is gone or slow misses its answer.
            let _ = serve(&stream, &take);
        }
    });
    Ok(address)
}

fn serve(mut stream: &TcpStream, take: &dyn Fn(Asked) -> bool) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(MAX_HEAD)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    // The head ends with an empty line (RFC 9112, 2.1).
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let Response { status, body } = respond(&first, take);
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn respond(line: &str, take: &dyn Fn(Asked) -> bool) -> Response {
    let mut words = line.split_whitespace();
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        (Some("GET"), "/metrics") => match report(take) {
            Some(body) => ("200 OK", body),
            None => (
                "503 Service Unavailable",
                String::from("the run is over, or the hypervisor gave no report\n"),
            ),
        },
        (Some("GET"), _) => (
            "404 Not Found",
            String::from("the metrics are at /metrics\n"),
        ),
        _ => ("405 Method Not Allowed", String::from("use GET\n")),
    };
    Response { status, body }
}

/// Text of a new report, if the run gives one.
fn report(take: &dyn Fn(Asked) -> bool) -> Option<String> {
    let (answer, answered) = channel();
    let line = String::from("stats");
    let request = Request::Command { line };
    if !take(Asked { request, answer }) {
        return None;
    }
    match answered.recv().ok()? {
        Answer::Command { report, .. } => report.map(|report| text(&report)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    fn fetch(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{request}\r\nHost: a\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn scrapes_get_a_new_report() {
        let take = |asked: Asked| {
            let Request::Command { line } = &asked.request else {
                return false;
            };
            assert_eq!(line, "stats");
            let report = Report {
                seconds: 2.5,
                vms: Vec::new(),
                harts: Vec::new(),
                own_memory: None,
            };
            let answer = Answer::Command {
                command: line.clone(),
                lines: Vec::new(),
                report: Some(Box::new(report)),
            };
            asked.answer.send(answer).is_ok()
        };
        let address = listen(([127, 0, 0, 1], 0).into(), take).unwrap();
        let scraped = fetch(address, "GET /metrics HTTP/1.1");
        let (head, body) = scraped.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("text/plain; version=0.0.4"), "{head}");
        assert!(body.contains("\npartita_uptime_seconds 2.5\n"), "{body}");
        for (request, status) in [
            ("GET / HTTP/1.1", "404"),
            ("POST /metrics HTTP/1.1", "405"),
            ("", "405"),
        ] {
            let answer = fetch(address, request);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answer}"
            );
        }
    }

    #[test]
    fn ended_runs_are_unavailable() {
        let address = listen(([127, 0, 0, 1], 0).into(), |_| false).unwrap();
        let answer = fetch(address, "GET /metrics HTTP/1.0");
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }
}

//! An example agent for the wasm adapter: it checks an issue out, comments on it
//! and closes it.
//!
//!     cargo build --release --target wasm32-wasip1
//!     selvage agent create Rusty --adapter wasm --config '{"module": "/path/to/wasm-rust.wasm"}'

mod host;

use host::{call, quote, Error, Json};

fn main() {
    match run() {
        Ok(n) => println!("closed {n} issue(s)"),
        Err(e) => {
            eprintln!("wasm-rust: {}: {}", e.code, e.message);
            std::process::exit(1);
        }
    }
}

fn run() -> Result<usize, Error> {
    let me = call("run.context", "{}")?;
    let mine = format!("{{\"assigneeAgentId\":{},\"status\":\"todo,in_progress\"}}", quote(&me.text("agentId")));
    let mut done = 0;
    for issue in call("issue.list", &mine)?.list() {
        match work(issue) {
            Ok(()) => done += 1,
            Err(e) if e.code == "Conflict" => println!("{} is held by another run", issue.text("identifier")),
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

fn work(issue: &Json) -> Result<(), Error> {
    let id = quote(&issue.text("id"));
    call("issue.checkout", &format!("{{\"id\":{id}}}"))?;
    let body = quote(&format!("Done in the sandbox, in Rust: {:?} has {} letters.", issue.text("title"), issue.text("title").len()));
    call("comment.create", &format!("{{\"id\":{id},\"body\":{body}}}"))?;
    call("issue.update", &format!("{{\"id\":{id},\"status\":\"done\"}}"))?;
    Ok(())
}

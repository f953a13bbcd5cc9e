//! Asks its host one thing and prints the answer, or ends with status 5:
//!
//!     cargo build --release --target wasm32-wasip1 --example ask
//!     … ask METHOD REQUEST

#[allow(dead_code)]
#[path = "../src/host.rs"]
mod host;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [.., method, request] = args.as_slice() else {
        eprintln!("ask METHOD REQUEST");
        std::process::exit(2);
    };
    match host::call(method, request) {
        Ok(answer) => println!("{answer:?}"),
        Err(e) => {
            eprintln!("{}: {}", e.code, e.message);
            std::process::exit(5);
        }
    }
}

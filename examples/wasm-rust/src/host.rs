//! What a Rust program needs to be an agent of the wasm adapter: the two
//! functions of the host and enough JSON to talk to it. See docs/sandbox-abi.md.

#[link(wasm_import_module = "selvage")]
extern "C" {
    #[link_name = "call"]
    fn host_call(method: *const u8, method_len: usize, request: *const u8, request_len: usize) -> usize;
    #[link_name = "take"]
    fn host_take(to: *mut u8, len: usize) -> usize;
}

/// A no of the host.
#[derive(Debug)]
pub struct Error {
    pub code: String,
    pub message: String,
}

/// Asks the host and returns the value of its answer.
pub fn call(method: &str, request: &str) -> Result<Json, Error> {
    let mut answer = Vec::new();
    unsafe {
        let n = host_call(method.as_ptr(), method.len(), request.as_ptr(), request.len());
        answer.resize(n, 0);
        let mut at = 0;
        while at < n {
            let got = host_take(answer.as_mut_ptr().add(at), n - at);
            if got == 0 {
                break;
            }
            at += got;
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let parsed = Json::parse(&text).ok_or_else(|| Error { code: "Failed".into(), message: "the answer is not JSON".into() })?;
    if let Some(e) = parsed.get("error") {
        return Err(Error { code: e.text("code"), message: e.text("message") });
    }
    Ok(parsed.get("ok").cloned().unwrap_or(Json::Null))
}

/// A JSON value; numbers stay as they are written.
#[derive(Clone, Debug)]
#[allow(dead_code)] // a guest of yours may look at numbers
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(s: &str) -> Option<Json> {
        let mut p = Parser { s: s.as_bytes(), at: 0 };
        let v = p.value(0)?;
        p.space();
        (p.at == p.s.len()).then_some(v)
    }

    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text of a field, or nothing.
    pub fn text(&self, key: &str) -> String {
        match self.get(key) {
            Some(Json::Text(s)) => s.clone(),
            _ => String::new(),
        }
    }

    pub fn list(&self) -> &[Json] {
        match self {
            Json::List(l) => l,
            _ => &[],
        }
    }
}

/// A text as JSON has it.
pub fn quote(s: &str) -> String {
    let mut o = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => o.push_str("\\\""),
            '\\' => o.push_str("\\\\"),
            c if (c as u32) < 0x20 => o.push_str(&format!("\\u{:04x}", c as u32)),
            c => o.push(c),
        }
    }
    o.push('"');
    o
}

struct Parser<'a> {
    s: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn space(&mut self) {
        while self.at < self.s.len() && self.s[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
    }

    fn eat(&mut self, c: u8) -> Option<()> {
        self.space();
        (self.s.get(self.at) == Some(&c)).then(|| self.at += 1)
    }

    fn word(&mut self, w: &str, v: Json) -> Option<Json> {
        self.s[self.at..].starts_with(w.as_bytes()).then(|| {
            self.at += w.len();
            v
        })
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > 64 {
            return None;
        }
        self.space();
        match *self.s.get(self.at)? {
            b'n' => self.word("null", Json::Null),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'"' => self.string().map(Json::Text),
            b'[' => {
                self.at += 1;
                let mut l = Vec::new();
                if self.eat(b']').is_some() {
                    return Some(Json::List(l));
                }
                loop {
                    l.push(self.value(depth + 1)?);
                    if self.eat(b']').is_some() {
                        return Some(Json::List(l));
                    }
                    self.eat(b',')?;
                }
            }
            b'{' => {
                self.at += 1;
                let mut o = Vec::new();
                if self.eat(b'}').is_some() {
                    return Some(Json::Object(o));
                }
                loop {
                    self.space();
                    let k = self.string()?;
                    self.eat(b':')?;
                    o.push((k, self.value(depth + 1)?));
                    if self.eat(b'}').is_some() {
                        return Some(Json::Object(o));
                    }
                    self.eat(b',')?;
                }
            }
            _ => {
                let from = self.at;
                while self.at < self.s.len() && b"+-.eE0123456789".contains(&self.s[self.at]) {
                    self.at += 1;
                }
                (self.at > from).then(|| Json::Number(String::from_utf8_lossy(&self.s[from..self.at]).into_owned()))
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        self.eat(b'"')?;
        let mut o = Vec::new();
        let mut units: Vec<u16> = Vec::new(); // of \u, which come in pairs beyond the basic plane
        loop {
            let c = *self.s.get(self.at)?;
            self.at += 1;
            if c == b'\\' && self.s.get(self.at) == Some(&b'u') {
                let hex = std::str::from_utf8(self.s.get(self.at + 1..self.at + 5)?).ok()?;
                units.push(u16::from_str_radix(hex, 16).ok()?);
                self.at += 5;
                continue;
            }
            if !units.is_empty() {
                o.extend(String::from_utf16_lossy(&units).into_bytes());
                units.clear();
            }
            match c {
                b'"' => return String::from_utf8(o).ok(),
                b'\\' => {
                    let e = *self.s.get(self.at)?;
                    self.at += 1;
                    o.push(match e {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'b' => 8,
                        b'f' => 12,
                        e => e,
                    });
                }
                c => o.push(c),
            }
        }
    }
}

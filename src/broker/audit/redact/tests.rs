//! Nothing secret is left in a record, and what is not secret stays readable.

use super::*;
use crate::broker::audit::Call;

fn redactor() -> Redactor {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let environment = Environment {
        pass: Vec::new(),
        set: vec![pair("BUILD_KEY", "set-by-policy"), pair("CI", "1"), pair("SHORT_KEY", "ab")],
        redact: words(&["*TOKEN*", "*SECRET*", "*KEY*", "*PASSWORD*"]),
    };
    let key = "-----BEGIN THING-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END THING-----";
    let operator = [pair("DEPLOY_TOKEN", "hunter2hunter2"), pair("HOME", "/home/operator"), pair("TLS_KEY", key)];
    Redactor::new("tester", &environment, &operator)
}

#[test]
fn a_command_line_keeps_all_but_its_secrets() {
    let cases = [
        // Known values, wherever they stand.
        ("echo hunter2hunter2", "echo <redacted:DEPLOY_TOKEN>"),
        ("echo xhunter2hunter2x | tee f", "echo x<redacted:DEPLOY_TOKEN>x | tee f"),
        ("make KIND=set-by-policy", "make KIND=<redacted:BUILD_KEY>"),
        ("printf MIIEvQIBADANBgkqhkiG9w0B > k", "printf <redacted:TLS_KEY> > k"),
        // Assignments.
        ("GITHUB_TOKEN=abc make", "GITHUB_TOKEN=<redacted:GITHUB_TOKEN> make"),
        ("github_token='a b c' make", "github_token=<redacted:github_token> make"),
        (
            "export AWS_SECRET_ACCESS_KEY=\"x y\"; ls",
            "export AWS_SECRET_ACCESS_KEY=<redacted:AWS_SECRET_ACCESS_KEY>; ls",
        ),
        ("docker run -e DB_PASSWORD=pw img", "docker run -e DB_PASSWORD=<redacted:DB_PASSWORD> img"),
        ("bash -c 'TOKEN=abc; rm -rf /'", "bash -c 'TOKEN=<redacted:TOKEN>; rm -rf /'"),
        // Flags.
        ("login --password geheim --user me", "login --password <redacted:password> --user me"),
        ("login --password=geheim", "login --password=<redacted:password>"),
        ("x --api-key k1 --verbose", "x --api-key <redacted:api-key> --verbose"),
        ("x --token \"a b\" y", "x --token \"<redacted:token>\" y"),
        ("x --no-password --verbose", "x --no-password --verbose"),
        ("sshpass -p geheim ssh host", "sshpass -p <redacted:password> ssh host"),
        ("mysql -uroot -pgeheim db", "mysql -uroot -p<redacted:password> db"),
        ("curl -u me:geheim http://h/", "curl -u me:<redacted:password> http://h/"),
        ("openssl rsa -passin pass:geheim -in f", "openssl rsa -passin <redacted:passin> -in f"),
        // Headers.
        ("curl -H 'Authorization: Bearer abc.def' h", "curl -H 'Authorization:<redacted:Authorization>' h"),
        ("curl -H \"X-Api-Key: abc\" h", "curl -H \"X-Api-Key:<redacted:X-Api-Key>\" h"),
        ("echo Authorization: Basic dXNlcg== x", "echo Authorization: Basic <redacted:authorization> x"),
        ("curl -H 'Cookie: a=b; c=d' h", "curl -H 'Cookie:<redacted:Cookie>' h"),
        // URLs.
        ("git clone https://me:pw@host/x.git", "git clone https://<redacted:userinfo>@host/x.git"),
        ("curl 'https://h/?a=1&access_token=abc'", "curl 'https://h/?a=1&access_token=<redacted:access_token>'"),
        ("curl https://h/?api_key=abc#x", "curl https://h/?api_key=<redacted:api_key>#x"),
        // JSON.
        ("curl -d '{\"password\":\"a b\",\"n\":1}' h", "curl -d '{\"password\":\"<redacted:password>\",\"n\":1}' h"),
        ("curl -d \"{\\\"token\\\":\\\"abc\\\"}\" h", "curl -d \"{\\\"token\\\":\\\"<redacted:token>\\\"}\" h"),
        // Keys by their looks.
        ("echo ghp_0123456789abcdefghijABCDEFGHIJ", "echo <redacted:key>"),
        ("echo AKIAABCDEFGHIJKLMNOP x", "echo <redacted:key> x"),
        // Nothing to hide.
        ("ls -la /tmp && make -j2 CI=1", "ls -la /tmp && make -j2 CI=1"),
        ("sort -t: -k2 /etc/passwd | grep 'a=b'", "sort -t: -k2 /etc/passwd | grep 'a=b'"),
        ("git commit --author 'A <a@b>' -m 'x: y'", "git commit --author 'A <a@b>' -m 'x: y'"),
        ("curl https://h:8080/a?b=c", "curl https://h:8080/a?b=c"),
        ("", ""),
    ];
    let redactor = redactor();
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(text, expected)| {
            let shown = redactor.text(text);
            let same = shown.eq_ignore_ascii_case(expected);
            (!same).then(|| format!("\n  {text}\n  {shown}\n  {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

#[test]
fn words_are_looked_at_as_words() {
    let redactor = redactor();
    let show = |argv: &[&str]| redactor.argv(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    assert_eq!(show(&["env", "MY_TOKEN=two words", "make"]), ["env", "MY_TOKEN=<redacted:MY_TOKEN>", "make"]);
    assert_eq!(show(&["x", "--password", "two words"]), ["x", "--password", "<redacted:password>"]);
    assert_eq!(show(&["sh", "-c", "TOKEN=a; rm -rf /"]), ["sh", "-c", "TOKEN=<redacted:TOKEN>; rm -rf /"]);
    assert_eq!(show(&["x", "hunter2hunter2", ""]), ["x", "<redacted:DEPLOY_TOKEN>", ""]);
    assert_eq!(show(&["ls", "--token"]), ["ls", "--token"]);
}

fn call(subject: Subject) -> Call {
    Call { subject, ..Call::new("c", "run") }
}

#[test]
fn values_that_a_call_brings_are_hidden_from_then_on() {
    let redactor = redactor();
    let mut first = call(Subject::Command("deploy with-this-one".into()));
    first.env = vec![("MY_SECRET".into(), "with-this-one".into()), ("PLAIN".into(), "visible".into())];
    first.cwd = Some("/x/with-this-one".into());
    let record = redactor.clean(first);
    assert_eq!(record.command.as_deref(), Some("deploy <redacted:MY_SECRET>"));
    assert_eq!(record.cwd.as_deref(), Some("/x/<redacted:MY_SECRET>"));
    assert_eq!(record.env, ["MY_SECRET", "PLAIN"]);
    let later = redactor.clean(call(Subject::Paths(vec!["/a/with-this-one".into(), "visible".into()])));
    assert_eq!(later.paths, Some(vec!["/a/<redacted:MY_SECRET>".into(), "visible".into()]));
    for number in 0..1000 {
        redactor.learn(&[("A_TOKEN".into(), format!("filler-{number}"))]);
    }
    assert_eq!(redactor.learned.read().expect("no panic").len(), LEARNED);
    assert_eq!(redactor.text("hunter2hunter2"), "<redacted:DEPLOY_TOKEN>", "the operator's are never forgotten");
}

#[test]
fn a_record_is_bounded_and_says_what_it_left_out() {
    let redactor = redactor();
    let sizes = |record: &Record| serde_json::to_string(record).expect("JSON").len();
    let long = redactor.clean(call(Subject::Command("x".repeat(1 << 20))));
    assert_eq!(long.command.as_ref().map(String::len), Some(RECORD_BYTES));
    assert_eq!(long.omitted_bytes, (1 << 20) - RECORD_BYTES as u64);
    let many = redactor.clean(call(Subject::Argv(vec![String::new(); 16_384])));
    assert!(sizes(&many) < 3 * RECORD_BYTES, "{}", sizes(&many));
    let mut named = call(Subject::Nothing);
    named.env = (0..10_000).map(|n| (format!("NAME_{n}"), String::new())).collect();
    let named = redactor.clean(named);
    assert!(named.omitted_bytes > 0 && sizes(&named) < 3 * RECORD_BYTES, "{}", sizes(&named));
    // A secret at the very place where the text is cut.
    for at in RECORD_BYTES - 20..RECORD_BYTES + 20 {
        let text = format!("{}hunter2hunter2 {}", "y".repeat(at), "z".repeat(1 << 18));
        let shown = redactor.clean(call(Subject::Command(text))).command.expect("a command");
        assert!(!shown.contains("hunter2"), "cut at {at}");
    }
}

#[test]
fn a_long_secret_is_hidden_whole_even_where_the_text_is_cut() {
    let secret: String = (0..40_000).map(|n| char::from(b'a' + (n * n % 26) as u8)).collect();
    let redactor = redactor();
    redactor.learn(&[("BIG_TOKEN".into(), secret.clone())]);
    let shown = redactor.text(&format!("before {secret} after"));
    assert_eq!(shown, "before <redacted:BIG_TOKEN>");
}

#[test]
fn random_text_never_panics_and_never_shows_a_known_value() {
    let pieces = [
        "hunter2hunter2",
        "'",
        "\"",
        "\\",
        "=",
        ":",
        " ",
        "--token",
        "-c",
        "TOKEN=",
        "é",
        "🦀",
        "\n",
        "https://",
        "@",
        "&",
        "?",
        "Authorization",
        "Bearer",
        "{\"key\":\"",
        "}",
        "sshpass",
        "-p",
        "\u{1b}[0m",
        "\u{202e}",
        ";",
        "eyJ",
        "a",
        "\0",
    ];
    let redactor = redactor();
    let mut state = 7_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for _ in 0..20_000 {
        let text: String = (0..next() % 12).map(|_| pieces[next() % pieces.len()]).collect();
        let shown = redactor.text(&text);
        assert!(!shown.contains("hunter2hunter2"), "{text:?}: {shown:?}");
        let words: Vec<String> = (0..next() % 5).map(|_| pieces[next() % pieces.len()].to_owned()).collect();
        assert!(!redactor.argv(&words).concat().contains("hunter2hunter2"), "{words:?}");
    }
}

#[test]
fn a_hostile_text_cannot_make_looking_slow() {
    let redactor = redactor();
    let start = std::time::Instant::now();
    for piece in ["\"a\":\"", "a=", "https://a@", "'", "-c ", "TOKEN=", "eyJaaaaaaaa.", "((", "\\\"x\\\":\\\""] {
        redactor.text(&piece.repeat(LOOKED_AT));
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

//! What a writer does not read, whoever asks: a table of it, and what needs a stage.

use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use lavra_writer::{Access, Config, Limits, Names};
use serde_json::{Value, json};

use crate::support::{Answer, Site, World, from_url, inline};

/// Names that have these addresses, others each time if there are several sets.
#[derive(Debug)]
struct Told {
    sets: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Told {
    fn new(sets: &[&[&str]]) -> Arc<Self> {
        let parse = |set: &&[&str]| set.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self { sets: sets.iter().map(parse).collect(), asked: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Names for Told {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let time = self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.sets[time.min(self.sets.len() - 1)].clone())
    }
}

async fn strict() -> World {
    let mut world = World::on_duckdb().await;
    world.start_with(Config { access: Access::default(), ..World::config() }).await;
    world
}

/// Refused when the order comes.
async fn refused_at_once(url: &str) {
    let world = strict().await;
    let (status, answer) = world.post(&from_url("ads", url, "")).await;
    assert_eq!(status, 422, "{url}: {answer}");
    assert!(answer["message"].as_str().unwrap().starts_with("source.url"), "{answer}");
}

/// Refused when the name is looked up.
async fn refused_by_name(sets: &[&[&str]]) {
    let mut world = World::on_duckdb().await;
    let config = Config { access: Access::default(), ..World::config() };
    world.start_as(config, Told::new(sets), true).await;
    let job = world.run(&from_url("ads", "http://data.example.org/x", "")).await;
    assert_eq!(
        (&job["status"], &job["error_code"]),
        (&json!("failed"), &json!("ERROR400")),
        "{job}"
    );
    let said = job["error_message"].as_str().unwrap();
    assert!(said.contains("internal address"), "{said}");
}

macro_rules! urls {
    ($($name:ident: $url:literal,)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            refused_at_once($url).await;
        })*
    };
}

urls! {
    loopback: "http://127.0.0.1/x",
    loopback_elsewhere: "http://127.8.9.1/x",
    loopback_v6: "http://[::1]/x",
    private_10: "http://10.0.0.1/x",
    private_172: "https://172.16.5.5/x",
    private_192: "http://192.168.0.1:8080/x",
    link_local: "http://169.254.169.254/latest/meta-data/",
    link_local_v6: "http://[fe80::1]/x",
    carrier_grade_nat: "http://100.64.0.1/x",
    unique_local_v6: "http://[fd00::1]/x",
    v4_mapped: "http://[::ffff:127.0.0.1]/x",
    v4_mapped_in_hex: "http://[::ffff:7f00:1]/x",
    nat64: "http://[64:ff9b::7f00:1]/x",
    six_to_four: "http://[2002:7f00:1::]/x",
    unspecified: "http://0.0.0.0/x",
    unspecified_v6: "http://[::]/x",
    decimal_host: "http://2130706433/x",
    octal_host: "http://0177.0.0.1/x",
    hexadecimal_host: "http://0x7f.1/x",
    short_host: "http://127.1/x",
    user_in_the_url: "http://user@example.org/x",
    password_in_the_url: "https://user:marker@example.org/x",
    file_url: "file:///etc/passwd",
    gopher_url: "gopher://example.org/x",
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_a_private_address() {
    refused_by_name(&[&["10.0.0.7"]]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_two_addresses_of_which_one_is_private() {
    refused_by_name(&[&["93.184.216.34", "192.168.1.1"]]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn localhost_by_its_name() {
    let world = strict().await;
    let job = world.run(&from_url("ads", "http://localhost/x", "")).await;
    assert!(job["error_message"].as_str().unwrap().contains("internal address"), "{job}");
}

/// 127.0.0.1 may be asked here, 127.0.0.2 may not.
async fn redirected(to: impl Fn(&str) -> String, names: Arc<dyn Names>) -> (Value, Site, Site) {
    let inside = Site::serve_on("127.0.0.2:0", |_, _| Answer::ok(r#"[{"id":"stolen"}]"#)).await;
    let place = to(&inside.address.port().to_string());
    let outside = Site::serve(move |_, _| Answer::redirect(place.clone())).await;
    let mut world = World::on_duckdb().await;
    world.start_as(World::config(), names, true).await;
    let job = world.run(&from_url("ads", &outside.url("/x"), "")).await;
    assert_eq!(job["status"], "failed", "{job}");
    assert_eq!(world.count("public.ads").await, 0);
    assert!(inside.requests().is_empty(), "the inside was asked");
    (job, outside, inside)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_loopback() {
    let names = Told::new(&[&["127.0.0.1"]]);
    let (job, ..) = redirected(|port| format!("http://127.0.0.2:{port}/y"), names).await;
    assert!(job["error_message"].as_str().unwrap().contains("internal address"), "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_a_name_of_loopback() {
    let names = Told::new(&[&["127.0.0.2"]]);
    let (job, ..) = redirected(|port| format!("http://rebound.example.org:{port}/y"), names).await;
    assert!(job["error_message"].as_str().unwrap().contains("internal address"), "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_a_file() {
    redirected(|_| "file:///etc/passwd".into(), Told::new(&[&["127.0.0.1"]])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_without_an_end_and_headers_for_another_host() {
    let mut world = World::on_duckdb().await;
    world.start_as(World::config(), Told::new(&[&["127.0.0.1"]]), true).await;
    let round = Site::serve(|_, _| Answer::redirect("/again")).await;
    let job = world.run(&from_url("ads", &round.url("/x"), "")).await;
    assert!(job["error_message"].as_str().unwrap().contains("more than 3 times"), "{job}");
    assert_eq!(round.requests().len(), 4);

    let second = Site::serve(|_, _| Answer::ok(r#"[{"id":"a"}]"#)).await;
    let place = second.url("/y");
    let first = Site::serve(move |_, _| Answer::redirect(place.clone())).await;
    let mut order = from_url("ads", &first.url("/x"), "");
    order["source"]["headers"] = json!({ "Authorization": "Bearer marker-0003" });
    assert_eq!(world.run(&order).await["status"], "completed");
    assert!(first.requests()[0].contains("marker-0003"));
    assert!(!second.requests()[0].contains("marker-0003"), "another host was told the header");
}

/// A name that is harmless when it is looked at and not when it is connected to.
#[tokio::test(flavor = "multi_thread")]
async fn rebinding_between_check_and_connect() {
    let outside = Site::serve(|_, _| Answer::ok(r#"[{"id":"a"}]"#)).await;
    let port = outside.address.port();
    let inside = Site::serve_on(&format!("127.0.0.2:{port}"), |_, _| Answer::ok("[]")).await;
    let names = Told::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let mut world = World::on_duckdb().await;
    world.start_as(World::config(), Arc::clone(&names) as Arc<dyn Names>, true).await;
    let order = from_url("ads", &format!("http://data.example.org:{port}/x"), "");
    assert_eq!(world.run(&order).await["status"], "completed");
    assert_eq!(names.asked.load(Ordering::SeqCst), 1, "what was judged is what is connected to");
    let job = world.run(&order).await;
    assert_eq!(job["status"], "failed", "and it is judged each time: {job}");
    assert!(inside.requests().is_empty(), "the inside was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_listed() {
    let mut world = World::on_duckdb().await;
    let mut config = World::config();
    config.access.hosts = vec!["bucket.example.org".into()];
    world.start_with(config).await;
    let (status, answer) = world.post(&from_url("ads", "https://other.example.org/x", "")).await;
    assert_eq!(status, 422, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("allow_hosts"), "{answer}");
}

fn of_file(path: &str) -> Value {
    let mut order = from_url("ads", "", "");
    order["source"] = json!({ "type": "file", "path": path });
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn files_outside_the_directories() {
    let mut world = World::on_duckdb().await;
    let root = world.directory.path().to_owned();
    let (inside, outside) = (root.join("inside"), root.join("outside"));
    std::fs::create_dir_all(inside.join("deep")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(inside.join("deep/good.json"), r#"[{"id":"good"}]"#).unwrap();
    std::fs::write(outside.join("bad.json"), r#"[{"id":"bad"}]"#).unwrap();
    std::fs::write(root.join("inside-too.json"), r#"[{"id":"bad"}]"#).unwrap();
    std::os::unix::fs::symlink(outside.join("bad.json"), inside.join("link.json")).unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("way")).unwrap();
    let mut config = World::config();
    config.access.directories = vec![inside.clone()];
    world.start_with(config).await;
    let absolute = inside.join("deep/good.json").display().to_string();
    for good in ["deep/good.json", "deep/../deep/good.json", &absolute] {
        let job = world.run(&of_file(good)).await;
        assert_eq!(job["status"], "completed", "{good}: {job}");
    }
    let far = outside.join("bad.json").display().to_string();
    for bad in [
        &far,
        "../outside/bad.json",
        "../inside-too.json",
        "link.json",
        "way/bad.json",
        "deep",
        "nothing.json",
        "/etc/passwd",
        "/proc/self/environ",
        "",
    ] {
        let (status, answer) = world.post(&of_file(bad)).await;
        if status == 422 && bad.is_empty() {
            continue;
        }
        let job = world.end_of(answer["job_id"].as_str().unwrap()).await;
        assert_eq!(job["error_code"], "ERROR400", "{bad}: {job}");
        assert!(job["error_message"].as_str().unwrap().contains("not below a directory"), "{job}");
    }
    assert_eq!(json!(world.ask("SELECT id FROM public.ads").await), json!([["good"]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_where_no_directory_was_opened() {
    let world = strict().await;
    let (status, answer) = world.post(&of_file("/etc/passwd")).await;
    assert_eq!(status, 422, "{answer}");
}

async fn served(body: Vec<u8>, encoding: Option<&'static str>, limits: Limits) -> (World, Value) {
    let site = Site::serve(move |_, _| {
        let answer = Answer::ok(body.clone());
        match encoding {
            None => answer,
            Some(encoding) => answer.with("Content-Encoding", encoding),
        }
    })
    .await;
    let mut world = World::on_duckdb().await;
    world.start_with(Config { limits, ..World::config() }).await;
    let job = world.run(&from_url("ads", &site.url("/x"), "")).await;
    (world, job)
}

/// Spaces, a thousand times as many as there are bytes on the wire.
fn bomb() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(b"[").unwrap();
    for _ in 0..64 {
        encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    encoder.write_all(b"]").unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gzip_bomb() {
    let bomb = bomb();
    assert!((64 << 20) / bomb.len() > 900);
    let (_, job) = served(bomb, Some("gzip"), Limits::default()).await;
    assert_eq!(job["error_code"], "ERROR400", "{job}");
    assert!(job["error_message"].as_str().unwrap().contains("bomb"), "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_long() {
    let body = format!("[{}]", "1,".repeat(5000) + "1").into_bytes();
    let limits = Limits { bytes: 5000, ..Limits::default() };
    let (_, job) = served(body.clone(), None, limits).await;
    assert!(job["error_message"].as_str().unwrap().contains("longer than 5000 bytes"), "{job}");
    let packed = zstd::encode_all(body.as_slice(), 3).unwrap();
    let limits = Limits { unpacked_bytes: 5000, ..Limits::default() };
    let (_, job) = served(packed, Some("zstd"), limits).await;
    assert!(job["error_message"].as_str().unwrap().contains("5000 bytes when unpacked"), "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_with_too_many_rows() {
    let limits = Limits { rows: 100, ..Limits::default() };
    let (_, job) = served(format!("[{}1]", "1,".repeat(100)).into_bytes(), None, limits).await;
    assert!(job["error_message"].as_str().unwrap().contains("more than 100 elements"), "{job}");
}

/// Not the job fails, but the element.
#[tokio::test(flavor = "multi_thread")]
async fn a_depth_of_ten_thousand_and_a_number_of_a_hundred_thousand_digits() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let long = "7".repeat(100_000);
    let huge = "x".repeat(2 << 20);
    let body = format!(
        r#"[{{"id":"a"}},{{"id":"b","x":{deep}}},{{"id":"c","x":{long}}},{deep},{{"id":"d","x":"{huge}"}},{{"id":"e"}}]"#
    );
    let (world, job) = served(body.into_bytes(), None, Limits::default()).await;
    assert_eq!(job["status"], "partial", "{}", job["progress"]);
    let errors: Vec<&str> = job["failed_items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["error"].as_str().unwrap())
        .collect();
    for (error, words) in
        errors.iter().zip(["64 deep", "100000 characters", "not an object", "1048576 are allowed"])
    {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(errors.len(), 4);
    assert_eq!(
        json!(world.ask("SELECT id FROM public.ads ORDER BY id").await),
        json!([["a"], ["e"]])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn identifiers_with_quotes() {
    let world = strict().await;
    for (field, value) in [
        ("table", "ads\"; DROP TABLE public.ads; --"),
        ("table", "ads'"),
        ("schema", "public\".\"ads"),
        ("conflict_key", "id\") DO NOTHING; --"),
        ("table", "a\u{0}b"),
        ("table", "a".repeat(64).as_str()),
    ] {
        let mut order = inline("ads", &json!([{ "id": "a" }]));
        order["config"][field] = json!(value);
        let (status, answer) = world.post(&order).await;
        assert_eq!(status, 422, "{value}: {answer}");
    }
    assert_eq!(world.count("public.ads").await, 0);
}

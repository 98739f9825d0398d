//! Files that an export puts into a bucket.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{complete, run, said, world};
use crate::program::{Place, Running, port, until};

#[test]
fn an_export_goes_to_a_bucket() {
    let (world, place) = (world(&["--scale", "0.02"]), Place::on_duckdb());
    let summary = complete(&place, &run(&world.base, &[]));
    let python = std::env::var("LAVRA_TEST_PYTHON").expect("run it by cargo xtask test");
    let port = port().to_string();
    let server = Command::new(&python)
        .args(["-m", "moto.server", "--host", "127.0.0.1", "--port", &port])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Running(server);
    let endpoint = format!("http://127.0.0.1:{port}");
    let variables = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT", &endpoint),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    let boto = |script: &str| {
        let script = format!(
            "import boto3, json; s3 = boto3.client('s3', endpoint_url='{endpoint}'); {script}"
        );
        let output = Command::new(&python).args(["-c", &script]).envs(variables).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let made = until(Duration::from_secs(60), || boto("s3.create_bucket(Bucket='lake')"));
    assert!(made.is_some(), "no bucket");
    for format in ["parquet", "csv", "jsonl"] {
        let args = [
            "extract",
            "export",
            "pncp",
            "--out",
            "s3://lake/raw/pncp",
            "--format",
            format,
            "--json",
        ];
        let output = place.command(&args).envs(variables).output().unwrap();
        assert!(output.status.success(), "{format}: {}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["rows"], summary["records"], "{report}");
    }
    let listed = boto(
        "print(json.dumps([[o['Key'], o['Size']] for o in s3.list_objects_v2(Bucket='lake')['Contents']]))",
    );
    let listed: Vec<(String, u64)> = serde_json::from_str(&listed.unwrap()).unwrap();
    let keys: Vec<&str> = listed.iter().map(|(key, _)| key.as_str()).collect();
    let key = "raw/pncp/contratacoes_publicacao/month=2025-03/contratacoes_publicacao-2025-03";
    assert_eq!(keys, ["csv", "jsonl", "parquet"].map(|format| format!("{key}.{format}")));
    assert!(listed.iter().all(|(_, size)| *size > 1000), "{listed:?}");
    let lines = boto(&format!(
        "print(len(s3.get_object(Bucket='lake', Key='{key}.jsonl')['Body'].read().splitlines()))"
    ));
    assert_eq!(lines.unwrap().trim(), summary["records"].to_string());
}

//! What a scrape found, as the file that writers read: `{"ads":[…]}`, records as they came.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use lavra_extract::records::records;
use lavra_tasks::Artefacts;

use crate::ask::Trouble;
use crate::disk::{self, Disk};
use crate::model::{Blame, Code, JobId};
use crate::plan::Plan;
use crate::scrape::Harvest;

/// The most ads that a job's answer brings along.
pub(crate) const FEW: u64 = 100;

/// Writes the results whole, and puts them where writers find them. Returns how many ads there are.
pub(crate) async fn store(
    disk: Disk,
    bucket: Option<Artefacts>,
    id: JobId,
    plan: Plan,
    harvest: Harvest,
) -> Result<u64, Trouble> {
    let lost = |error: &dyn std::fmt::Display| {
        Trouble::new(Code::Error400, Blame::Storage, format!("the results: {error}"))
    };
    let path = match bucket {
        Some(_) => disk.job(&id).join("results.json"),
        None => disk.result(&id),
    };
    let (few, written) = (disk.few(&id), path.clone());
    let ads = tokio::task::spawn_blocking(move || write(&written, &few, &plan, &harvest))
        .await
        .map_err(|error| lost(&error))?
        .map_err(|error| lost(&error))?;
    if let Some(bucket) = bucket.filter(|_| ads > 0) {
        let key = format!("{id}/{}", disk::results_name(&id));
        bucket.put_file(&key, "application/json", &path).await.map_err(|error| refused(&error))?;
        let _only_space = tokio::fs::remove_file(&path).await;
    }
    Ok(ads)
}

fn refused(error: &lavra_tasks::Error) -> Trouble {
    let is_refusal = matches!(
        error,
        lavra_tasks::Error::Artefact {
            source: object_store::Error::PermissionDenied { .. }
                | object_store::Error::Unauthenticated { .. },
            ..
        }
    );
    let code = if is_refusal { Code::Error401 } else { Code::Error400 };
    // What the store says has its address in it, which may be signed.
    let text = if is_refusal { "it refuses the credentials" } else { "it did not take them" };
    tracing::warn!(%error, "results could not be stored");
    Trouble::new(code, Blame::Storage, format!("the results, in the bucket: {text}"))
}

fn write(path: &Path, few: &Path, plan: &Plan, harvest: &Harvest) -> io::Result<u64> {
    if harvest.ads == 0 {
        return Ok(0);
    }
    disk::make_room(path)?;
    let unfinished = disk::unfinished(path);
    let mut to = BufWriter::new(disk::create(&unfinished)?);
    to.write_all(b"{\"ads\":")?;
    let ads = list(&mut to, plan, harvest)?;
    to.write_all(b"}")?;
    let file: File = to.into_inner().map_err(io::IntoInnerError::into_error)?;
    disk::settle(&file, &unfinished, path)?;
    if ads <= FEW {
        let unfinished = disk::unfinished(few);
        let mut to = disk::create(&unfinished)?;
        list(&mut to, plan, harvest)?;
        disk::settle(&to, &unfinished, few)?;
    }
    Ok(ads)
}

/// The records, one page in memory at a time.
fn list(to: &mut impl Write, plan: &Plan, harvest: &Harvest) -> io::Result<u64> {
    let mut ads = 0;
    to.write_all(b"[")?;
    for page in &harvest.pages {
        let body = std::fs::read_to_string(page)?;
        for record in records(&body, &plan.source, &plan.endpoint) {
            if ads == harvest.ads {
                break;
            }
            if ads > 0 {
                to.write_all(b",")?;
            }
            to.write_all(record.text.as_bytes())?;
            ads += 1;
        }
    }
    to.write_all(b"]")?;
    Ok(ads)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second page is a pipe, so that the writing stands still before it for as long as we like: whoever
    /// kills the process then leaves this.
    #[test]
    fn results_have_their_name_when_all_of_them_are_written() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let page =
            |id: u8| format!(r#"{{"ads":[{{"id":{id}}}],"paging":{{"total":2,"pages":2}}}}"#);
        let (path, few, pages) = (at("below/results.json"), at("few.json"), [at("1"), at("2")]);
        std::fs::write(&pages[0], page(1)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pages[1]).status().unwrap();
        assert!(made.success());
        let source = crate::ads().unwrap();
        let plan = Plan::least(&source, &source.endpoints[0]);
        let harvest = Harvest { pages: pages.to_vec(), ads: 2 };
        let seen = std::thread::scope(|scope| {
            let writing = scope.spawn(|| write(&path, &few, &plan, &harvest));
            // It opens when the other side does.
            let mut pipe = File::options().write(true).open(&pages[1]).unwrap();
            let seen = [path.exists(), disk::unfinished(&path).exists()];
            std::fs::rename(&pages[1], at("pipe")).unwrap();
            std::fs::write(&pages[1], page(2)).unwrap();
            pipe.write_all(page(2).as_bytes()).unwrap();
            drop(pipe);
            assert_eq!(writing.join().unwrap().unwrap(), 2);
            seen
        });
        assert_eq!(seen, [false, true]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"ads":[{"id":1},{"id":2}]}"#);
        assert_eq!(std::fs::read_to_string(&few).unwrap(), r#"[{"id":1},{"id":2}]"#);
        assert!(!disk::unfinished(&path).exists() && !disk::unfinished(&few).exists());
    }
}

//! Missions in bulk: a range of days cut into pieces, times media types, times languages; or a file.

use jiff::civil::{Date, Weekday};
use jiff::{Span, ToSpan};
use lavra_db::Clock;

use crate::error::{Error, Result};
use crate::model::{MediaType, MissionId};
use crate::store::NewMission;
use crate::words::words;

/// The most missions that one request makes.
pub const MOST: usize = 100_000;
const LANGUAGES: usize = 50;

words!(
    /// How a range of days is cut.
    Every {
        Day = "day",
        /// From Monday to Sunday.
        Week = "week",
        Month = "month",
        /// Not at all.
        Range = "range",
    }
);

/// What missions there should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub from: Date,
    pub to: Date,
    pub every: Every,
    pub media_types: Vec<MediaType>,
    /// A mission for each; several languages of one mission are one of them.
    pub languages: Vec<Vec<String>>,
}

/// The missions that are wanted, each once.
pub fn missions(wanted: &Wanted, clock: &Clock) -> Result<Vec<NewMission>> {
    if wanted.from > wanted.to {
        let (from, to) = (wanted.from, wanted.to);
        let text = format!("from {from} to {to} is no time: it ends before it begins");
        return Err(Error::Invalid(text));
    }
    if wanted.media_types.is_empty() {
        return Err(invalid("no media type: all, video or image"));
    }
    let languages: Vec<Vec<String>> =
        wanted.languages.iter().map(|set| checked(set)).collect::<Result<_>>()?;
    if languages.is_empty() {
        return Err(invalid("no language: say for which, as in pt or en"));
    }
    let pieces = pieces(wanted.from, wanted.to, wanted.every)?;
    let count = pieces.len() * wanted.media_types.len() * languages.len();
    if count > MOST {
        return Err(invalid(&format!("these are {count} missions; at most {MOST} at once")));
    }
    let mut all = Vec::with_capacity(count);
    for (date_start, date_end) in pieces {
        for media_type in &wanted.media_types {
            for languages in &languages {
                all.push(NewMission {
                    id: MissionId::new(clock),
                    date_start,
                    date_end,
                    media_type: *media_type,
                    languages: languages.clone(),
                });
            }
        }
    }
    Ok(all)
}

fn pieces(from: Date, to: Date, every: Every) -> Result<Vec<(Date, Date)>> {
    let mut pieces = Vec::new();
    let mut first = from;
    while first <= to {
        let last = last_of(first, every, to).min(to);
        pieces.push((first, last));
        if pieces.len() > MOST {
            return Err(invalid(&format!("more than {MOST} pieces")));
        }
        match last.checked_add(1.day()) {
            Ok(next) => first = next,
            Err(_) => break,
        }
    }
    Ok(pieces)
}

/// The last day of the piece that begins here.
fn last_of(first: Date, every: Every, to: Date) -> Date {
    let days = |count: i64| first.checked_add(Span::new().days(count)).unwrap_or(Date::MAX);
    match every {
        Every::Day => first,
        Every::Week => days(i64::from(Weekday::Sunday.since(first.weekday()))),
        Every::Month => first.last_of_month(),
        Every::Range => to,
    }
}

/// The languages of one mission: sorted, each once, so that the same set is the same mission.
fn checked(languages: &[String]) -> Result<Vec<String>> {
    let mut checked = Vec::with_capacity(languages.len());
    for language in languages {
        let text = language.as_str();
        let parts: Vec<&str> = text.split(['-', '_']).collect();
        let is_word = |part: &&str| {
            (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        let begins = parts.first().is_some_and(|part| {
            (2..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphabetic())
        });
        if !begins || !parts.iter().all(is_word) {
            return Err(invalid(&format!("{text:?} is no language: as in pt, en or pt-BR")));
        }
        checked.push(text.to_owned());
    }
    checked.sort();
    checked.dedup();
    if checked.is_empty() {
        return Err(invalid("a mission without a language"));
    }
    if checked.len() > LANGUAGES {
        return Err(invalid(&format!("{} languages of one mission", checked.len())));
    }
    Ok(checked)
}

/// Missions of a CSV file with the columns `date_start`, `date_end`, `media_type` and `languages`
/// (several with a space, `;` or `|` in between). Mistakes are told with their lines, all at once.
pub fn from_csv(text: &str, clock: &Clock) -> Result<Vec<NewMission>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| invalid(&error.to_string()))?.clone();
    let column = |name: &str| {
        headers.iter().position(|header| header == name).ok_or_else(|| {
            invalid(&format!(
                "the first line has no column {name}: date_start,date_end,media_type,languages"
            ))
        })
    };
    let (start, end) = (column("date_start")?, column("date_end")?);
    let (media, languages) = (column("media_type")?, column("languages")?);
    let mut missions = Vec::new();
    let mut mistakes = Vec::new();
    for record in reader.records() {
        let read = record.map_err(|error| error.to_string()).and_then(|record| {
            let line = record.position().map_or(0, csv::Position::line);
            let field = |at: usize| record.get(at).unwrap_or_default();
            row(field(start), field(end), field(media), field(languages), clock)
                .map_err(|error| format!("line {line}: {error}"))
        });
        match read {
            Ok(mission) => missions.push(mission),
            Err(mistake) => mistakes.push(mistake),
        }
        if missions.len() > MOST {
            return Err(invalid(&format!("more than {MOST} missions in one file")));
        }
    }
    if !mistakes.is_empty() {
        let more = mistakes.len().saturating_sub(20);
        mistakes.truncate(20);
        let rest = if more > 0 { format!("\nand {more} more") } else { String::new() };
        return Err(invalid(&format!("{}{rest}", mistakes.join("\n"))));
    }
    Ok(missions)
}

fn row(start: &str, end: &str, media: &str, languages: &str, clock: &Clock) -> Result<NewMission> {
    let day = |text: &str| -> Result<Date> {
        text.parse().map_err(|_| invalid(&format!("{text:?} is no day: as in 2025-01-31")))
    };
    let (date_start, date_end) = (day(start)?, day(end)?);
    if date_start > date_end {
        return Err(invalid(&format!("from {date_start} to {date_end}: ends before it begins")));
    }
    let media_type =
        media.parse().map_err(|error: crate::UnknownWord| invalid(&error.to_string()))?;
    let words: Vec<String> = languages
        .split([' ', ';', '|', ','])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    let languages = checked(&words)?;
    Ok(NewMission { id: MissionId::new(clock), date_start, date_end, media_type, languages })
}

fn invalid(text: &str) -> Error {
    Error::Invalid(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn clock() -> Clock {
        Clock::simulated(Timestamp::UNIX_EPOCH)
    }

    fn wanted(from: &str, to: &str, every: Every) -> Wanted {
        Wanted {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            every,
            media_types: vec![MediaType::All],
            languages: vec![vec!["pt".into()]],
        }
    }

    fn days(wanted: &Wanted) -> Vec<(String, String)> {
        let made = missions(wanted, &clock()).unwrap();
        made.iter().map(|m| (m.date_start.to_string(), m.date_end.to_string())).collect()
    }

    #[test]
    fn a_range_is_cut_by_day_week_month_or_not_at_all() {
        assert_eq!(days(&wanted("2025-01-01", "2025-01-31", Every::Day)).len(), 31);
        let weeks = days(&wanted("2025-01-01", "2025-01-14", Every::Week));
        let named = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            weeks,
            [
                named("2025-01-01", "2025-01-05"),
                named("2025-01-06", "2025-01-12"),
                named("2025-01-13", "2025-01-14")
            ]
        );
        let months = days(&wanted("2024-01-15", "2024-03-10", Every::Month));
        assert_eq!(
            months,
            [
                named("2024-01-15", "2024-01-31"),
                named("2024-02-01", "2024-02-29"),
                named("2024-03-01", "2024-03-10")
            ]
        );
        assert_eq!(days(&wanted("2024-01-15", "2024-03-10", Every::Range)).len(), 1);
    }

    #[test]
    fn media_types_and_languages_multiply_and_the_same_set_is_the_same() {
        let mut all = wanted("2025-01-01", "2025-01-02", Every::Day);
        all.media_types = vec![MediaType::Video, MediaType::Image];
        all.languages = vec![vec!["pt".into()], vec!["en".into(), "pt".into(), "en".into()]];
        let made = missions(&all, &clock()).unwrap();
        assert_eq!(made.len(), 8);
        assert_eq!(made[1].languages, ["en", "pt"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |wanted: &Wanted| missions(wanted, &clock()).unwrap_err().to_string();
        let good = wanted("2025-01-02", "2025-01-01", Every::Day);
        assert!(refused(&good).contains("ends before it begins"));
        let good = wanted("2025-01-01", "2025-01-01", Every::Day);
        assert!(refused(&Wanted { media_types: vec![], ..good.clone() }).contains("media type"));
        assert!(refused(&Wanted { languages: vec![], ..good.clone() }).contains("language"));
        for word in ["", "p", "português", "pt BR", "pt--BR", "'; DROP"] {
            let languages = vec![vec![word.to_owned()]];
            assert!(refused(&Wanted { languages, ..good.clone() }).contains("language"), "{word}");
        }
        let long = wanted("0001-01-01", "9999-12-31", Every::Day);
        assert!(refused(&long).contains("100000"));
    }

    #[test]
    fn a_file_is_read_and_its_mistakes_are_told_by_line() {
        let text = "date_start,date_end,media_type,languages\n\
                    2025-01-01,2025-01-31,video,pt en\n2025-02-01,2025-02-28,all,pt;es\n";
        let read = from_csv(text, &clock()).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].languages, ["en", "pt"]);
        let bad = "date_start,date_end,media_type,languages\n2025-01-01,2025-01-31,gif,pt\n\
                   2025-02-30,2025-02-28,all,pt\n2025-01-01,2025-01-02,all,\n";
        let error = from_csv(bad, &clock()).unwrap_err().to_string();
        for part in ["line 2: \"gif\"", "line 3: \"2025-02-30\"", "line 4: a mission without"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(from_csv("a,b\n1,2\n", &clock()).unwrap_err().to_string().contains("date_start"));
    }
}

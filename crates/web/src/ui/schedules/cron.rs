//! A cron line in words.
//!
//! The usual lines are said as people say them; one that is not is left to its signs, which the page
//! shows beside its next times anyway.

use crate::ui::texts::Language;

/// What a field of a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Any,
    /// Every so many, from the first on.
    Every(u16),
    /// In their order.
    These(Vec<u16>),
}

/// What the line means, where it is a usual one.
pub(super) fn in_words(line: &str, language: Language) -> Option<String> {
    let line = nickname(line.trim());
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else { return None };
    let minute = field(minute, 0, 59, &[])?;
    let hour = field(hour, 0, 23, &[])?;
    let day = field(day, 1, 31, &[])?;
    let month = field(month, 1, 12, &MONTHS)?;
    // Sunday is 0 and 7.
    let weekday = match field(weekday, 0, 7, &WEEKDAYS)? {
        Field::These(days) => {
            let mut days: Vec<u16> = days.into_iter().map(|day| day % 7).collect();
            days.sort_unstable();
            days.dedup();
            Field::These(days)
        }
        other => other,
    };
    let is_english = language == Language::English;
    let time = if is_english { english_time(&minute, &hour) } else { time(&minute, &hour) }?;
    let is_daily = matches!((&day, &weekday), (Field::Any, Field::Any));
    let is_often = !matches!(hour, Field::These(_));
    let mut parts = Vec::new();
    if is_daily && !is_often && month == Field::Any {
        parts.push(if is_english { "every day".to_owned() } else { "todo dia".to_owned() });
    }
    parts.push(time);
    parts.extend(days(&day, &weekday, is_english)?);
    parts.extend(months(&month, is_english)?);
    Some(parts.join(" "))
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

fn nickname(line: &str) -> &str {
    match line {
        "@hourly" => "0 * * * *",
        "@daily" | "@midnight" => "0 0 * * *",
        "@weekly" => "0 0 * * 0",
        "@monthly" => "0 0 1 * *",
        "@yearly" | "@annually" => "0 0 1 1 *",
        other => other,
    }
}

/// `*`, `*/5`, `1,3,5-7`; names stand for numbers from `least` on.
fn field(text: &str, least: u16, most: u16, names: &[&str]) -> Option<Field> {
    if text == "*" || text == "?" {
        return Some(Field::Any);
    }
    let value = |text: &str| {
        let known = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let value = match known {
            Some(place) => place as u16 + least,
            None => text.parse().ok()?,
        };
        (least..=most).contains(&value).then_some(value)
    };
    if let Some(step) = text.strip_prefix("*/") {
        let step: u16 = step.parse().ok().filter(|step| *step > 0)?;
        return Some(if step == 1 { Field::Any } else { Field::Every(step) });
    }
    let mut values = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            Some((from, to)) => values.extend(value(from)?..=value(to)?),
            None => values.push(value(part)?),
        }
    }
    values.sort_unstable();
    values.dedup();
    (!values.is_empty()).then_some(Field::These(values))
}

fn time(minute: &Field, hour: &Field) -> Option<String> {
    Some(match (minute, hour) {
        (Field::Any, Field::Any) => "a cada minuto".into(),
        (Field::Every(step), Field::Any) => format!("a cada {step} minutos"),
        (Field::These(minutes), Field::Any) => {
            let word = if minutes.len() == 1 { "no minuto" } else { "nos minutos" };
            format!("a cada hora, {word} {}", list(minutes, "e"))
        }
        (Field::These(minutes), Field::Every(step)) if minutes.len() == 1 => {
            format!("a cada {step} horas, no minuto {}", minutes[0])
        }
        (Field::These(minutes), Field::These(hours)) => {
            format!("às {}", join(&clocks(minutes, hours)?, "e"))
        }
        _ => return None,
    })
}

fn english_time(minute: &Field, hour: &Field) -> Option<String> {
    Some(match (minute, hour) {
        (Field::Any, Field::Any) => "every minute".into(),
        (Field::Every(step), Field::Any) => format!("every {step} minutes"),
        (Field::These(minutes), Field::Any) => {
            let word = if minutes.len() == 1 { "minute" } else { "minutes" };
            format!("every hour, at {word} {}", list(minutes, "and"))
        }
        (Field::These(minutes), Field::Every(step)) if minutes.len() == 1 => {
            format!("every {step} hours, at minute {}", minutes[0])
        }
        (Field::These(minutes), Field::These(hours)) => {
            format!("at {}", join(&clocks(minutes, hours)?, "and"))
        }
        _ => return None,
    })
}

/// The times of a day, if they are few enough to be named.
fn clocks(minutes: &[u16], hours: &[u16]) -> Option<Vec<String>> {
    const FEW: usize = 6;
    if minutes.len() * hours.len() > FEW {
        return None;
    }
    let of_hour =
        |hour: &u16| minutes.iter().map(|minute| format!("{hour:02}:{minute:02}")).collect();
    Some(hours.iter().flat_map::<Vec<String>, _>(of_hour).collect())
}

#[expect(clippy::option_option, reason = "nothing to say is not the same as not knowing how to")]
fn days(day: &Field, weekday: &Field, is_english: bool) -> Option<Option<String>> {
    let and = if is_english { "and" } else { "e" };
    let of_month = |days: &[u16]| match (is_english, days.len()) {
        (true, _) => format!("on day {} of the month", list(days, and)),
        (false, 1) => format!("no dia {} do mês", days[0]),
        (false, _) => format!("nos dias {} do mês", list(days, and)),
    };
    Some(match (day, weekday) {
        (Field::Any, Field::Any) => None,
        (Field::These(days), Field::Any) => Some(of_month(days)),
        (Field::Any, Field::These(days)) => Some(of_week(days, is_english)),
        // Either is enough.
        (Field::These(days), Field::These(weekdays)) => {
            let or = if is_english { "or" } else { "ou" };
            Some(format!("{} {or} {}", of_month(days), of_week(weekdays, is_english)))
        }
        (Field::Every(_), _) | (_, Field::Every(_)) => return None,
    })
}

fn of_week(days: &[u16], is_english: bool) -> String {
    const ENGLISH: [&str; 7] =
        ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    const PORTUGUESE: [&str; 7] = [
        "aos domingos",
        "às segundas",
        "às terças",
        "às quartas",
        "às quintas",
        "às sextas",
        "aos sábados",
    ];
    if days == [1, 2, 3, 4, 5] {
        return if is_english { "from Monday to Friday" } else { "de segunda a sexta" }.to_owned();
    }
    let names = if is_english { ENGLISH } else { PORTUGUESE };
    let chosen: Vec<String> = days.iter().map(|day| names[usize::from(*day)].to_owned()).collect();
    if is_english { format!("on {}", join(&chosen, "and")) } else { join(&chosen, "e") }
}

#[expect(clippy::option_option, reason = "nothing to say is not the same as not knowing how to")]
fn months(month: &Field, is_english: bool) -> Option<Option<String>> {
    const ENGLISH: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const PORTUGUESE: [&str; 12] = [
        "janeiro",
        "fevereiro",
        "março",
        "abril",
        "maio",
        "junho",
        "julho",
        "agosto",
        "setembro",
        "outubro",
        "novembro",
        "dezembro",
    ];
    Some(match month {
        Field::Any => None,
        Field::Every(_) => return None,
        Field::These(months) => {
            let names = if is_english { ENGLISH } else { PORTUGUESE };
            let chosen: Vec<String> =
                months.iter().map(|month| names[usize::from(*month - 1)].to_owned()).collect();
            let (word, and) = if is_english { ("in", "and") } else { ("em", "e") };
            Some(format!("{word} {}", join(&chosen, and)))
        }
    })
}

fn list(numbers: &[u16], and: &str) -> String {
    join(&numbers.iter().map(u16::to_string).collect::<Vec<_>>(), and)
}

/// `a`, `a and b`, `a, b and c`.
fn join(parts: &[String], and: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {and} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_lines_are_said_as_people_say_them() {
        for (line, portuguese, english) in [
            ("17 3 * * *", "todo dia às 03:17", "every day at 03:17"),
            ("* * * * *", "a cada minuto", "every minute"),
            ("*/5 * * * *", "a cada 5 minutos", "every 5 minutes"),
            ("0 * * * *", "a cada hora, no minuto 0", "every hour, at minute 0"),
            ("5,35 * * * *", "a cada hora, nos minutos 5 e 35", "every hour, at minutes 5 and 35"),
            ("0 */6 * * *", "a cada 6 horas, no minuto 0", "every 6 hours, at minute 0"),
            (
                "30 8,12,18 * * 1-5",
                "às 08:30, 12:30 e 18:30 de segunda a sexta",
                "at 08:30, 12:30 and 18:30 from Monday to Friday",
            ),
            ("0 4 * * SUN,7", "às 04:00 aos domingos", "at 04:00 on Sunday"),
            (
                "0 4 1,15 jan,JUL *",
                "às 04:00 nos dias 1 e 15 do mês em janeiro e julho",
                "at 04:00 on day 1 and 15 of the month in January and July",
            ),
            (
                "0 4 1 * 1,3",
                "às 04:00 no dia 1 do mês ou às segundas e às quartas",
                "at 04:00 on day 1 of the month or on Monday and Wednesday",
            ),
            ("@weekly", "às 00:00 aos domingos", "at 00:00 on Sunday"),
        ] {
            assert_eq!(in_words(line, Language::Portuguese).as_deref(), Some(portuguese), "{line}");
            assert_eq!(in_words(line, Language::English).as_deref(), Some(english), "{line}");
        }
    }

    #[test]
    fn lines_that_are_unusual_or_wrong_have_no_words() {
        for line in [
            "",
            "* * * *",
            "0 0 0 * * *",
            "0 0 L * *",
            "0 0 * * 5#2",
            "61 * * * *",
            "1-0 * * * *",
            "*/0 * * * *",
            "a b c d e",
            "0-59 0-23 * * *",
            "0 0 */2 * *",
            "99999999999 * * * *",
        ] {
            assert_eq!(in_words(line, Language::English), None, "{line}");
        }
    }
}

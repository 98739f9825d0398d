//! The heat map: a row per endpoint, a column per month, each cell a task of the plan.

use std::collections::{BTreeMap, BTreeSet};

use lavra_extract::Month;
use lavra_extract::model::{Cell, ExtractionId, Status};

use super::say;
use crate::ui::format::Format;
use crate::ui::texts::{Extractions as Words, Language};

/// What of the cells is meant.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) status: Option<Status>,
    /// A part of an endpoint's name, in small letters.
    pub(super) endpoint: String,
}

#[derive(Debug, Default)]
pub(super) struct Grid {
    /// Each year with how many of its months there are.
    pub(super) years: Vec<(i16, usize)>,
    /// The months as the table names them, and whether a year begins with it.
    pub(super) months: Vec<Head>,
    pub(super) rows: Vec<Row>,
}

#[derive(Debug)]
pub(super) struct Head {
    pub(super) name: &'static str,
    pub(super) begins_year: bool,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) endpoint: String,
    pub(super) places: Vec<Place>,
}

/// A place in a row.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) task: Option<Shown>,
    /// Over so many months: the task of a year takes all of its months.
    pub(super) span: usize,
    pub(super) begins_year: bool,
}

#[derive(Debug)]
pub(super) struct Shown {
    pub(super) slug: &'static str,
    /// The sign of its state, and how much is there of what is not complete.
    pub(super) text: String,
    /// All of it in words.
    pub(super) title: String,
    pub(super) href: String,
    /// It is not in the state that is asked for.
    pub(super) is_other: bool,
}

const PORTUGUESE: [&str; 12] =
    ["jan", "fev", "mar", "abr", "mai", "jun", "jul", "ago", "set", "out", "nov", "dez"];
const ENGLISH: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// How the cells of a source, which come by name and date, are shown.
#[derive(Clone, Copy)]
pub(super) struct Maker<'a> {
    pub(super) source: &'a str,
    pub(super) language: Language,
    pub(super) t: &'static Words,
    pub(super) format: &'a Format,
    /// Whether the tasks of an endpoint are of a year each.
    pub(super) is_yearly: &'a dyn Fn(&str) -> bool,
}

impl Maker<'_> {
    pub(super) fn grid(&self, cells: &[Cell], filter: &Filter) -> Grid {
        let named = |cell: &&Cell| cell.endpoint_name.to_lowercase().contains(&filter.endpoint);
        let cells: Vec<&Cell> = cells.iter().filter(named).collect();
        let months: BTreeSet<Month> = cells.iter().map(|cell| Month::of(cell.data_date)).collect();
        let mut years: Vec<(i16, usize)> = Vec::new();
        let mut heads = Vec::with_capacity(months.len());
        let month_names = match self.language {
            Language::Portuguese => &PORTUGUESE,
            Language::English => &ENGLISH,
        };
        for month in &months {
            let begins_year = years.last().is_none_or(|(year, _)| *year != month.year());
            match years.last_mut().filter(|_| !begins_year) {
                Some((_, count)) => *count += 1,
                None => years.push((month.year(), 1)),
            }
            let place = usize::from(month.first().month().unsigned_abs()) - 1;
            heads.push(Head { name: month_names[place], begins_year });
        }
        let rows = cells.chunk_by(|one, other| one.endpoint_name == other.endpoint_name);
        let is_meant = |row: &&[&Cell]| {
            filter.status.is_none_or(|status| row.iter().any(|cell| cell.status == status))
        };
        let rows = rows.filter(is_meant).map(|row| self.row(row, &months, filter));
        let mut rows: Vec<Row> = rows.collect();
        rows.sort_by(|one, other| natural(&one.endpoint).cmp(&natural(&other.endpoint)));
        Grid { years, months: heads, rows }
    }

    fn row(&self, cells: &[&Cell], months: &BTreeSet<Month>, filter: &Filter) -> Row {
        let endpoint = cells.first().map(|cell| cell.endpoint_name.clone()).unwrap_or_default();
        let of_month: BTreeMap<Month, &Cell> =
            cells.iter().map(|cell| (Month::of(cell.data_date), *cell)).collect();
        let is_yearly = (self.is_yearly)(&endpoint);
        let mut places: Vec<Place> = Vec::with_capacity(months.len());
        let mut year_taken = None;
        let mut last_year = None;
        for month in months {
            let begins_year = last_year != Some(month.year());
            last_year = Some(month.year());
            match of_month.get(month) {
                Some(cell) => {
                    let task = Some(self.shown(cell, filter));
                    places.push(Place { task, span: 1, begins_year });
                    year_taken = is_yearly.then(|| month.year());
                }
                None if year_taken == Some(month.year()) => {
                    if let Some(place) = places.last_mut() {
                        place.span += 1;
                    }
                }
                None => places.push(Place { task: None, span: 1, begins_year }),
            }
        }
        Row { endpoint, places }
    }

    fn shown(&self, cell: &Cell, filter: &Filter) -> Shown {
        let (t, f) = (self.t, self.format);
        let sign = say::sign(cell.status);
        let text = match cell.status {
            Status::Partial | Status::Fetching => format!("{sign}{}", cell.percent()),
            Status::Pending | Status::Discovering | Status::Complete | Status::Failed => {
                sign.to_owned()
            }
        };
        let pages = match cell.total_pages {
            Some(all) => format!("{} {} {}", f.number(cell.pages), t.cell_of, f.number(all)),
            None => f.number(cell.pages),
        };
        let title = format!(
            "{} {}: {}, {pages} {}, {} {}",
            cell.endpoint_name,
            Month::of(cell.data_date),
            say::name(cell.status, t),
            t.cell_pages,
            f.number(cell.records),
            t.cell_records,
        );
        let id = ExtractionId::new(&cell.endpoint_name, cell.data_date);
        let id: String = form_urlencoded::byte_serialize(id.0.as_bytes()).collect();
        Shown {
            slug: say::slug(cell.status),
            text,
            title,
            href: format!("{}/{id}", self.source),
            is_other: filter.status.is_some_and(|status| status != cell.status),
        }
    }
}

/// A name as people sort it: `modalidade_2` before `modalidade_10`.
fn natural(name: &str) -> Vec<(u64, &str)> {
    let parts = name.split('_');
    parts.map(|part| part.parse().map_or((0, part), |number| (number, ""))).collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn cell(name: &str, year: i16, month: i8, status: Status) -> Cell {
        Cell {
            endpoint_name: name.into(),
            data_date: date(year, month, 1),
            status,
            total_pages: Some(216),
            total_records: Some(107_709),
            pages: 120,
            records: 60_000,
        }
    }

    fn grid(cells: &[Cell], filter: &Filter) -> Grid {
        let maker = Maker {
            source: "pncp",
            language: Language::English,
            t: Words::of(Language::English),
            format: &Format::new(Language::English),
            is_yearly: &|name| name == "pca",
        };
        maker.grid(cells, filter)
    }

    #[test]
    fn a_cell_is_a_link_with_its_state_as_a_sign_and_in_words() {
        let cells = [cell("contratos", 2024, 1, Status::Partial)];
        let grid = grid(&cells, &Filter::default());
        let shown = grid.rows[0].places[0].task.as_ref().unwrap();
        assert_eq!(shown.text, "◐55");
        assert_eq!(shown.title, "contratos 2024-01: Partial, 120 of 216 pages, 60,000 records");
        assert_eq!((shown.slug, shown.href.as_str()), ("partial", "pncp/contratos_2024-01-01"));
    }

    #[test]
    fn years_group_their_months_and_a_month_without_a_task_is_a_gap() {
        let cells = [
            cell("a", 2023, 12, Status::Complete),
            cell("a", 2024, 2, Status::Complete),
            cell("b", 2024, 1, Status::Failed),
        ];
        let grid = grid(&cells, &Filter::default());
        assert_eq!(grid.years, [(2023, 1), (2024, 2)]);
        let heads: Vec<_> = grid.months.iter().map(|it| (it.name, it.begins_year)).collect();
        assert_eq!(heads, [("Dec", true), ("Jan", true), ("Feb", false)]);
        let there: Vec<Vec<bool>> = grid
            .rows
            .iter()
            .map(|row| row.places.iter().map(|place| place.task.is_some()).collect())
            .collect();
        assert_eq!(there, [[true, false, true], [false, true, false]]);
    }

    #[test]
    fn the_task_of_a_year_takes_the_months_of_its_year() {
        let cells = [
            cell("a", 2023, 12, Status::Complete),
            cell("a", 2024, 2, Status::Complete),
            cell("a", 2025, 1, Status::Complete),
            cell("pca", 2024, 1, Status::Fetching),
        ];
        let grid = grid(&cells, &Filter::default());
        let spans: Vec<_> =
            grid.rows[1].places.iter().map(|it| (it.span, it.task.is_some())).collect();
        assert_eq!(spans, [(1, false), (2, true), (1, false)]);
    }

    #[test]
    fn filters_leave_out_rows_and_dim_what_is_in_another_state() {
        let cells = [
            cell("Atas", 2024, 1, Status::Complete),
            cell("Atas", 2024, 2, Status::Failed),
            cell("contratos", 2024, 3, Status::Complete),
        ];
        let failed = Filter { status: Some(Status::Failed), ..Filter::default() };
        let grid_of_failed = grid(&cells, &failed);
        assert_eq!(grid_of_failed.rows.len(), 1);
        let dim: Vec<bool> = grid_of_failed.rows[0]
            .places
            .iter()
            .filter_map(|place| place.task.as_ref().map(|task| task.is_other))
            .collect();
        assert_eq!(dim, [true, false]);
        let named = Filter { endpoint: "ata".into(), ..Filter::default() };
        let grid_of_named = grid(&cells, &named);
        assert_eq!((grid_of_named.rows.len(), grid_of_named.months.len()), (1, 2));
        assert!(grid(&[], &named).rows.is_empty());
    }

    #[test]
    fn endpoints_come_as_people_sort_them() {
        let mut names = ["b_10", "b_2", "a_x", "b", "b_1", "b_2_atas"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["a_x", "b", "b_1", "b_2", "b_2_atas", "b_10"]);
    }
}

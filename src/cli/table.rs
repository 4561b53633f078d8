//! Rows and columns as text: aligned by what a terminal shows, and safe to show.

/// How a cell is tinted where colours are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tint {
    Plain,
    Good,
    Bad,
    Busy,
    Quiet,
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub text: String,
    pub tint: Tint,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), tint: Tint::Plain }
    }
}

/// A cell for a state word, tinted by what it means.
#[must_use]
pub fn state_cell(state: &str) -> Cell {
    let tint = match state {
        "succeeded" | "active" | "taken" | "created" | "updated" => Tint::Good,
        "failed" | "timed_out" | "lost" | "refused" => Tint::Bad,
        "running" | "ready" | "changed" => Tint::Busy,
        "paused" | "skipped" | "cancelled" | "ended" | "released" | "unchanged" => Tint::Quiet,
        _ => Tint::Plain,
    };
    Cell { text: state.to_owned(), tint }
}

#[derive(Clone, Debug)]
pub struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    #[must_use]
    pub fn new(headers: &[&'static str]) -> Table {
        Table { headers: headers.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Lines without trailing blanks; two blanks between columns.
    #[must_use]
    pub fn render(&self, colours: bool) -> String {
        let header: Vec<Cell> = self.headers.iter().map(|header| Cell::from(*header)).collect();
        let rows: Vec<&Vec<Cell>> = std::iter::once(&header).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..self.headers.len())
            .map(|i| {
                let cells = rows.iter().filter_map(|row| row.get(i));
                cells.map(|cell| width(&one_line(&cell.text))).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in rows {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                let shown = one_line(&cell.text);
                let is_last = i + 1 == row.len();
                let gap = widths.get(i).copied().unwrap_or(0).saturating_sub(width(&shown));
                line.push_str(&tinted(&shown, cell.tint, colours));
                if !is_last {
                    line.push_str(&" ".repeat(gap + 2));
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A list of names with their values, the values aligned. Empty values are left out.
#[must_use]
pub fn render_fields(fields: &[(&str, Cell)], colours: bool) -> String {
    let shown = fields.iter().filter(|(_, cell)| !cell.text.is_empty());
    let widest = shown.clone().map(|(name, _)| width(name)).max().unwrap_or(0);
    let mut text = String::new();
    for (name, cell) in shown {
        let gap = " ".repeat(widest - width(name) + 2);
        let value = tinted(&one_line(&cell.text), cell.tint, colours);
        text.push_str(&format!("{name}{gap}{value}\n"));
    }
    text
}

/// Text of others, with what could command a terminal made visible. Line ends and tabs stay.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' && c != '\t' {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// The beginning of a text, with a mark when more followed.
#[must_use]
pub fn shortened(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', " ")
}

fn tinted(text: &str, tint: Tint, colours: bool) -> String {
    let code = match tint {
        Tint::Plain => return text.to_owned(),
        Tint::Good => "32",
        Tint::Bad => "31",
        Tint::Busy => "36",
        Tint::Quiet => "33",
    };
    if colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Columns of a terminal: wide for the scripts of East Asia and for pictures, none for marks that
/// join the letter before them.
fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_script() {
        let mut table = Table::new(&["NAME", "STATE", "NOTE"]);
        table.row(vec!["夜间对账".into(), state_cell("failed"), "a".into()]);
        table.row(vec!["cafe\u{301}".into(), state_cell("paused"), "".into()]);
        let expected = "NAME      STATE   NOTE\n夜间对账  failed  a\ncafe\u{301}      paused\n";
        assert_eq!(table.render(false), expected);
    }

    #[test]
    fn colours_do_not_move_columns() {
        let mut table = Table::new(&["A", "B"]);
        table.row(vec![state_cell("failed"), "x".into()]);
        table.row(vec!["other".into(), "y".into()]);
        let plain = table.render(true).replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
        assert_eq!(plain, table.render(false));
    }

    #[test]
    fn text_of_others_cannot_command_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{7}\r\n\tc"), "a\\u{1b}[2Jb\\u{7}\\r\n\tc");
        let mut table = Table::new(&["A"]);
        table.row(vec!["x\ny\u{1b}]0;z".into()]);
        assert_eq!(table.render(false), "A\nx\\ny\\u{1b}]0;z\n");
    }
}

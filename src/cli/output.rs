//! The only place that prints: data on standard output, messages on standard error.

use std::io::{self, ErrorKind, IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::cli::error::CliError;
use crate::cli::table::{Cell, Table, printable, render_fields};

/// A table for people, or JSON for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

#[derive(Clone, Copy, Debug)]
pub struct Output {
    format: Format,
    colours: bool,
}

impl Output {
    /// Colours are for terminals, unless the variable `NO_COLOR` says anything at all.
    #[must_use]
    pub fn new(format: Format, no_color: Option<&str>) -> Output {
        let unwanted = no_color.is_some_and(|text| !text.is_empty());
        Output { format, colours: !unwanted && io::stdout().is_terminal() }
    }

    #[must_use]
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// One JSON document.
    ///
    /// # Errors
    /// [`CliError::Closed`] when nobody reads any more.
    pub fn json(&self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(value);
        let text = text.map_err(|error| CliError::Failed(error.to_string()))?;
        write_out(&format!("{text}\n"))
    }

    /// One JSON document on one line, for streams.
    ///
    /// # Errors
    /// [`CliError::Closed`] when nobody reads any more.
    pub fn json_line(&self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string(value);
        let text = text.map_err(|error| CliError::Failed(error.to_string()))?;
        write_out(&format!("{text}\n"))
    }

    /// # Errors
    /// [`CliError::Closed`] when nobody reads any more.
    pub fn table(&self, table: &Table) -> Result<(), CliError> {
        write_out(&table.render(self.colours))
    }

    /// # Errors
    /// [`CliError::Closed`] when nobody reads any more.
    pub fn fields(&self, fields: &[(&str, Cell)]) -> Result<(), CliError> {
        write_out(&render_fields(fields, self.colours))
    }

    /// Lines of text, ours or others'.
    ///
    /// # Errors
    /// [`CliError::Closed`] when nobody reads any more.
    pub fn text(&self, text: &str) -> Result<(), CliError> {
        let safe = printable(text);
        let end = if safe.ends_with('\n') { "" } else { "\n" };
        write_out(&format!("{safe}{end}"))
    }

    /// What was done, for a person who waits for it; programs see the exit code.
    ///
    /// # Errors
    /// [`CliError::Closed`] when nobody reads any more.
    pub fn done(&self, text: &str) -> Result<(), CliError> {
        match self.format {
            Format::Table => self.text(text),
            Format::Json => Ok(()),
        }
    }

    /// A message on standard error. There is nobody to tell when that is closed too.
    pub fn message(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", printable(text));
    }
}

fn write_out(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CliError::Closed),
        Err(error) => Err(CliError::Failed(format!("cannot write the output: {error}"))),
    }
}

//! Importing whole crontabs: a realistic one of our own, and those of the machine at hand.

use std::collections::BTreeSet;

use horolog::cli::args::ImportCrontabArgs;
use horolog::cli::crontab::report::{Report, Verdict};
use horolog::cli::import::plan;

const SYSTEM: &str = include_str!("system.crontab");

fn arguments(file: &str, system: bool) -> ImportCrontabArgs {
    ImportCrontabArgs {
        file: file.to_owned(),
        system,
        group: "crontab".to_owned(),
        pool: "default".to_owned(),
        tz: "UTC".to_owned(),
        dry_run: true,
    }
}

fn line(report: &Report, part: &str) -> (Verdict, String, String) {
    let line = report.lines.iter().find(|line| line.text.contains(part)).unwrap();
    (line.verdict, line.timezone.clone().unwrap_or_default(), line.notes.join(" "))
}

#[test]
fn a_system_crontab_is_taken_but_for_what_has_no_counterpart() {
    let (report, drafts) = plan(SYSTEM, &arguments("/etc/crontab", false), "default");
    let table = [
        ("SHELL=", Verdict::Taken, "", ""),
        ("MAILTO=", Verdict::Changed, "", "no mail"),
        ("RANDOM_DELAY", Verdict::Refused, "", "random delay"),
        ("cron.hourly", Verdict::Taken, "UTC", ""),
        ("cron.weekly", Verdict::Taken, "UTC", ""),
        ("pg_dump", Verdict::Taken, "Europe/Berlin", ""),
        ("rotate", Verdict::Taken, "Europe/Berlin", ""),
        ("echo never", Verdict::Refused, "Mars/Olympus_Mons", "Mars"),
        ("@reboot", Verdict::Refused, "", "does not boot"),
        ("sa1", Verdict::Changed, "UTC", "leading '-'"),
        ("echo both", Verdict::Changed, "UTC", "match both"),
        ("too late", Verdict::Refused, "UTC", "61"),
        ("no such day", Verdict::Refused, "UTC", "never fires"),
        ("whenever", Verdict::Refused, "", "random time"),
        ("15 14 1", Verdict::Refused, "", "missing"),
        ("TZ=America", Verdict::Changed, "", "reaches the command only"),
        ("@hourly", Verdict::Taken, "UTC", ""),
    ];
    for (part, verdict, zone, note) in table {
        let got = line(&report, part);
        assert_eq!((got.0, got.1.as_str()), (verdict, zone), "{part}: {}", got.2);
        assert!(got.2.contains(note), "{part}: {}", got.2);
    }
    let names: BTreeSet<&str> =
        drafts.iter().map(|(_, draft)| draft.address.name.as_str()).collect();
    assert_eq!(names.len(), drafts.len());
    assert_eq!(drafts.len(), 13);
}

#[test]
fn the_same_file_gives_the_same_jobs_wherever_its_lines_stand() {
    let arguments = arguments("/etc/crontab", false);
    let moved = format!("# a new remark\n\n{SYSTEM}");
    let jobs = |text: &str| -> Vec<String> {
        let (_, drafts) = plan(text, &arguments, "default");
        let shown = drafts.into_iter().map(|(_, draft)| {
            format!("{} {}", draft.address, serde_json::to_string(&draft.spec).unwrap())
        });
        shown.collect()
    };
    assert_eq!(jobs(SYSTEM), jobs(&moved));
}

#[test]
fn crontabs_of_this_machine_are_read_to_their_end() {
    let mut paths = vec!["/etc/crontab".to_owned()];
    if let Ok(folder) = std::fs::read_dir("/etc/cron.d") {
        paths.extend(folder.flatten().map(|entry| entry.path().display().to_string()));
    }
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let (report, _) = plan(&text, &arguments(&path, false), "default");
        assert_eq!(report.form, "system", "{path}");
        for line in &report.lines {
            let is_plain = line.text.starts_with(|c: char| c.is_ascii_digit() || c == '*');
            assert!(!is_plain || line.verdict != Verdict::Refused, "{path}: {line:?}");
        }
    }
}

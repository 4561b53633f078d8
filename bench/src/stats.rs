//! Exact percentiles of one run, and the median of several runs.

/// Every sample of a run, sorted.
pub struct Samples {
    sorted: Vec<i64>,
}

impl Samples {
    pub fn new(mut samples: Vec<i64>) -> Samples {
        samples.sort_unstable();
        Samples { sorted: samples }
    }

    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    pub fn min(&self) -> i64 {
        self.sorted.first().copied().unwrap_or_default()
    }

    pub fn max(&self) -> i64 {
        self.sorted.last().copied().unwrap_or_default()
    }

    /// The smallest sample that at least this many thousandths of all samples do not exceed.
    pub fn permille(&self, permille: usize) -> i64 {
        let rank = (self.sorted.len() * permille).div_ceil(1_000).max(1);
        self.sorted.get(rank - 1).copied().unwrap_or_default()
    }

    /// How many samples are below a bound.
    pub fn count_below(&self, bound: i64) -> usize {
        self.sorted.partition_point(|&sample| sample < bound)
    }
}

/// The values of one metric over several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// `values` holds at least one value.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or_default();
        let count = sorted.len();
        let upper = at(count / 2);
        let median = if count % 2 == 1 {
            upper
        } else {
            f64::midpoint(at((count / 2).wrapping_sub(1)), upper)
        };
        Spread { median, min: at(0), max: at(count.wrapping_sub(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_that_occurred() {
        let samples = Samples::new((1..=100).rev().collect());
        assert_eq!(samples.permille(500), 50);
        assert_eq!(samples.permille(990), 99);
        assert_eq!(samples.permille(999), 100);
        assert_eq!(samples.permille(0), 1);
        assert_eq!((samples.min(), samples.max(), samples.count()), (1, 100, 100));
        assert_eq!(samples.count_below(50), 49);
        assert_eq!(Samples::new(Vec::new()).permille(990), 0);
    }

    #[test]
    fn an_even_number_of_runs_has_its_median_between_two() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of(&[7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
    }
}

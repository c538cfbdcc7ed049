//! The one table: each figure with what it is compared with, its target, and whether that is met.

use std::fmt;

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Figure {
    pub what: String,
    pub measured: String,
    /// What it is a ratio to, or a control measured in the same minutes.
    pub beside: String,
    pub value: f64,
    pub unit: &'static str,
    pub target: Option<Target>,
}

#[derive(Clone, Copy, Debug)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtMost(bound) => value <= bound,
            Target::AtLeast(bound) => value >= bound,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Figures(pub Vec<Figure>);

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | measured | beside | figure | target | met |\n|---|---:|---:|---:|---:|---|")?;
        for figure in &self.0 {
            let Figure { what, measured, beside, value, unit, target } = figure;
            let value = number(*value);
            let (bound, met) = match *target {
                None => (String::new(), ""),
                Some(target) => {
                    let bound = match target {
                        Target::AtMost(bound) => format!("≤ {} {unit}", number(bound)),
                        Target::AtLeast(bound) => format!("≥ {} {unit}", number(bound)),
                    };
                    (bound, if target.is_met(figure.value) { "yes" } else { "**no**" })
                }
            };
            writeln!(f, "| {what} | {measured} | {beside} | {value} {unit} | {bound} | {met} |")?;
        }
        Ok(())
    }
}

/// Two digits behind the point where they mean something.
fn number(value: f64) -> String {
    if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, Figures, Target};

    fn line(value: f64, target: Option<Target>) -> String {
        let (what, measured, beside) = ("a".into(), "b".into(), "c".into());
        let text = Figures(vec![Figure { what, measured, beside, value, unit: "×", target }]).to_string();
        text.lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_target_is_met_up_to_its_bound() {
        assert_eq!(line(1.3, Some(Target::AtMost(1.3))), "| a | b | c | 1.30 × | ≤ 1.30 × | yes |");
        assert_eq!(line(1.31, Some(Target::AtMost(1.3))), "| a | b | c | 1.31 × | ≤ 1.30 × | **no** |");
        assert_eq!(line(0.39, Some(Target::AtLeast(0.4))), "| a | b | c | 0.39 × | ≥ 0.40 × | **no** |");
        assert_eq!(line(12.34, None), "| a | b | c | 12.3 × |  |  |");
    }
}

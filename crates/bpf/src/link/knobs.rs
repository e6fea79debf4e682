//! Tunables: variables of the section `.data.knobs` with declaration tags.

use std::collections::BTreeMap;

use crate::btf::{BtfKind, TypeId};
use crate::image::{Image, Knob, Scalar, Symbol};
use crate::{KnobProblem, LoadError, Object};

/// The section that holds the tunables and nothing else.
const SECTION: &str = ".data.knobs";

pub(super) fn knobs(object: &Object, image: &Image) -> Result<Vec<Knob>, LoadError> {
    let tags = tags(object);
    let mut knobs = Vec::new();
    for (index, symbol) in (0..).zip(&image.symbols) {
        if image.maps[symbol.map as usize].name != SECTION {
            continue;
        }
        let tags = tags.get(&*symbol.name).map_or(&[][..], |tags| tags);
        let knob = knob(image, index, symbol, tags);
        let fault = |problem| LoadError::Knob {
            knob: symbol.name.clone(),
            problem,
        };
        knobs.push(knob.map_err(fault)?);
    }
    Ok(knobs)
}

/// The tags of each variable of the section, in the order of the source.
fn tags(object: &Object) -> BTreeMap<&str, Vec<&str>> {
    let btf = &object.btf;
    let variables: BTreeMap<TypeId, &str> = btf
        .section_variables(SECTION)
        .into_iter()
        .map(|(variable, _)| (variable, btf.name(variable)))
        .collect();
    let mut tags = BTreeMap::<&str, Vec<&str>>::new();
    for (id, ty) in btf.iter() {
        // Component -1 is the variable itself.
        let BtfKind::DeclTag {
            target,
            component: -1,
        } = ty.kind
        else {
            continue;
        };
        if let Some(variable) = variables.get(&target) {
            tags.entry(variable).or_default().push(btf.name(id));
        }
    }
    tags
}

fn knob(image: &Image, index: u32, symbol: &Symbol, tags: &[&str]) -> Result<Knob, KnobProblem> {
    let scalar = symbol.scalar.ok_or(KnobProblem::NotScalar)?;
    let default = image
        .read_scalar(symbol, scalar)
        .ok_or(KnobProblem::NotScalar)?;
    let (least, greatest) = scalar.range();
    let mut knob = Knob {
        name: symbol.name.clone(),
        symbol: index,
        unit: if scalar == Scalar::Bool {
            "bool".to_owned()
        } else {
            String::new()
        },
        doc: String::new(),
        default: narrow(default),
        on_kernel: None,
        at_load: false,
        min: narrow(least),
        max: narrow(greatest),
    };
    for tag in tags {
        let number = |text: &str| {
            text.parse::<i64>()
                .map_err(|_| KnobProblem::BadNumber((*tag).to_owned()))
        };
        match tag.split_once(':') {
            Some(("unit", unit)) => unit.clone_into(&mut knob.unit),
            Some(("doc", doc)) => doc.clone_into(&mut knob.doc),
            Some(("min", text)) => knob.min = number(text)?.max(knob.min),
            Some(("max", text)) => knob.max = number(text)?.min(knob.max),
            Some(("set", "load")) => knob.at_load = true,
            Some(("kernel", text)) => knob.on_kernel = Some(number(text)?),
            // A tag of another tool.
            _ => {}
        }
    }
    let Knob { min, max, .. } = knob;
    for value in [Some(knob.default), knob.on_kernel].into_iter().flatten() {
        if !(min..=max).contains(&value) {
            return Err(KnobProblem::DefaultOutOfRange { value, min, max });
        }
    }
    Ok(knob)
}

/// Knobs have 64 signed bits; the upper half of `u64` is beyond any tunable's use.
fn narrow(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

//! A table as a Parquet file.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::{ColumnKind, ExportTable};

/// Writes `table` as one group of rows.
///
/// # Errors
/// When `to` does not take it.
///
/// # Panics
/// If a cell does not hold what its column is said to hold.
pub fn write(table: &ExportTable, to: &mut dyn Write) -> io::Result<()> {
    // The file's end says where its parts lie, so a reader needs the whole anyway.
    let mut bytes = Vec::new();
    fill(table, &mut bytes).map_err(io::Error::other)?;
    to.write_all(&bytes)
}

fn fill(table: &ExportTable, to: &mut Vec<u8>) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("runslice {}", crate::VERSION))
        .build();
    let schema = schema(table)?;
    let mut file = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let mut columns = 0..;
    while let Some(mut column) = group.next_column()? {
        let at = columns.next().unwrap_or_default();
        put(table, at, column.untyped())?;
        column.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

fn schema(table: &ExportTable) -> Result<TypePtr, ParquetError> {
    let fields = table.columns.iter().map(|&(name, kind)| {
        let whole = |is_signed| Some(LogicalType::integer(64, is_signed));
        let (physical, logical) = match kind {
            ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnKind::Whole => (Physical::INT64, whole(false)),
            ColumnKind::Signed => (Physical::INT64, whole(true)),
            ColumnKind::Real => (Physical::DOUBLE, None),
            ColumnKind::Truth => (Physical::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL);
        field.build().map(Arc::new)
    });
    let fields: Vec<TypePtr> = fields.collect::<Result<_, _>>()?;
    let whole = Type::group_type_builder("table").with_fields(fields);
    whole.build().map(Arc::new)
}

/// Writes column `at`.
fn put(table: &ExportTable, at: usize, to: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
    let kind = table.columns[at].1;
    let cells: Vec<&str> = table.rows.iter().map(|row| row[at].as_str()).collect();
    // Level 1: there is a value; an empty text is one.
    let has_value = |cell: &&str| kind == ColumnKind::Text || !cell.is_empty();
    let levels: Vec<i16> = cells.iter().map(|it| i16::from(has_value(it))).collect();
    let levels = Some(levels.as_slice());
    let there = || cells.iter().copied().filter(has_value);
    let bad = |cell: &str| -> ! { panic!("`{cell}` in the column {}", table.columns[at].0) };
    match to {
        ColumnWriter::ByteArrayColumnWriter(to) => {
            let values: Vec<ByteArray> = there().map(ByteArray::from).collect();
            to.write_batch(&values, levels, None)
        }
        ColumnWriter::Int64ColumnWriter(to) => {
            let number = |cell: &str| match kind {
                ColumnKind::Whole => cell.parse::<u64>().map(u64::cast_signed),
                _ => cell.parse::<i64>(),
            };
            let values = there().map(|cell| number(cell).unwrap_or_else(|_| bad(cell)));
            to.write_batch(&values.collect::<Vec<_>>(), levels, None)
        }
        ColumnWriter::DoubleColumnWriter(to) => {
            let values = there().map(|cell| cell.parse().unwrap_or_else(|_| bad(cell)));
            to.write_batch(&values.collect::<Vec<f64>>(), levels, None)
        }
        ColumnWriter::BoolColumnWriter(to) => {
            let values = there().map(|cell| cell.parse().unwrap_or_else(|_| bad(cell)));
            to.write_batch(&values.collect::<Vec<bool>>(), levels, None)
        }
        _ => unreachable!("the schema has the four types above"),
    }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    /// `name` tells the files of tests apart that run at the same time.
    fn read_back(table: &ExportTable, name: &str) -> Vec<Vec<(String, Field)>> {
        let name = format!("runslice-{name}-{}.parquet", std::process::id());
        let path = std::env::temp_dir().join(name);
        write(table, &mut std::fs::File::create(&path).unwrap()).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().into_columns()).collect()
    }

    #[test]
    fn every_kind_comes_back_with_its_type_and_gaps_stay_gaps() {
        let mut table = ExportTable::new([
            ("text", ColumnKind::Text),
            ("whole", ColumnKind::Whole),
            ("signed", ColumnKind::Signed),
            ("real", ColumnKind::Real),
            ("truth", ColumnKind::Truth),
        ]);
        let most = u64::MAX.to_string();
        table.row(["a \"b\", c", &most, "-20", "0.125", "true"].map(str::to_owned));
        table.row(["", "", "", "", ""].map(str::to_owned));
        let rows = read_back(&table, "kinds");
        let fields = |row: usize| rows[row].iter().map(|it| it.1.clone()).collect::<Vec<_>>();
        let whole = [
            Field::Str("a \"b\", c".to_owned()),
            Field::ULong(u64::MAX),
            Field::Long(-20),
            Field::Double(0.125),
            Field::Bool(true),
        ];
        assert_eq!(fields(0), whole);
        let null = || Field::Null;
        assert_eq!(
            fields(1),
            [Field::Str(String::new()), null(), null(), null(), null()]
        );
        let names: Vec<&str> = rows[0].iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["text", "whole", "signed", "real", "truth"]);
    }

    #[test]
    fn a_table_without_rows_is_a_file_with_columns() {
        let table = ExportTable::new([("text", ColumnKind::Text)]);
        assert!(read_back(&table, "no-rows").is_empty());
    }
}

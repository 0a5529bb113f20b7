//! The same lines as a file of Apache Parquet, whose columns have types.

use super::{Line, Tidy};
use parquet::basic::{self, LogicalType, Repetition};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError as Error;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Lines of a row group: a reader holds one at a time.
const GROUP: usize = 100_000;

/// The file cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("parquet: {0}")]
pub struct ParquetError(#[from] Error);

impl Tidy {
    /// As a file of Parquet, not compressed. The columns are those of the comma-separated values: seed is an unsigned integer of 64 bits, steady a
    /// truth value, value a double; all others are text. A key that a run leaves as the system file has it is null.
    ///
    /// # Errors
    /// The writer refuses; no lines are known to make it do so.
    pub fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let mut bytes = Vec::new();
        // The library's version is not named, so that the same runs are the same bytes.
        let properties = WriterProperties::builder().set_created_by(String::from("partita"));
        let properties = Arc::new(properties.build());
        let mut file = SerializedFileWriter::new(&mut bytes, self.schema()?, properties)?;
        for lines in self.lines.chunks(GROUP) {
            let mut group = file.next_row_group()?;
            self.write(&mut group, lines)?;
            group.close()?;
        }
        file.close()?;
        Ok(bytes)
    }

    fn schema(&self) -> Result<TypePtr, Error> {
        const OPTIONAL: Repetition = Repetition::OPTIONAL;
        const REQUIRED: Repetition = Repetition::REQUIRED;
        use basic::Type::{BOOLEAN, BYTE_ARRAY, DOUBLE, INT64};
        let column = |name: &str, kind, repetition| {
            let meaning = match kind {
                BYTE_ARRAY => Some(LogicalType::String),
                INT64 => Some(LogicalType::integer(64, false)),
                _ => None,
            };
            let built = Type::primitive_type_builder(name, kind)
                .with_repetition(repetition)
                .with_logical_type(meaning)
                .build();
            built.map(Arc::new)
        };
        let mut columns = vec![
            column("run", BYTE_ARRAY, REQUIRED)?,
            column("system", BYTE_ARRAY, REQUIRED)?,
            column("computer", BYTE_ARRAY, REQUIRED)?,
            column("kind", BYTE_ARRAY, REQUIRED)?,
            column("seed", INT64, REQUIRED)?,
            column("steady", BOOLEAN, REQUIRED)?,
        ];
        for key in &self.keys {
            columns.push(column(key, BYTE_ARRAY, OPTIONAL)?);
        }
        columns.push(column("measure", BYTE_ARRAY, REQUIRED)?);
        columns.push(column("unit", BYTE_ARRAY, REQUIRED)?);
        columns.push(column("value", DOUBLE, REQUIRED)?);
        let schema = Type::group_type_builder("runs").with_fields(columns);
        Ok(Arc::new(schema.build()?))
    }

    /// The columns of one row group, in the order of the schema.
    fn write<W: std::io::Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        lines: &[Line],
    ) -> Result<(), Error> {
        let each = |of: fn(&Line) -> &str| lines.iter().map(|line| text(of(line))).collect();
        let strings = |group: &mut _, values: Vec<ByteArray>| {
            column::<ByteArrayType, W>(group, &values, None)
        };
        strings(group, each(|line| &line.run))?;
        strings(group, each(|line| &line.system))?;
        strings(group, each(|line| &line.computer))?;
        strings(group, each(|line| line.kind))?;
        let seeds = lines.iter().map(|line| line.seed.cast_signed());
        column::<Int64Type, W>(group, &seeds.collect::<Vec<_>>(), None)?;
        let steady = lines.iter().map(|line| line.is_steady);
        column::<BoolType, W>(group, &steady.collect::<Vec<_>>(), None)?;
        for index in 0..self.keys.len() {
            let settings = lines
                .iter()
                .map(|line| line.settings.get(index).and_then(Option::as_deref));
            let settings: Vec<Option<&str>> = settings.collect();
            let there: Vec<ByteArray> =
                settings.iter().flatten().map(|value| text(value)).collect();
            let levels = settings.iter().map(|value| i16::from(value.is_some()));
            column::<ByteArrayType, W>(group, &there, Some(&levels.collect::<Vec<_>>()))?;
        }
        strings(group, each(|line| &line.measure))?;
        strings(group, each(|line| &line.unit))?;
        let values = lines.iter().map(|line| line.value);
        column::<DoubleType, W>(group, &values.collect::<Vec<_>>(), None)
    }
}

fn text(value: &str) -> ByteArray {
    ByteArray::from(value)
}

/// Writes the next column. `levels` says of each line whether it has a value, where that may be missing.
fn column<T: DataType, W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), Error> {
    let next = group.next_column()?;
    let mut next = next.ok_or_else(|| Error::General(String::from("a column too many")))?;
    next.typed::<T>().write_batch(values, levels, None)?;
    next.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use std::io::Write;

    fn line(seed: u64, setting: Option<&str>, value: f64) -> Line {
        Line {
            run: String::from("0a"),
            system: String::from("a.toml"),
            computer: String::from("QEMU"),
            kind: "native",
            seed,
            is_steady: seed == 1,
            settings: vec![setting.map(String::from)],
            measure: String::from("throughput"),
            unit: String::from("completions/s"),
            value,
        }
    }

    /// Reads the file back: a line of fields for each of its rows.
    fn read(tidy: &Tidy) -> Vec<Vec<(String, Field)>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&tidy.parquet().unwrap()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().into_columns()).collect()
    }

    #[test]
    fn each_line_comes_back_with_its_types() {
        let tidy = Tidy {
            keys: vec![String::from("spin")],
            lines: vec![
                line(1, Some("wapd"), 2.5),
                line(u64::MAX, None, f64::MIN_POSITIVE),
            ],
        };
        let rows = read(&tidy);
        let text = |text: &str| Field::Str(String::from(text));
        let named = |fields: [(&str, Field); 10]| {
            fields
                .map(|(name, field)| (String::from(name), field))
                .to_vec()
        };
        let expected = |seed, steady, spin, value| {
            named([
                ("run", text("0a")),
                ("system", text("a.toml")),
                ("computer", text("QEMU")),
                ("kind", text("native")),
                ("seed", Field::ULong(seed)),
                ("steady", Field::Bool(steady)),
                ("spin", spin),
                ("measure", text("throughput")),
                ("unit", text("completions/s")),
                ("value", Field::Double(value)),
            ])
        };
        assert_eq!(
            rows,
            [
                expected(1, true, text("wapd"), 2.5),
                expected(u64::MAX, false, Field::Null, f64::MIN_POSITIVE),
            ]
        );
    }

    #[test]
    fn file_has_all_groups_or_none() {
        let lines = (0..GROUP as u64 + 1).map(|seed| line(seed, None, 0.0));
        let mut tidy = Tidy {
            keys: Vec::new(),
            lines: lines.collect(),
        };
        assert_eq!(read(&tidy).len(), GROUP + 1);
        assert_eq!(tidy.parquet().unwrap(), tidy.clone().parquet().unwrap());
        tidy.lines.clear();
        assert_eq!(read(&tidy).len(), 0);
    }
}

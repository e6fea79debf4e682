//! Tables as Arrow columns.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch,
    RecordBatchIterator, RecordBatchReader, StringArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use show::export::{ColumnKind, ExportTable};
use traces::EventColumns;

use crate::errors::Error;

/// A table of Arrow columns. It hands its memory on through the Arrow `PyCapsule` interface, and
/// nothing is copied for that.
#[pyclass(frozen, name = "Table", module = "runslice._runslice")]
pub struct PyTable(RecordBatch);

/// What no columns of ours can end in: they have one length and the types of their schema.
fn wrong(error: &ArrowError) -> PyErr {
    Error::new_err(error.to_string())
}

#[pymethods]
impl PyTable {
    /// The stream of the Arrow C interface. A wished-for schema is not looked at, as the interface
    /// allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let batches: Box<dyn RecordBatchReader + Send> = Box::new(batches);
        let stream = FFI_ArrowArrayStream::new(batches);
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema_ref().as_ref());
        let schema = schema.map_err(|error| wrong(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        let fields = self.0.schema_ref().fields();
        fields.iter().map(|field| field.name().clone()).collect()
    }

    /// The columns as lists, of `count` rows from `begin` on or of those that are there.
    fn lists<'py>(
        &self,
        py: Python<'py>,
        begin: usize,
        count: usize,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let begin = begin.min(self.0.num_rows());
        let part = self.0.slice(begin, count.min(self.0.num_rows() - begin));
        part.columns().iter().map(|it| list(py, it)).collect()
    }
}

impl PyTable {
    /// The cells of a table of results. A cell of any kind but text that is empty is null.
    ///
    /// # Errors
    /// Never, but for a broken invariant of ours.
    pub fn of_cells(table: &ExportTable) -> PyResult<Self> {
        let columns = table.columns().iter().enumerate();
        let columns = columns.map(|(at, &(name, kind))| {
            let cells = table.rows().iter().map(|row| row[at].as_str());
            (name, column(kind, cells), true)
        });
        let batch = RecordBatch::try_from_iter_with_nullable(columns);
        batch.map(Self).map_err(|error| wrong(&error))
    }

    /// Events, whose lists become the columns as they are.
    ///
    /// # Errors
    /// The errors of [`PyTable::of_cells`].
    pub fn of_events(events: EventColumns) -> PyResult<Self> {
        Self::events(events).map_err(|error| wrong(&error))
    }

    fn events(events: EventColumns) -> Result<Self, ArrowError> {
        let has_task = || events.task.iter().map(|task| *task != u32::MAX);
        let tasks = NullBuffer::from_iter(has_task());
        let named = NullBuffer::from_iter(events.name.iter().map(|name| *name != u32::MAX));
        // A number that stands for nothing must not point behind the names.
        let names = events.name.iter();
        let names: Vec<u32> = names
            .map(|&name| if name == u32::MAX { 0 } else { name })
            .collect();
        let name = DictionaryArray::<UInt32Type>::try_new(
            UInt32Array::new(names.into(), Some(named)),
            Arc::new(StringArray::from(events.names)),
        )?;
        let kind = DictionaryArray::<UInt8Type>::try_new(
            UInt8Array::from(events.kind),
            Arc::new(StringArray::from(EventColumns::kinds())),
        )?;
        let columns: [(&str, ArrayRef); 8] = [
            ("time_ns", Arc::new(UInt64Array::from(events.time_ns))),
            ("event", Arc::new(kind)),
            ("cpu", Arc::new(UInt16Array::from(events.cpu))),
            (
                "task",
                Arc::new(UInt32Array::new(events.task.into(), Some(tasks))),
            ),
            ("name", Arc::new(name)),
            ("detail", Arc::new(UInt8Array::from(events.detail))),
            ("a", Arc::new(UInt64Array::from(events.a))),
            ("b", Arc::new(UInt64Array::from(events.b))),
        ];
        let fields = columns.iter().map(|(name, column)| {
            let is_nullable = ["task", "name"].contains(name);
            Field::new(*name, column.data_type().clone(), is_nullable)
        });
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        RecordBatch::try_new(Arc::new(schema), columns).map(Self)
    }
}

/// A column as Python's values; what is null is `None`.
fn list<'py>(py: Python<'py>, column: &dyn Array) -> PyResult<Bound<'py, PyList>> {
    /// One list of an iterator that does not say its length.
    macro_rules! of {
        ($cells:expr) => {
            PyList::new(py, $cells.into_iter().collect::<Vec<_>>())
        };
    }
    match column.data_type() {
        DataType::Utf8 => of!(column.as_string::<i32>()),
        DataType::Boolean => of!(column.as_boolean()),
        DataType::UInt16 => of!(column.as_primitive::<UInt16Type>()),
        DataType::UInt32 => of!(column.as_primitive::<UInt32Type>()),
        DataType::UInt64 => of!(column.as_primitive::<UInt64Type>()),
        DataType::Int64 => of!(column.as_primitive::<Int64Type>()),
        DataType::Float64 => of!(column.as_primitive::<Float64Type>()),
        // As a number, not as the byte of a string.
        DataType::UInt8 => {
            let cells = column.as_primitive::<UInt8Type>().iter();
            of!(cells.map(|cell| cell.map(u16::from)))
        }
        DataType::Dictionary(..) => {
            let texts = column.as_any_dictionary();
            let keys = texts.normalized_keys();
            let names = texts.values().as_string::<i32>();
            let name = |(at, key): (usize, &usize)| texts.is_valid(at).then(|| names.value(*key));
            of!(keys.iter().enumerate().map(name))
        }
        other => Err(Error::new_err(format!("no column of ours is {other}"))),
    }
}

/// The cells of one column.
fn column<'a>(kind: ColumnKind, cells: impl Iterator<Item = &'a str>) -> ArrayRef {
    match kind {
        ColumnKind::Text => {
            let mut column = StringBuilder::new();
            cells.for_each(|cell| column.append_value(cell));
            Arc::new(column.finish())
        }
        ColumnKind::Whole => Arc::new(UInt64Array::from_iter(cells.map(|cell| some(cell, kind)))),
        ColumnKind::Signed => Arc::new(Int64Array::from_iter(cells.map(|cell| some(cell, kind)))),
        ColumnKind::Real => Arc::new(Float64Array::from_iter(cells.map(|cell| some(cell, kind)))),
        ColumnKind::Truth => Arc::new(BooleanArray::from_iter(cells.map(|cell| some(cell, kind)))),
    }
}

/// A cell's value; `None` of an empty one.
fn some<T: std::str::FromStr>(cell: &str, kind: ColumnKind) -> Option<T> {
    (!cell.is_empty()).then(|| {
        cell.parse()
            .unwrap_or_else(|_| panic!("`{cell}` in a column of {kind:?}"))
    })
}

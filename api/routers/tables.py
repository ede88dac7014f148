"""Reference tables: upload, list, look up, change single rows, delete."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Query, Request, Response, status
from pyarrow import parquet

from api.errors import UnsupportedMediaType, WrongShape
from api.requests.bodies import MediaType, RawBody, require_json
from api.requests.filters import WantedPart
from api.requests.form import parse_document
from api.requests.preconditions import Preconditions
from api.schemas.tables import CSV_EXAMPLE, ROW_EXAMPLE, TableDetail, TableList, TableModel
from api.services import Served
from service import RegisteredTable, TableUpload
from streams.tables import MEDIA_TYPES, VALUE_TYPES, TableDeclaration

router = APIRouter(prefix="/tables", tags=["tables"])

_PARQUET = "application/vnd.apache.parquet"
_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "text/csv": {"schema": {"type": "string"}, "example": CSV_EXAMPLE},
        **{kind: {"schema": {"type": "string", "format": "binary"}} for kind in MEDIA_TYPES if kind != "text/csv"},
    },
}
_Key: TypeAlias = Annotated[
    list[str], Query(description="The key of the row. Repeatable: the parts of a key of several columns, in order.")
]
_ROW: dict[str, Any] = {
    "required": True,
    "content": {"application/json": {"schema": {"type": "object"}, "example": ROW_EXAMPLE}},
}


def read_upload(
    name: str,
    request: Request,
    media_type: MediaType,
    preconditions: Preconditions,
    key: Annotated[list[str], Query(description="A column of the key. Repeatable.")],
    column: Annotated[
        list[str] | None,
        Query(
            description=f"NAME:TYPE, the type of a column: {', '.join(VALUE_TYPES)}. Others are inferred. Repeatable."
        ),
    ] = None,
) -> TableUpload:
    """Read the rows in the request's file, the columns of the key, and the given types of columns."""
    if media_type not in MEDIA_TYPES:
        raise UnsupportedMediaType(f"media type {media_type!r} is not supported; send one of {', '.join(MEDIA_TYPES)}")
    types: dict[str, Any] = {}
    for pair in column or []:
        column_name, sign, kind = pair.rpartition(":")
        if not sign:
            raise WrongShape(f"query.column: {pair!r} is not NAME:TYPE")
        if column_name in types:
            raise WrongShape(f"query.column: the column {column_name!r} has two types; name one")
        types[column_name] = kind
    path: Path = request.state.body_file
    declaration = TableDeclaration(key=tuple(key), types=types)
    return TableUpload(
        name=name, path=path, format=MEDIA_TYPES[media_type], declaration=declaration, condition=preconditions
    )


@router.put(
    "/{name}",
    status_code=status.HTTP_201_CREATED,
    summary="Upload a table",
    openapi_extra={"requestBody": _BODY},
    responses={200: {"model": TableModel, "description": "The table has these rows already."}},
)
def upload_table(
    upload: Annotated[TableUpload, Depends(read_upload)], services: Served, response: Response
) -> TableModel:
    """Register the rows of a file: CSV with the names of the columns in its first line, JSON lines, or Parquet.

    A further upload under the same name is the next version, which later events look up. If a row cannot be read or
    repeats a key, the upload is refused with line and column.
    """
    report = services.tables.put(upload)
    if not report.is_new:
        response.status_code = status.HTTP_200_OK
    response.headers["ETag"] = _etag(report.record)
    return TableModel.from_domain(report)


@router.get("", summary="List the tables")
def list_tables(services: Served, part: WantedPart) -> TableList:
    """List all tables by name, with the operators that look them up."""
    return TableList(**part.of([TableModel.from_domain(report) for report in services.tables.tables()], "name"))


@router.get("/{name}", summary="Look up a table")
def get_table(name: str, services: Served, response: Response) -> TableDetail:
    """Look up the columns of a table, its key, its versions, and the operators that look it up."""
    report = services.tables.table(name)
    response.headers["ETag"] = _etag(report.record)
    return TableDetail.from_versions(report, services.stores.tables.versions(name))


@router.get(
    "/{name}/rows",
    summary="Download the rows of a table",
    response_class=Response,
    responses={200: {"content": {_PARQUET: {"schema": {"type": "string", "format": "binary"}}}}},
)
def get_table_rows(name: str, services: Served) -> Response:
    """Return the current rows as a Parquet file."""
    content = io.BytesIO()
    rows = services.tables.rows(name)
    with parquet.ParquetWriter(content, rows.schema, compression="zstd") as writer:
        writer.write_batch(rows)
    return Response(content.getvalue(), media_type=_PARQUET)


@router.put(
    "/{name}/rows",
    summary="Change a row",
    dependencies=[Depends(require_json)],
    openapi_extra={"requestBody": _ROW},
)
def change_table_row(
    name: str, key: _Key, body: RawBody, services: Served, preconditions: Preconditions, response: Response
) -> TableModel:
    """Insert or replace one row: an object with the columns as members. Missing members are null.

    Later events look up the new row.
    """
    row = parse_document(body)
    if not isinstance(row, dict):
        raise WrongShape("body: a row is a JSON object with the columns as members")
    report = services.tables.change_row(name, key, row, preconditions)
    response.headers["ETag"] = _etag(report.record)
    return TableModel.from_domain(report)


@router.delete("/{name}/rows", status_code=status.HTTP_204_NO_CONTENT, summary="Remove a row")
def delete_table_row(name: str, key: _Key, services: Served, preconditions: Preconditions) -> None:
    """Remove one row, if it exists. Later events do not find it."""
    services.tables.change_row(name, key, None, preconditions)


@router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a table")
def delete_table(name: str, services: Served, preconditions: Preconditions) -> None:
    """Delete a table that no operator looks up."""
    services.tables.delete(name, preconditions)


def _etag(record: RegisteredTable) -> str:
    return f'"{record.tag}"'

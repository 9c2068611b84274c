"""Errors as ODBC drivers raise them."""

from __future__ import annotations

import pyodbc

MICROSOFT = "[Microsoft][ODBC Driver 18 for SQL Server]"


def microsoft(state: str, text: str, number: int = 0, call: str = "SQLExecDirectW") -> pyodbc.Error:
    return pyodbc.Error(state, f"[{state}] {MICROSOFT}[SQL Server]{text} ({number}) ({call})")


def freetds(state: str, text: str, number: int) -> pyodbc.Error:
    return pyodbc.Error(state, f"[{state}] [FreeTDS][SQL Server]{text} ({number}) (SQLExecDirectW)")


def psqlodbc(state: str, text: str, number: int = 1, call: str = "SQLExecDirectW") -> pyodbc.Error:
    return pyodbc.Error(state, f"[{state}] {text};\nError while executing the query ({number}) ({call})")

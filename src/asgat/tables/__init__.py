"""Candidate tables: attention at linear cost, with a certificate."""

from asgat.tables.arma_table_operator import ArmaTableOperator
from asgat.tables.candidate_table import CandidateTable
from asgat.tables.row_operator import RowOperator
from asgat.tables.table_operator import TableOperator

__all__ = ["ArmaTableOperator", "CandidateTable", "RowOperator", "TableOperator"]

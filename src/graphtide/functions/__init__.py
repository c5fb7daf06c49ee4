"""SPARQL operators and built-in functions over terms, and the evaluation of expressions."""

from graphtide.functions.evaluate import ExistsTest, OtherFunctions, compile_expression, evaluate
from graphtide.functions.logic import Compiled, Row
from graphtide.functions.table import FUNCTIONS, VOLATILE, check_call, known_functions
from graphtide.functions.values import effective_boolean

__all__ = [
    "FUNCTIONS",
    "VOLATILE",
    "Compiled",
    "ExistsTest",
    "OtherFunctions",
    "Row",
    "check_call",
    "compile_expression",
    "effective_boolean",
    "evaluate",
    "known_functions",
]

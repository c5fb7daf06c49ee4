"""The dataflow network: operators of all plans, shared between queries."""

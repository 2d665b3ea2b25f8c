"""Transforms: SQL, columns, and functions of the user's. They build DataFrames and execute nothing."""

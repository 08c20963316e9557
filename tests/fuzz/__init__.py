"""Fuzzing of every parser: `python -m tests.fuzz PARSER --minutes N`, or `--all`.

What is tried, `parsers`; how files are changed so that their checksums and lengths still fit,
`mutate`; what must hold for each, `judge`. Findings become small files in `regressions/`, which
`tests/test_fuzz.py` judges in every run of the tests.
"""

"""Thirty files, shown in the six ways in which people see them."""

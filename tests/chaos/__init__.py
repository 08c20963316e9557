"""Migrations that are killed at every place, and must end as one that nobody disturbs."""

"""The record of runs: SQLite by default, PostgreSQL by URL."""

"""Terminal tables, self-contained HTML, Markdown, JUnit."""

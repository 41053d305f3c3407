"""The pages of the reproduction: tables, pictures and verdicts, each a function of the rows."""

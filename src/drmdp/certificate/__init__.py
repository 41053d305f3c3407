"""Claims become bounds here."""

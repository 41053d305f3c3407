"""The slow twin of every operator."""

"""Files: written completely or not at all, checked before they are read, mapped into memory."""

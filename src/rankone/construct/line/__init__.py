"""The construction `line`: context ids on one line, hidden units where the label changes on it."""

"""The declarations of the operators, one file per family, and what a declaration may say."""

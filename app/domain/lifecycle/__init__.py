"""Operations on whole contacts: import, export, merge and erasure."""

"""What the pages of docs/integrate say, tried."""

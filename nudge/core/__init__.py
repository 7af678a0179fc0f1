"""What every room of the product may know of the others: plain values and decisions, without storage and servers."""

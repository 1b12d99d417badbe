"""The numbers of the whole fleet: kept, read, told to Prometheus, and judged."""

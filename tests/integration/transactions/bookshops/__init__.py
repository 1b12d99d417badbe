"""What a handler of these tests writes besides its task, on each store through its own driver."""

"""The tasks that Holdfast brings along, and the worker that runs them beside an app's own."""

"""The command `holdfast`: parse, call the client, print. Rules live elsewhere."""

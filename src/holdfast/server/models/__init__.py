"""What is sent and answered, as types: the words of the JSON API."""

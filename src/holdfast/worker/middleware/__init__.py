"""What may surround a run, one file per concern. A worker without any keeps its fast lane."""

"""`python -m holdfast` is `holdfast`, where scripts are not on the PATH."""

from holdfast.cli.main import run

run()

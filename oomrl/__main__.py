"""Run the command line as `python -m oomrl`."""

from oomrl.cli.main import main

main()

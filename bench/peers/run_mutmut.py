"""Mutate functions of one module with mutmut, and tell how each mutant ended and what the running of them took.

`python run_mutmut.py FOLDER MODULE CHILDREN FUNCTION ...`: FOLDER is a copy of the strategy that may be written to. The
run is mutmut's own command; what is timed apart is from its first mutant to the end of its last.
"""

import json
import os
import sys
import time
from pathlib import Path

from normal import normal_form

SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["{module}"]
also_copy = ["baseline", "strategy.toml"]
"""


def main(folder, module, children, functions):
    os.chdir(folder)
    settings = Path("pyproject.toml")
    settings.write_text(settings.read_text("utf-8") + SETTINGS.format(module=module), "utf-8")
    import mutmut.__main__ as tool  # reads its settings where it stands

    marks, make = [], tool.get_mutant_runner

    def timed(*given):
        runner = make(*given)
        startup, shutdown = runner.startup, runner.shutdown
        runner.startup = lambda: (marks.append(os.times()), startup())[1]
        runner.shutdown = lambda: (shutdown(), marks.append(os.times()))[0]
        return runner

    tool.get_mutant_runner = timed
    dotted = module.removeprefix("src/").removesuffix(".py").replace("/", ".")
    begun, stdout = time.perf_counter(), sys.stdout
    with Path("mutmut.log").open("w") as log:
        sys.stdout = sys.__stdout__ = log
        tool._run([f"{dotted}.x_{name}__mutmut_*" for name in functions], children)
        sys.stdout = sys.__stdout__ = stdout
    whole = time.perf_counter() - begun
    source = Path("mutants", module).read_text("utf-8")
    found = []
    for key, code in json.loads(Path("mutants", f"{module}.meta").read_text("utf-8"))["exit_code_by_key"].items():
        name = key.rpartition(".")[2]
        function = name.removeprefix("x_").rpartition("__mutmut_")[0]
        if function in functions:
            ended = tool.status_by_exit_code[code]
            found.append({"function": function, "form": normal_form(source, function, name), "ended": ended})
    first, last = marks
    spent = [sum(end[:4]) for end in marks]
    told = {"seconds": last.elapsed - first.elapsed, "processor_seconds": spent[1] - spent[0], "whole_seconds": whole}
    print(json.dumps(told | {"mutants": found}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])

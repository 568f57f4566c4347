"""What a sandbox must hold, each as a function of the profile that raises where it does not.

They need the standard library alone, so that an ordinary user's system interpreter can run them too:
`python -m tests.integration.guardrails.scenarios NAME PROFILE`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import guardrails
from guardrails.sandbox import Limits, Process, Sandbox, SandboxError
from guardrails.sandbox import launch as launch_module

ROOT = Path(guardrails.__file__).parents[1]
PYTHON = Path(sys.executable)
SCENARIOS: dict[str, Callable[[str], None]] = {}


def scenario(function: Callable[[str], None]) -> Callable[[str], None]:
    """Keep a scenario under its name."""
    SCENARIOS[function.__name__] = function
    return function


@contextmanager
def script(text: str) -> Iterator[Path]:
    """Write code to a folder that anybody may enter."""
    with tempfile.TemporaryDirectory(prefix="scenario-") as folder:
        Path(folder).chmod(0o755)
        path = Path(folder, "script.py")
        path.write_text(textwrap.dedent(text))
        path.chmod(0o644)
        yield path


@contextmanager
def running(profile: str, text: str, *arguments: str, tmp_bytes: int = 0, **limits: float | None) -> Iterator[Process]:
    """Run code in a sandbox."""
    with script(text) as path:
        chosen = Limits(**{"memory_bytes": 512 << 20, "cpu_seconds": 60, **limits})
        with Sandbox(profile).start(PYTHON, path, arguments, tmp_bytes=tmp_bytes, limits=chosen) as process:
            process.channel.settimeout(60)
            yield process


def told(process: Process) -> str:
    """Return everything that it sends until it closes the channel."""
    parts = []
    while part := process.channel.recv(1 << 16):
        parts.append(part)
    return b"".join(parts).decode()


def processes_with(mark: str) -> list[int]:
    """Return the processes whose command line holds a mark."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "cmdline").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def gone(mark: str, seconds: float = 10.0) -> bool:
    """Say whether all processes with a mark end in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not processes_with(mark):
            return True
        time.sleep(0.02)
    return False


@scenario
def canaries_are_held(profile: str) -> None:
    found = Sandbox(profile).canaries()
    assert len(found) > 50
    assert all(found.values())


@scenario
def the_script_runs_as_the_main_module_with_its_arguments(profile: str) -> None:
    code = """
        import os, sys
        os.write(3, repr((__name__, sys.argv[1:], __file__ == sys.argv[0], sys.flags.safe_path, sys.flags.no_user_site,
                          sys.flags.dont_write_bytecode, sys.flags.hash_randomization, os.getcwd())).encode())
    """
    with running(profile, code, "one", "two") as process:
        assert told(process) == "('__main__', ['one', 'two'], True, True, 1, 1, 0, '/')"


@scenario
def the_configuration_is_out_of_sight(profile: str) -> None:
    code = """
        import os, sys, __main__
        os.write(3, repr((len(sys.orig_argv), sorted(vars(__main__)))).encode())
    """
    with running(profile, code) as process:
        said = told(process)
    assert said.startswith("(2, "), said
    assert "_confine" not in said


@scenario
def nothing_but_what_was_given_is_in_reach(profile: str) -> None:
    code = """
        import json, os, sys
        def reads(path):
            try:
                with open(path, "rb") as file:
                    file.read(1)
                return True
            except OSError:
                return False
        os.write(3, json.dumps([reads(path) for path in sys.argv[1:]]).encode())
    """
    with script("1") as other, script(code) as path:
        asked = [str(path), str(other), "/etc/passwd", "/proc/self/environ", "/proc/1/cmdline", str(Path(__file__))]
        with Sandbox(profile).start(PYTHON, path, asked) as process:
            assert json.loads(told(process)) == [True, False, False, False, False, False]
        with Sandbox(profile).start(PYTHON, path, asked, readable=[other.parent]) as process:
            assert json.loads(told(process))[:2] == [True, True]


@scenario
def a_tree_that_only_its_owner_may_read_is_readable_inside(profile: str) -> None:
    code = "import os, sys; os.write(3, open(sys.argv[1]).read().encode())"
    with script(code) as path, tempfile.TemporaryDirectory() as private:
        Path(private, "file").write_text("seen")
        Path(private, "file").chmod(0o600)
        asked = str(Path(private, "file"))
        with Sandbox(profile).start(PYTHON, path, [asked], readable=[Path(private)]) as process:
            assert told(process) == "seen", process.output()


@scenario
def prints_are_kept_and_a_flood_ends_it(profile: str) -> None:
    with running(profile, "import sys; print('out'); print('err', file=sys.stderr)") as process:
        assert process.wait(60) == 0
        assert sorted(process.output().split()) == ["err", "out"]
    with running(profile, "while True: print('x' * 1000)", output_bytes=100_000) as process:
        assert process.wait(60) == 123
        assert 99_000 < len(process.output()) <= 100_000


@scenario
def time_ends_it(profile: str) -> None:
    with running(profile, "import time; time.sleep(60)", wall_seconds=0.5) as process:
        assert process.wait(30) == 124
    with running(profile, "while True: pass", cpu_seconds=1) as process:
        assert process.wait(30) in (128 + signal.SIGXCPU, 128 + signal.SIGKILL)


@scenario
def memory_is_bounded(profile: str) -> None:
    code = """
        import os
        try:
            held = [bytearray(32 << 20) for _ in range(64)]
        except MemoryError:
            os.write(3, b"MemoryError")
    """
    with running(profile, code, memory_bytes=256 << 20) as process:
        assert told(process) == "MemoryError"


@scenario
def descriptors_and_files_are_bounded(profile: str) -> None:
    code = """
        import os
        opened = []
        try:
            while True:
                opened.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            os.write(3, str(len(opened)).encode() + b" ")
        os.close(opened.pop())
        file = open(os.environ["TMPDIR"] + "/file", "wb", 0)
        try:
            file.write(bytes(1 << 20)); file.write(bytes(1 << 20))
        except OSError as error:
            os.write(3, error.strerror.encode())
    """
    with running(profile, code, tmp_bytes=8 << 20, file_bytes=1 << 20, open_files=32) as process:
        assert told(process) == "28 File too large", process.output()


@scenario
def scratch_space_is_bounded_private_and_taken_away(profile: str) -> None:
    code = """
        import os, tempfile, time
        os.write(3, tempfile.gettempdir().encode() + b"\\n")
        os.mkdir(os.environ["TMPDIR"] + "/closed", 0)
        try:
            for number in range(256):
                with open(f"{os.environ['TMPDIR']}/{number}", "wb") as file:
                    file.write(bytes(1 << 20))
            time.sleep(60)
        except OSError as error:
            os.write(3, error.strerror.encode())
    """
    with running(profile, code, tmp_bytes=4 << 20) as process:
        place, _, ended = told(process).partition("\n")
        assert ended == ("No space left on device" if profile == "S3" else "")
        assert process.wait(30) == (0 if profile == "S3" else 122)
    assert not Path(place).exists()
    with running(profile, "import tempfile; tempfile.mkdtemp()") as process:
        assert process.wait(30) == 1
        assert "No usable temporary directory" in process.output()


@scenario
def forks_live_and_die_with_their_tree(profile: str) -> None:
    code = """
        import os, sys, time
        for number in range(3):
            if os.fork() == 0:
                if os.fork() == 0:
                    os.write(3, b"x")
                    time.sleep(600)
                os._exit(0)  # the grandchild is an orphan
        os.write(3, b"y")
        time.sleep(600)
    """
    with running(profile, code, processes=10) as process:
        mark = process.process.args[-1][-60:]
        said = b""
        while len(said) < 4:
            said += process.channel.recv(4)
        assert len(processes_with(mark)) >= 5
        process.kill()
        assert gone(mark)
        assert process.wait(1) == 137


@scenario
def everything_dies_with_a_killed_judge(profile: str) -> None:
    for how in ("kill", "thread"):
        judge = f"""
            import os, sys, threading, time
            from pathlib import Path
            from guardrails.sandbox import Limits, Sandbox
            path = Path(sys.argv[1])
            started = []
            def start():
                arguments, limits = ["mark-" + path.parent.name], Limits(processes=4)
                started.append(Sandbox({profile!r}).start(Path(sys.executable), path, arguments, limits=limits))
            thread = threading.Thread(target=start)
            thread.start()
            thread.join()
            started[0].channel.recv(1)
            time.sleep(0.3)
            print(started[0].process.poll(), flush=True)
            time.sleep(600) if {how == "kill"} else os._exit(0)
        """
        child = "import os, time; os.fork(); os.write(3, b'x'); time.sleep(600)"
        with script(child) as path:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            command = [sys.executable, "-c", textwrap.dedent(judge), str(path)]
            mark = f"mark-{path.parent.name}"
            with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                # The thread that started it is gone, and it runs on.
                assert process.stdout.readline() == b"None\n"
                assert how == "thread" or processes_with(mark)
                process.kill()
            assert gone(mark), how


@scenario
def the_channel_closes_when_it_ends(profile: str) -> None:
    with running(profile, "import os; os._exit(7)") as process:
        assert told(process) == ""
        assert process.wait(30) == 7
    with running(profile, "import ctypes; ctypes.string_at(0)") as process:
        assert told(process) == ""
        assert process.wait(30) == 128 + signal.SIGSEGV


@scenario
def many_run_beside_one_another(profile: str) -> None:
    with script("import os; os.write(3, os.read(3, 10)); os.read(3, 1)") as path:
        started = [Sandbox(profile).start(PYTHON, path) for _ in range(6)]
        for number, process in enumerate(started):
            process.channel.sendall(str(number).encode())
        assert [process.channel.recv(10) for process in started] == [str(number).encode() for number in range(6)]
        threads = [threading.Thread(target=process.close) for process in started]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@scenario
def without_bubblewrap_the_profile_is_lower_and_says_so(profile: str) -> None:
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = "/nonexistent"
    launch_module.strongest.cache_clear()
    try:
        assert Sandbox.choose("S2").profile == "S2"
        try:
            Sandbox.choose("S3")
        except SandboxError as error:
            assert "was S2" in str(error)
            assert "bubblewrap is not installed" in str(error)
        else:
            raise AssertionError("S3 was chosen without bubblewrap")
    finally:
        os.environ["PATH"] = before
        launch_module.strongest.cache_clear()


@scenario
def where_nothing_holds_nothing_runs(profile: str) -> None:
    found = launch_module.LANDLOCK
    launch_module.LANDLOCK = {"S2": 99, "S3": 99}
    launch_module.strongest.cache_clear()
    try:
        Sandbox.choose()
    except SandboxError as error:
        assert "was S0" in str(error)
        assert "Expected Landlock of ABI 99" in str(error)
    else:
        raise AssertionError("a sandbox was chosen")
    finally:
        launch_module.LANDLOCK = found
        launch_module.strongest.cache_clear()


if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](sys.argv[2])

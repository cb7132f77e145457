# SPDX-License-Identifier: MIT
"""A copy of the tree in which mutants are built and tried."""
import os
import shutil
import subprocess
import threading
import time

COPIED = ["CMakeLists.txt", "CMakePresets.json", "cmake", "include", "src",
          "tests"]


def target_of(model):
    return model.replace("/", "_")


class Bench:
    def __init__(self, top, tree):
        self.top = top
        self.tree = tree
        self.build = self.tree / "build"
        self.tree.mkdir(parents=True, exist_ok=True)
        for part in COPIED:
            self.copy(part)
        generator = "Ninja" if shutil.which("ninja") else "Unix Makefiles"
        self.call(["cmake", "--preset", "model", "-G", generator, "-B",
                   str(self.build), "-DPIRN_TESTS=ON"], check=True)

    def copy(self, part):
        """Write what differs, so that nothing else is built again."""
        source, target = self.top / part, self.tree / part
        files = [source] if source.is_file() else source.rglob("*")
        wanted = {target / path.relative_to(source): path for path in files
                  if path.is_file()}
        for path, original in wanted.items():
            content = original.read_bytes()
            if not path.exists() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                shutil.copymode(original, path)
        for path in target.rglob("*") if target.is_dir() else []:
            if path.is_file() and path not in wanted:
                path.unlink()

    def call(self, command, check=False, timeout=None):
        return subprocess.run(command, cwd=self.tree, check=check,
                              timeout=timeout, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)

    def build_models(self, models):
        targets = [target_of(model) for model in models]
        return self.call(["cmake", "--build", str(self.build), "-j", "1",
                          "--target", *targets])

    def run(self, model, seconds):
        """The first test that fails, "" if none does; not what comes after
        it."""
        folder = "tests" if model.startswith("engine/") else "src"
        program = (self.build / folder / os.path.dirname(model) /
                   target_of(model))
        environment = {"PIRN_TEST_TIMEOUT_S": str(int(seconds))}
        process = subprocess.Popen([program], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT,
                                   env=os.environ | environment)
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        name = model
        for line in process.stdout:
            words = line.decode(errors="replace").split()
            if words[:2] in (["[", "RUN"], ["[", "FAILED"]):
                name = f"{model} {words[-1]}"
            if words[:2] == ["[", "FAILED"]:
                process.kill()
                break
        in_time = timer.is_alive()
        timer.cancel()
        process.stdout.close()
        if process.wait() == 0:
            return ""
        return name if in_time else f"{name}, which does not end"

    def time_models(self, models):
        """{model: the seconds it may take}; all must be clean."""
        built = self.build_models(models)
        if built.returncode != 0:
            raise SystemExit(built.stdout)
        times = {}
        for model in models:
            start = time.monotonic()
            failure = self.run(model, 600)
            if failure:
                raise SystemExit(f"without any change: {failure}")
            times[model] = 30 + 6 * (time.monotonic() - start)
        return times

    def killer(self, mutant, models, times):
        """What notices the mutant; "" if nothing does."""
        path = self.tree / mutant.path
        before = path.read_text()
        path.write_text(mutant.text)
        try:
            for model in models:
                if self.build_models([model]).returncode != 0:
                    return "the compiler"
                failure = self.run(model, times[model])
                if failure:
                    return failure
            return ""
        finally:
            path.write_text(before)

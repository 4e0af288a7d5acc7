"""A fake root folder, fake commands, and a way to run the real scripts against them."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

NODE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src", "features")
TOOLS = ("sh", "cat", "rm", "ls", "sleep", "mkdir")
# No result depends on it: it only ends a test that would hang for ever.
PATIENCE = 120


class RootTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="node-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.commands = os.path.join(self.root, "commands")
        os.mkdir(self.commands)
        # Nothing but these is on PATH, so that no real crictl or swapon is ever found.
        for tool in TOOLS:
            os.symlink(shutil.which(tool), os.path.join(self.commands, tool))
        self.environment = {
            "PATH": self.commands, "ADVISOR_ROOT": self.root, "ADVISOR_RETRY_SECONDS": "0", "FAKE": self.root}

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def write(self, name, text=""):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def link(self, name, target):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.symlink(target, self.path(name))

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def log(self):
        """The calls of fake commands, one a line."""
        return self.read("log").splitlines() if os.path.exists(self.path("log")) else []

    def command(self, name, body):
        with open(os.path.join(self.commands, name), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{body}\n")
        os.chmod(os.path.join(self.commands, name), 0o755)

    def memory(self, kib):
        self.write("proc/meminfo", f"MemTotal:       {kib} kB\nMemFree:        1000 kB\n")

    def run_script(self, script, *arguments, code=0):
        done = subprocess.run(
            [sys.executable, os.path.join(NODE, script), *arguments], env=self.environment, timeout=PATIENCE,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

import configparser
import glob
import os
import unittest

from fakes import NODE


def unit(path):
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str
    with open(path, encoding="utf-8") as file:
        parser.read_file(file)
    return parser


class Units(unittest.TestCase):
    def test_units(self):
        paths = sorted(glob.glob(os.path.join(NODE, "*", "files", "*.service")))
        self.assertEqual(len(paths), 9)
        for path in paths:
            with self.subTest(os.path.basename(path)):
                service = unit(path)
                command = service["Service"]["ExecStart"]
                self.assertNotIn("sudo", command)
                program = command.split()[0]
                if program.startswith("/usr/local/bin/"):
                    script = os.path.join(os.path.dirname(path), os.path.basename(program))
                    self.assertTrue(os.access(script, os.X_OK))
                # The machine starts, whatever happens to one of these.
                self.assertNotIn("RequiredBy", service["Install"])
                self.assertIn(service["Install"]["WantedBy"], ("multi-user.target", "kubelet-dependencies.target"))

    def test_swap_units_have_the_priorities(self):
        commands = [unit(os.path.join(NODE, "swap", "files", f"{name}.service"))["Service"]["ExecStart"].split()[1:]
                    for name in ("swap-disk-enable", "swap-file-enable")]
        self.assertEqual(commands, [["/dev/disk/by-partlabel/OCPSWAP", "100"], ["/var/tmp/ocpswap.file", "10"]])

    def test_drop_ins(self):
        protect = dict(unit(os.path.join(NODE, "swap/files/10-kubevirt-protect.conf"))["Slice"])
        self.assertEqual(protect, {"MemorySwapMax": "0", "IOWeight": "800", "CPUWeight": "800"})
        priority = dict(unit(os.path.join(NODE, "swap/files/10-kubevirt-io-priority.conf"))["Slice"])
        self.assertEqual(priority, {"IOWeight": "100"})
        self.assertEqual(
            dict(unit(os.path.join(NODE, "drain_shutdown_inhibitor/files/10-inhibit-delay.conf"))["Login"]), {"InhibitDelayMaxSec": "150"})

    def test_scripts_are_short(self):
        for path in glob.glob(os.path.join(NODE, "*", "files", "*.py")):
            if os.path.basename(os.path.dirname(path)) != "tests":
                with self.subTest(path), open(path, encoding="utf-8") as file:
                    lines = file.readlines()
                    self.assertEqual(lines[0], "#!/usr/bin/python3\n")
                    self.assertLessEqual(len(lines), 200)

import os

from fakes import RootTest

SCRIPT = "swap/files/kubevirt-io-latency-setup.py"
SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
SYSTEM = "run/systemd/system/system.slice.d/20-io-latency.conf"
PODS = "run/systemd/system/kubepods.slice.d/20-io-latency.conf"


class IoLatency(RootTest):
    def setUp(self):
        super().setUp()
        self.write("proc/swaps", SWAPS)
        self.command("systemctl", 'echo "systemctl $*" >> "$FAKE/log"')
        self.numbers = iter(range(100))

    def disk(self, name, *partitions):
        folder = f"sys/devices/pci0/block/{name}"
        self.write(f"{folder}/dev", f"8:{next(self.numbers)}\n")
        self.write(f"{folder}/device/model", "a disk\n")
        self.link(f"sys/class/block/{name}", f"../../devices/pci0/block/{name}")
        self.write(f"dev/{name.replace('!', '/')}")
        for partition in partitions:
            self.write(f"{folder}/{partition}/partition", "1\n")
            self.link(f"sys/class/block/{partition}", f"../../devices/pci0/block/{name}/{partition}")
            self.write(f"dev/{partition.replace('!', '/')}")

    def volume(self, name, mapper, *slaves):
        for slave in slaves:
            self.link(f"sys/devices/virtual/block/{name}/slaves/{slave}", f"../../../../../class/block/{slave}")
        self.write(f"sys/devices/virtual/block/{name}/dev", f"253:{next(self.numbers)}\n")
        self.link(f"sys/class/block/{name}", f"../../devices/virtual/block/{name}")
        self.write(f"dev/{name}")
        if mapper:
            self.link(f"dev/mapper/{mapper}", f"../{name}")

    def zram(self):
        self.write("sys/devices/virtual/block/zram0/dev", "252:0\n")
        self.link("sys/class/block/zram0", "../../devices/virtual/block/zram0")
        self.write("dev/zram0")

    def mounts(self, *lines):
        self.write("proc/mounts", "proc /proc proc rw 0 0\n" + "".join(f"{line} xfs rw 0 0\n" for line in lines))

    def swaps(self, *lines):
        self.write("proc/swaps", SWAPS + "".join(f"{line} 100 0 5\n" for line in lines))

    def assert_disks(self, *disks):
        self.run_script(SCRIPT)
        for path, limit in ((SYSTEM, "5ms"), (PODS, "50ms")):
            lines = self.read(path).splitlines()
            expected = [f"IODeviceLatencyTargetSec=/dev/{disk} {limit}" for disk in disks]
            self.assertEqual(lines[1:], ["[Slice]"] + expected)
        self.assertEqual(self.log()[-1], "systemctl daemon-reload")

    def test_nvme(self):
        self.disk("nvme0n1", "nvme0n1p1", "nvme0n1p4")
        self.disk("nvme1n1", "nvme1n1p1")
        self.mounts("/dev/nvme0n1p4 /")
        self.swaps("/dev/nvme1n1p1 partition")
        self.assert_disks("nvme0n1", "nvme1n1")

    def test_a_label(self):
        self.disk("sda", "sda4")
        self.link("dev/disk/by-label/root", "../../sda4")
        self.mounts("/dev/disk/by-label/root /")
        self.assert_disks("sda")

    def test_lvm_over_encryption_over_two_partitions(self):
        self.disk("sda", "sda3")
        self.disk("sdb", "sdb1")
        self.volume("dm-0", "luks", "sda3", "sdb1")
        self.volume("dm-1", "vg-root", "dm-0")
        self.mounts("/dev/mapper/vg-root /")
        self.assert_disks("sda", "sdb")

    def test_swap_on_a_logical_volume(self):
        self.disk("sda", "sda4")
        self.disk("nvme0n1", "nvme0n1p2")
        self.volume("dm-0", "vg-swap", "nvme0n1p2")
        self.mounts("/dev/sda4 /")
        self.swaps("/dev/dm-0 partition")
        self.assert_disks("nvme0n1", "sda")

    def test_a_name_with_a_slash(self):
        self.disk("cciss!c0d0", "cciss!c0d0p2")
        self.mounts("/dev/cciss/c0d0p2 /")
        self.assert_disks("cciss/c0d0")

    def test_zram_is_skipped(self):
        self.disk("sda", "sda4")
        self.zram()
        self.mounts("/dev/sda4 /")
        self.swaps("/dev/zram0 partition")
        self.assert_disks("sda")

    def test_a_swap_file_on_another_disk(self):
        self.disk("sda", "sda4")
        self.disk("sdb", "sdb1")
        self.mounts("/dev/sda4 /", "/dev/sdb1 /var", "/dev/sda4 /variety")
        self.swaps("/var/tmp/ocpswap.file file")
        self.assert_disks("sda", "sdb")

    def test_a_root_that_is_an_image(self):
        self.disk("sda", "sda4")
        self.mounts("composefs /", "/dev/sda4 /sysroot")
        self.assert_disks("sda")

    def test_no_disk_writes_nothing(self):
        self.zram()
        self.mounts("overlay /")
        self.swaps("/dev/zram0 partition")
        self.assertIn("warning: no disk", self.run_script(SCRIPT))
        self.assertFalse(os.path.exists(self.path("run")))
        self.assertEqual(self.log(), [])

    def test_twice_gives_the_same_bytes(self):
        self.disk("sda", "sda4")
        self.mounts("/dev/sda4 /")
        self.assert_disks("sda")
        before = self.read(SYSTEM)
        self.assert_disks("sda")
        self.assertEqual(self.read(SYSTEM), before)
        self.assertEqual(os.listdir(os.path.dirname(self.path(SYSTEM))), ["20-io-latency.conf"])

    def test_a_reload_that_fails(self):
        self.disk("sda", "sda4")
        self.mounts("/dev/sda4 /")
        self.command("systemctl", "exit 1")
        self.assertIn("not in effect", self.run_script(SCRIPT, code=1))

    def test_the_kernel_has_the_targets(self):
        self.disk("sda", "sda4")
        self.mounts("/dev/sda4 /")
        self.write("sys/fs/cgroup/system.slice/io.latency", "8:0 target=5000\n")
        self.write("sys/fs/cgroup/kubepods.slice/io.latency", "9:9 target=1\n8:0 target=50000\n")
        self.assertIn("system.slice: 5 ms for sda", self.run_script(SCRIPT))

    def test_the_kernel_does_not_have_the_targets(self):
        self.disk("sda", "sda4")
        self.mounts("/dev/sda4 /")
        self.write("sys/fs/cgroup/system.slice/io.latency", "8:0 target=5000\n")
        self.write("sys/fs/cgroup/kubepods.slice/io.latency", "")
        self.assertIn("kubepods.slice: 50 ms is not in effect for sda", self.run_script(SCRIPT, code=1))

    def test_no_table_of_mounts(self):
        self.assertIn("not (all) written", self.run_script(SCRIPT, code=1))

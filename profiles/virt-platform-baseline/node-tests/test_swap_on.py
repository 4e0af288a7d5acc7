import os

from fakes import RootTest

SCRIPT = "swap/files/kubevirt-swap-on.py"
PARTITION = "/dev/disk/by-partlabel/OCPSWAP"
FILE = "/var/tmp/ocpswap.file"
HEADER = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


class SwapOn(RootTest):
    def setUp(self):
        super().setUp()
        self.write("proc/swaps", HEADER)
        self.command("udevadm", 'echo "udevadm $*" >> "$FAKE/log"')
        self.command("systemctl", "echo ExecStart=/usr/bin/kubelet --config-dir=/etc/openshift/kubelet.conf.d")
        self.swapon()

    def swapon(self, entry=f"{FILE} file 8388604 0 10"):
        self.command("swapon", f'echo "swapon $*" >> "$FAKE/log"; echo "{entry}" >> "$FAKE/proc/swaps"')

    def partition(self):
        self.write("dev/sda5")
        self.link(PARTITION, "../../sda5")

    def swap_file(self, mode=0o600):
        self.write(FILE, "swap")
        os.chmod(self.path(FILE), mode)

    def test_no_partition(self):
        self.assertIn("nothing to switch on", self.run_script(SCRIPT, PARTITION, "100"))
        self.assertEqual(self.log(), ["udevadm settle --timeout=30"])

    def test_a_partition_that_appears_while_udev_settles(self):
        self.command("udevadm", f'mkdir -p "$FAKE/dev/disk/by-partlabel"; echo > "$FAKE{PARTITION}"')
        self.swapon(f"{PARTITION} partition 8388604 0 100")
        self.assertIn("is in use", self.run_script(SCRIPT, PARTITION, "100"))

    def test_udev_that_fails_is_no_fault(self):
        self.command("udevadm", "exit 1")
        self.run_script(SCRIPT, PARTITION, "100")

    def test_no_file(self):
        self.assertIn("nothing to switch on", self.run_script(SCRIPT, FILE, "10"))
        self.assertEqual(self.log(), [])

    def test_the_partition_is_switched_on_with_its_priority(self):
        self.partition()
        self.swapon("/dev/sda5 partition 8388604 0 100")
        self.run_script(SCRIPT, PARTITION, "100")
        self.assertEqual(self.log(), [f"swapon --priority 100 {self.path(PARTITION)}"])

    def test_on_a_second_run_it_is_in_use(self):
        self.partition()
        self.swapon("/dev/sda5 partition 8388604 0 100")
        self.run_script(SCRIPT, PARTITION, "100")
        before = self.read("proc/swaps")
        self.assertIn("in use already", self.run_script(SCRIPT, PARTITION, "100"))
        self.assertEqual(len(self.log()), 1)
        self.assertEqual(self.read("proc/swaps"), before)

    def test_the_file_is_switched_on_once(self):
        self.swap_file()
        self.run_script(SCRIPT, FILE, "10")
        self.assertIn("in use already", self.run_script(SCRIPT, FILE, "10"))
        self.assertEqual(self.log(), [f"swapon --priority 10 {self.path(FILE)}"])

    def test_a_name_with_a_blank(self):
        self.write("var/tmp/a b")
        self.write("proc/swaps", HEADER + "/var/tmp/a\\040b file 1 0 10\n")
        self.assertIn("in use already", self.run_script(SCRIPT, "/var/tmp/a b", "10"))

    def test_other_swap_does_not_count(self):
        self.write("proc/swaps", HEADER + "/dev/zram0 partition 100 0 100\n")
        self.swap_file()
        self.run_script(SCRIPT, FILE, "10")
        self.assertEqual(len(self.log()), 1)

    def test_a_kernel_that_did_not_take_it_is_a_fault(self):
        self.swap_file()
        for body in ("echo no header; exit 255", "exit 0"):
            with self.subTest(body):
                self.command("swapon", body)
                self.assertIn("stays off", self.run_script(SCRIPT, FILE, "10", code=1))

    def test_swapon_that_failed_because_somebody_was_faster(self):
        self.swap_file()
        self.command("swapon", f'echo "{FILE} file 1 0 10" >> "$FAKE/proc/swaps"; exit 255')
        self.run_script(SCRIPT, FILE, "10")

    def test_a_kubelet_that_does_not_read_the_drop_in(self):
        self.swap_file()
        for body in ("echo ExecStart=/usr/bin/kubelet", "exit 1"):
            with self.subTest(body):
                self.command("systemctl", body)
                self.assertIn("stays off", self.run_script(SCRIPT, FILE, "10"))
        self.assertEqual(self.log(), [])

    def test_a_file_that_others_may_read(self):
        for mode in (0o644, 0o620, 0o601):
            with self.subTest(mode):
                self.swap_file(mode)
                self.assertIn("wanted is 600", self.run_script(SCRIPT, FILE, "10", code=1))
        self.assertEqual(self.log(), [])

    def test_a_link_in_the_place_of_the_file(self):
        self.write("elsewhere")
        self.link(FILE, "../../elsewhere")
        self.assertIn("symbolic link", self.run_script(SCRIPT, FILE, "10", code=1))
        self.assertEqual(self.log(), [])

    def test_a_folder_in_the_place_of_the_file(self):
        os.makedirs(self.path(FILE))
        self.assertIn("not a regular file", self.run_script(SCRIPT, FILE, "10", code=1))

    def test_a_kernel_without_swap(self):
        os.remove(self.path("proc/swaps"))
        self.swap_file()
        self.assertIn("left as it is", self.run_script(SCRIPT, FILE, "10", code=1))

    def test_wrong_use(self):
        for arguments in ((), (FILE,), (FILE, "high"), ("relative", "10")):
            with self.subTest(arguments):
                self.run_script(SCRIPT, *arguments, code=2)

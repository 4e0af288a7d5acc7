import os

from fakes import RootTest

KSM = "sys/kernel/mm/ksm"
SCRIPT = "ksm_zero_pages/files/kubevirt-ksm-tune.py"
GIB = 2**20  # in kB, as /proc/meminfo has it


class Ksm(RootTest):
    def kernel(self, switch=True, gb=16):
        self.memory(gb * GIB)
        for name, value in (("run", "0"), ("pages_to_scan", "100"), ("sleep_millisecs", "20")):
            self.write(f"{KSM}/{name}", f"{value}\n")
        if switch:
            self.write(f"{KSM}/redhat_only_zero_pages", "0\n")

    def values(self):
        return {name: self.read(f"{KSM}/{name}").strip() for name in os.listdir(self.path(KSM))}

    def test_without_the_switch_nothing_is_merged(self):
        self.kernel(switch=False)
        message = self.run_script(SCRIPT)
        self.assertEqual(self.values(), {"run": "0", "pages_to_scan": "100", "sleep_millisecs": "20"})
        self.assertIn("nothing was changed", message)

    def test_a_switch_that_does_not_keep_its_value_starts_nothing(self):
        self.kernel(switch=False)
        self.link(f"{KSM}/redhat_only_zero_pages", "/dev/null")
        message = self.run_script(SCRIPT, code=1)
        self.assertEqual(self.read(f"{KSM}/run"), "0\n")
        self.assertIn("merging was not started", message)

    def test_a_switch_that_can_not_be_written_starts_nothing(self):
        self.kernel(switch=False)
        os.mkdir(self.path(f"{KSM}/redhat_only_zero_pages"))
        self.run_script(SCRIPT, code=1)
        self.assertEqual(self.read(f"{KSM}/run"), "0\n")

    def test_a_pace_that_is_not_taken_starts_nothing(self):
        for name in ("pages_to_scan", "sleep_millisecs"):
            with self.subTest(name):
                self.kernel()
                os.remove(self.path(f"{KSM}/{name}"))
                self.link(f"{KSM}/{name}", "/dev/null")
                self.assertIn(name, self.run_script(SCRIPT, code=1))
                self.assertEqual(self.read(f"{KSM}/run"), "0\n")
                os.remove(self.path(f"{KSM}/{name}"))

    def test_the_pace_for_sizes_of_machines(self):
        for gb, pause in ((1, 50), (16, 50), (256, 50), (512, 50), (1024, 25), (2560, 10), (6144, 10)):
            with self.subTest(gb=gb):
                self.kernel(gb=gb)
                self.run_script(SCRIPT)
                self.assertEqual(self.values(), {
                    "redhat_only_zero_pages": "1", "run": "1", "pages_to_scan": "1000", "sleep_millisecs": str(pause)})

    def test_less_than_a_gb_does_not_divide_by_nothing(self):
        self.kernel()
        self.memory(GIB // 2)
        self.run_script(SCRIPT)
        self.assertEqual(self.values()["sleep_millisecs"], "50")

    def test_a_second_start_changes_nothing(self):
        self.kernel()
        self.run_script(SCRIPT)
        before = self.values()
        self.run_script(SCRIPT)
        self.assertEqual(self.values(), before)

    def test_a_kernel_without_ksm(self):
        self.memory(16 * GIB)
        self.assertIn("nothing to do", self.run_script(SCRIPT))

    def test_memory_that_is_not_known(self):
        self.kernel()
        self.write("proc/meminfo", "nonsense\n")
        self.run_script(SCRIPT, code=1)
        self.assertEqual(self.read(f"{KSM}/run"), "0\n")

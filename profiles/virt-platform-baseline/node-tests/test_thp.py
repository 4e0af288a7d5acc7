import os

from fakes import RootTest

THP = "sys/kernel/mm/transparent_hugepage"
SCRIPT = "transparent_huge_pages/files/kubevirt-thp-tune.py"
GIB = 2**20


class Thp(RootTest):
    def kernel(self, gb=16):
        self.memory(gb * GIB)
        self.write(f"{THP}/enabled", "[always] madvise never\n")
        self.write(f"{THP}/khugepaged/pages_to_scan", "4096\n")
        self.write(f"{THP}/khugepaged/scan_sleep_millisecs", "10000\n")

    def values(self):
        return [self.read(f"{THP}/{name}").strip()
                for name in ("enabled", "khugepaged/pages_to_scan", "khugepaged/scan_sleep_millisecs")]

    def test_the_values_for_sizes_of_machines(self):
        for gb, pause in ((1, 65000), (16, 5000), (256, 1250), (1024, 1062)):
            with self.subTest(gb=gb):
                self.kernel(gb)
                self.run_script(SCRIPT)
                self.assertEqual(self.values(), ["madvise", "130000", str(pause)])

    def test_a_missing_file_is_skipped(self):
        self.kernel()
        os.remove(self.path(f"{THP}/khugepaged/pages_to_scan"))
        self.assertIn("no khugepaged/pages_to_scan", self.run_script(SCRIPT))
        self.assertEqual(self.read(f"{THP}/khugepaged/scan_sleep_millisecs"), "5000\n")

    def test_a_value_that_is_not_taken_is_a_fault_and_the_others_are_set(self):
        self.kernel()
        os.remove(self.path(f"{THP}/enabled"))
        self.link(f"{THP}/enabled", "/dev/null")
        self.assertIn("enabled reads", self.run_script(SCRIPT, code=1))
        self.assertEqual(self.read(f"{THP}/khugepaged/scan_sleep_millisecs"), "5000\n")

    def test_memory_that_is_not_known(self):
        self.kernel()
        self.write("proc/meminfo", "")
        self.assertIn("left as they are", self.run_script(SCRIPT, code=1))
        self.assertEqual(self.values()[0], "[always] madvise never")

import os
import threading
import time

from fakes import RootTest

SCRIPT = "swap/files/kubevirt-tune-watermarks.py"
FACTOR = "proc/sys/vm/watermark_scale_factor"
CONFIG = "etc/kubernetes/kubelet.conf"
MIB, GIB = 2**20, 2**30
PAGE = os.sysconf("SC_PAGE_SIZE")


def zoneinfo(*zones):
    """Zones as (min, low, managed) in MiB, with the lines around them that look alike."""
    text = "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 12\n"
    for least, low, managed in zones:
        values = [size * MIB // PAGE for size in (least, low, 2 * low, managed)]
        text += ("  pages free     999999\n        boost    0\n        min      {}\n        low      {}\n"
                 "        high     {}\n        spanned  88888888\n        present  77777777\n        managed  {}\n"
                 "        cma      0\n        protection: (0, 0, 0)\n      nr_free_pages 5\n  pagesets\n"
                 "    cpu: 0\n              count: 3\n              high:  9\n").format(*values)
    return text


class Watermarks(RootTest):
    # A machine of 16 GiB in which the kernel's own settings give a low watermark of 84 MiB.
    before = zoneinfo((8, 10, 2048), (60, 74, 14336))

    def setUp(self):
        super().setUp()
        self.memory(16 * 2**20)
        self.write("proc/zoneinfo", self.before)
        self.write(FACTOR, "10\n")

    def config(self, value):
        self.write(CONFIG, f'kind: KubeletConfiguration\nevictionHard:\n  memory.available: "{value}"\nmaxPods: 5\n')

    def zoneinfo_after_the_write(self, text):
        """The kernel computes anew when the factor changes: a second reader gets the second text."""
        os.remove(self.path("proc/zoneinfo"))
        os.mkfifo(self.path("proc/zoneinfo"))

        def serve():
            with open(self.path("proc/zoneinfo"), "w", encoding="utf-8") as pipe:
                pipe.write(self.before)
            # The script writes the factor after it has read the first text to its end.
            while self.read(FACTOR) == "10\n":
                time.sleep(0.01)
            with open(self.path("proc/zoneinfo"), "w", encoding="utf-8") as pipe:
                pipe.write(text)

        threading.Thread(target=serve, daemon=True).start()

    def expected_factor(self, threshold, total=16 * GIB, least=68 * MIB, managed=16384 * MIB):
        target = threshold + max(256 * MIB, total // 100)
        return -((least - target) * 10000 // managed)

    def test_the_low_watermark_is_lifted(self):
        self.config("100Mi")
        self.zoneinfo_after_the_write(zoneinfo((8, 50, 2048), (60, 310, 14336)))
        message = self.run_script(SCRIPT)
        self.assertEqual(self.read(FACTOR), "176\n")
        self.assertEqual(self.expected_factor(100 * MIB), 176)
        self.assertIn("low watermark 360 MiB", message)

    def test_quantities(self):
        total = 16 * GIB
        table = {
            "100Mi": 100 * MIB, "1.5Gi": 1536 * MIB, "1Gi": GIB, "0.5Gi": GIB // 2, ".5Gi": GIB // 2, "1.Gi": GIB,
            "524288Ki": 512 * MIB, "0.001Ti": GIB * 1024 // 1000 + 1, "1e9": 10**9, "1E9": 10**9, "1.5e9": 15 * 10**8,
            "10e+8": 10**9, "1000000000000e-3": 10**9, "1G": 10**9, "1.5G": 15 * 10**8, "500M": 5 * 10**8,
            "500000k": 5 * 10**8, "0.001T": 10**9, "0.000001P": 10**9, "0.000000001E": 10**9,
            "500000000000m": 5 * 10**8, "500000000000000u": 5 * 10**8, "500000000000000000n": 5 * 10**8,
            "500m": 1, "+100Mi": 100 * MIB, "104857600": 100 * MIB, "0": 0, "10%": total // 10 + 1,
            "12.5%": total // 8, "0%": 0, "100%": 0}
        for text, threshold in table.items():
            with self.subTest(text):
                self.config(text)
                self.write(FACTOR, "10\n")
                # The watermark does not move here, which is a fault where it is not above the threshold.
                self.run_script(SCRIPT, code=1 if threshold >= 84 * MIB else 0)
                expected = min(1000, self.expected_factor(threshold))
                self.assertEqual(self.read(FACTOR), f"{expected}\n")

    def test_what_is_not_a_quantity_changes_nothing(self):
        for text in ("1.5gi", "1KiB", "1K", "ten", "1,5Gi", "--1", "-1", "1e", "1e9999", "1 Gi", "200Gi", "101%", "-1%",
                     "%", "1Gi%", "0x10", "\u0661"):
            with self.subTest(text):
                self.config(text)
                self.write(FACTOR, "10\n")
                self.assertIn("left as it is", self.run_script(SCRIPT, code=1))
                self.assertEqual(self.read(FACTOR), "10\n")

    def test_a_sufficient_watermark_is_not_written(self):
        self.config("100Mi")
        self.write("proc/zoneinfo", zoneinfo((8, 50, 2048), (60, 306, 14336)))
        os.remove(self.path(FACTOR))
        os.mkdir(self.path(FACTOR))  # a write would fail
        self.assertIn("is sufficient", self.run_script(SCRIPT))

    def test_a_boost_of_the_moment_does_not_count(self):
        self.config("100Mi")
        boost = 500 * MIB // PAGE
        self.write("proc/zoneinfo", zoneinfo((560, 574, 16384)).replace("boost    0", f"boost    {boost}"))
        self.run_script(SCRIPT, code=1)
        self.assertEqual(self.read(FACTOR), f"{self.expected_factor(100 * MIB, least=60 * MIB)}\n")

    def test_the_factor_is_clamped(self):
        self.config("3Gi")
        self.zoneinfo_after_the_write(zoneinfo((8, 410, 2048), (60, 2900, 14336)))
        message = self.run_script(SCRIPT, code=0)
        self.assertEqual(self.read(FACTOR), "1000\n")
        self.assertIn("1000 is the highest", message)

    def test_clamped_and_not_above_the_threshold_is_a_fault(self):
        self.config("20%")
        message = self.run_script(SCRIPT, code=1)
        self.assertEqual(self.read(FACTOR), "1000\n")
        self.assertIn("may be evicted", message)

    def test_the_smallest_factor_is_ten(self):
        self.memory(2**40 // 1024)
        self.config("0")
        self.write("proc/zoneinfo", zoneinfo((10200, 10220, 1024 * 1024)))
        self.write(FACTOR, "1\n")
        message = self.run_script(SCRIPT)
        self.assertEqual(self.read(FACTOR), "10\n")
        self.assertIn("warning: the min watermark", message)

    def test_a_higher_factor_of_somebody_else_is_not_lowered(self):
        self.config("3Gi")
        self.write(FACTOR, "2000\n")
        self.run_script(SCRIPT, code=1)
        self.assertEqual(self.read(FACTOR), "2000\n")

    def test_a_kernel_that_does_not_take_the_factor(self):
        self.config("100Mi")
        os.remove(self.path(FACTOR))
        self.write("stubborn", "10\n")
        os.mkfifo(self.path(FACTOR))  # what is written goes nowhere, what is read is always 10

        def serve():
            for mode in ("w", "r", "w"):
                with open(self.path(FACTOR), mode, encoding="utf-8") as pipe:
                    pipe.write("10\n") if mode == "w" else pipe.read()

        threading.Thread(target=serve, daemon=True).start()
        self.assertIn("did not take watermark_scale_factor 176", self.run_script(SCRIPT, code=1))

    def test_the_kubelet_has_no_configuration(self):
        message = self.run_script(SCRIPT, code=1)
        self.assertIn("no configuration of the kubelet", message)
        self.assertIn("left as it is", message)
        self.assertEqual(self.read(FACTOR), "10\n")

    def test_a_broken_configuration_is_not_taken_for_an_empty_one(self):
        for text in ('{"evictionHard": ', '{"evictionHard": ["memory.available"]}'):
            with self.subTest(text):
                self.write(CONFIG, text)
                self.assertIn("can't be read", self.run_script(SCRIPT, code=1))
                self.assertEqual(self.read(FACTOR), "10\n")

    def assert_threshold(self, threshold):
        self.write(FACTOR, "10\n")
        self.run_script(SCRIPT, code=1)
        self.assertEqual(self.read(FACTOR), f"{self.expected_factor(threshold)}\n")

    def test_forms_of_the_configuration(self):
        for text in ('{"evictionHard": {"memory.available": "1Gi"}}', 'evictionHard:\n  memory.available: 1Gi\n',
                     'evictionHard:\n    "memory.available": "1Gi" # why\n',
                     "evictionHard: {'memory.available': 1Gi}\n",
                     "evictionHard: {memory.available: 1Gi, nodefs.available: 5%}\n",
                     "evictionHard:\n  memory.available: 1Gi",
                     'a: 1\nevictionHard:\n  nodefs.available: "10%"\n\n  # memory.available: 5Gi\n'
                     "  memory.available: '1Gi'\nb: 2\n",
                     '"evictionHard":\r\n  "memory.available": "1Gi"\r\n'):
            with self.subTest(text):
                self.write(CONFIG, text)
                self.assert_threshold(GIB)

    def test_without_a_threshold_the_default_of_the_kubelet_counts(self):
        for text in ("", "{}", '{"evictionHard": null}', "evictionHard: {}\n",
                     "evictionHard:\n  allocatableMemory.available: 5Gi\nevictionSoft:\n  memory.available: 7Gi\n"):
            with self.subTest(text):
                self.write(CONFIG, text)
                self.assert_threshold(100 * MIB)

    def test_the_pull_secret_is_no_configuration(self):
        self.config("1Gi")
        self.write("var/lib/kubelet/config.json", '{"auths": {"example.com": {"auth": "c2VjcmV0"}}}')
        self.assert_threshold(GIB)

    def test_the_last_drop_in_counts(self):
        self.config("200Mi")
        self.assert_threshold(200 * MIB)
        self.write("etc/openshift/kubelet.conf.d/10-a.conf", "evictionHard:\n  memory.available: 300Mi\n")
        self.write("etc/openshift/kubelet.conf.d/20-b.conf", "evictionHard:\n  memory.available: 400Mi\n")
        self.write("etc/openshift/kubelet.conf.d/90-swap.conf", "failSwapOn: false\n")
        self.write("etc/openshift/kubelet.conf.d/99-no.txt", "evictionHard:\n  memory.available: 500Mi\n")
        self.assert_threshold(400 * MIB)

    def test_a_machine_without_zones(self):
        self.config("100Mi")
        self.write("proc/zoneinfo", "")
        self.assertIn("shows no memory", self.run_script(SCRIPT, code=1))

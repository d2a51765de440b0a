#!/usr/bin/env python3
"""Times attnscope beside PyTorch forms of the same mechanisms, and prints a Markdown table.

See README.md.  Both sides get the same tensors from files; outputs are compared at a small n,
times are taken in turns, in one run, with two threads.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

# glibc keeps its pages and OpenBLAS chooses its kernels: both sides at their best.
WANTED = {"MALLOC_MMAP_THRESHOLD_": "68719476736", "MALLOC_TRIM_THRESHOLD_": "68719476736",
          "MALLOC_TOP_PAD_": "67108864", "OMP_WAIT_POLICY": "passive"}
if __name__ == "__main__" and "MALLOC_TOP_PAD_" not in os.environ:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    os.execve(sys.executable, [sys.executable] + sys.argv, {**kept, **WANTED})

import numpy as np
import torch

import content
import kernels
import patterns
import recent
from common import HEADS, SIZE, Inputs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXPONENT_TURNS = 4
LONG = 5000  # ms: forms that take longer are compared by their first run
OURS = {k: v for k, v in os.environ.items() if k not in WANTED}


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.made = options, folder, {}
        self.most = 0  # multiply-adds: the largest of all turns, since neighbours disturb some

    def inputs(self, n, h=HEADS):
        """(tensors, file for q, k, v, file for x) of this size; the file is written once."""
        if (n, h) not in self.made:
            torch.manual_seed(n)
            q, k, v = (torch.randn(h, n, SIZE) for _ in range(3))
            x = torch.randn(n, h * SIZE)
            files = [os.path.join(self.folder, f"{what}{n}-{h}.npz") for what in ("qkv", "x")]
            np.savez(files[0], q=q.numpy(), k=k.numpy(), v=v.numpy())
            np.savez(files[1], x=x.numpy())
            self.made[n, h] = Inputs(q, k, v, x), *files
        return self.made[n, h]

    def words(self, case, n, tensors, h=HEADS, params=None):
        """The attnscope command line of a case, or of other parameters."""
        _, qkv, x = self.inputs(n, h)
        words = [self.options.attnscope, "run", case.mechanism, "-i", x if case.reads_x else qkv,
                 "-t", str(self.options.threads), "--causal" if case.causal else "--no-causal"]
        for name, value in (params or case.params).items():
            words += ["-p", f"{name}={value}"]
        for name, value in tensors.items():
            path = os.path.join(self.folder, f"{name}-{n}.npy")
            np.save(path, value.numpy())
            words += ["-p", f"{name}=@{path}"]
        return words

    def tensors(self, case, n, h=HEADS):
        torch.manual_seed(1)
        return case.tensors(n, h) if case.tensors else {}

    def forms(self, case, n, h=HEADS, wide=False):
        tensors, inputs = self.tensors(case, n, h), self.inputs(n, h)[0]
        if wide:
            inputs = Inputs(*(x.double() for x in (inputs.q, inputs.k, inputs.v, inputs.x)))
        return case.forms(inputs, case.params, tensors), tensors

    def agreement(self, case):
        """Largest difference of the two outputs, relative to max(1, |value|), at check_n."""
        heads = 2
        forms, tensors = self.forms(case, case.check_n, heads, case.check_wide)
        with tempfile.TemporaryDirectory(dir=self.folder) as dump:
            subprocess.run(self.words(case, case.check_n, tensors, heads) + ["--dump", dump],
                           env=OURS, check=True, stdout=subprocess.DEVNULL)
            ours = torch.from_numpy(np.load(os.path.join(dump, "output.npy")))
        worst = 0.0
        for form in forms.values():
            theirs = form().reshape(ours.shape)
            worst = max(worst, ((theirs - ours).abs() / ours.abs().clamp(min=1)).max().item())
        return worst

    def ours(self, words, repeats):
        """Milliseconds of a run: its samples, or the processor's time when asked for."""
        done = subprocess.run(words + ["-r", str(repeats), "--json"], env=OURS, check=True,
                              capture_output=True, text=True)
        record = json.loads(done.stdout)
        if record["status"] != "OK":
            raise RuntimeError(record["message"])
        parts = record["flops"]["counted_parts"]
        self.products = parts["score"] + parts["mixing"]
        self.counted = sum(parts.values())
        if self.options.cpu:
            return [record["cpu_ms"]]
        return [record["time_ms"]["median"]]

    def take_peak(self):
        """Multiply-adds of the machine, as FLOPs a second of one thread, or of all: `roofline`.
        Processor time counts threads one after the other."""
        threads = 1 if self.options.cpu else self.options.threads
        done = subprocess.run([self.options.attnscope, "roofline", "full", "-n", "64", "-t",
                               str(threads), "--json"], env=OURS, check=True,
                              capture_output=True, text=True)
        self.most = max(self.most, json.loads(done.stdout)["ceilings"]["peak"])

    def theirs(self, form, repeats):
        clock = time.process_time if self.options.cpu else time.perf_counter
        times = []
        for _ in range(repeats):
            start = clock()
            form()
            times.append(1e3 * (clock() - start))
        return times

    def fastest(self, forms):
        """The name of the form that takes least; each was run once before."""
        best = {}
        for name, form in forms.items():
            first = self.theirs(form, 1)[0]
            if len(forms) > 1 and first < LONG:
                first = min(self.theirs(form, 2))
            best[name] = first
        return min(best, key=best.get)

    def pair(self, case, n):
        """Times of both sides at n, in turns: medians, and all of them."""
        forms, tensors = self.forms(case, n)
        name = self.fastest(forms)
        words, ours, theirs = self.words(case, n, tensors), [], []
        for _ in range(self.options.rounds):
            if self.options.peak:
                self.take_peak()
            ours += self.ours(words, self.options.repeats)
            theirs += self.theirs(forms[name], self.options.repeats)
        return dict(n=n, form=name, ours=statistics.median(ours),
                    theirs=statistics.median(theirs), products=self.products,
                    counted=self.counted, samples=[ours, theirs])

    def exponent(self, case, first, last):
        """Of attnscope's times between two sizes, the least of some turns: neighbours slow a
        shared memory down for seconds.  A long run is not made."""
        words = {}
        for n in (first, last):
            params, tensors = case.params, self.tensors(case, n)
            if case.held:
                torch.manual_seed(1)
                params, tensors = case.held(n, HEADS)
            words[n] = self.words(case, n, tensors, params=params)
        times = {n: [] for n in words}
        for _ in range(EXPONENT_TURNS):
            for n in words:
                times[n].append(self.ours(words[n], 3))
        least = {n: min(times[n])[0] for n in words}
        return math.log(least[last] / least[first]) / math.log(last / first)

    def row(self, case):
        sizes = [n // 4 for n in case.sizes] if self.options.quick else list(case.sizes)
        sizes = self.options.n or sizes
        last = sizes[-1] * 2 if self.options.quick else max(case.long, sizes[-1])
        row = dict(mechanism=case.name, claim=case.exponent_claim, held=case.held_as,
                   floor=case.floor, aim=case.aim,
                   difference=self.agreement(case), timed=[self.pair(case, n) for n in sizes])
        first, end = row["timed"][0], row["timed"][-1]
        if not self.options.no_exponent and end["ours"] * (last / sizes[-1]) ** case.claim < 5000:
            row["exponent"] = self.exponent(case, sizes[0], last)
        if len(sizes) > 1:
            row["their_exponent"] = (math.log(end["theirs"] / first["theirs"])
                                     / math.log(sizes[-1] / sizes[0]))
        return row


def peak_lines(row, peak):
    """What PyTorch leaves to gain: by its products, which are those of scores and sums of values,
    and by all counted FLOPs, with the projections, hashes and exponentials that both sides
    compute."""
    for timed in row["timed"]:
        share = 1e3 * timed["products"] / timed["theirs"] / peak
        counted = 1e3 * timed["counted"] / timed["theirs"] / peak
        yield (f"| {row['mechanism']} | {timed['n']} | {share:.2f} | "
               f"{1 / share:.2f} | {counted:.2f} | {1 / counted:.2f} | "
               f"{timed['theirs'] / timed['ours']:.2f} | {timed['form']} |")


PEAK_HEAD = ("| mechanism | n | PyTorch, share of the peak | largest ratio | share by all counted "
             "FLOPs | largest ratio | ratio | form |\n|---|---|---|---|---|---|---|---|")
HEAD = ("| mechanism | n | attnscope, ms | PyTorch, ms | ratio | form | exponent | PyTorch's "
        "| claimed | difference |\n|---|---|---|---|---|---|---|---|---|---|")


def lines(row):
    """A line for each n; exponents, claim and agreement stand in the last one."""
    for timed in row["timed"]:
        last = timed is row["timed"][-1]
        ratio = timed["theirs"] / timed["ours"]
        mark = " (below the floor)" if last and ratio < row["floor"] else ""
        more = ["", "", "", ""]
        if last:
            exponent = row.get("exponent")
            away = 0 if exponent is None else exponent - row["claim"]
            grown = " (off)" if away > 0.1 else " (less)" if away < -0.1 else ""
            held = f" with {row['held']}" if row["held"] else ""
            more = ["" if exponent is None
                    else f"{exponent:.2f}{held}{grown}",
                    f"{row['their_exponent']:.2f}" if "their_exponent" in row else "",
                    f"{row['claim']:g}", f"{row['difference']:.0e}"]
        yield (f"| {row['mechanism']} | {timed['n']} | {timed['ours']:.1f} | {timed['theirs']:.1f} "
               f"| {ratio:.2f}{mark} | {timed['form']} | " + " | ".join(more) + " |")


def machine(options):
    with open("/proc/cpuinfo") as info:
        cpu = next((x.split(":")[1].strip() for x in info if x.startswith("model name")), "?")
    load = os.getloadavg()[0]
    clock = "processor time" if options.cpu else "wall time"
    return (f"{cpu}, {os.cpu_count()} processors, {options.threads} threads; PyTorch "
            f"{torch.__version__} ({torch.backends.cpu.get_cpu_capability()}); {clock}; "
            f"{time.strftime('%Y-%m-%d')}; load {load:.1f} at the start.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--attnscope", default=os.path.join(ROOT, "build", "attnscope"))
    parser.add_argument("--only", action="append", metavar="MECH", help="repeatable")
    parser.add_argument("--quick", action="store_true", help="a quarter of each n")
    parser.add_argument("--n", type=int, action="append", metavar="N",
                        help="this n instead of the table's; repeatable, from the least on")
    parser.add_argument("--check", action="store_true", help="compare outputs, time nothing")
    parser.add_argument("--cpu", action="store_true",
                        help="processor time instead of wall time, for a busy machine")
    parser.add_argument("--peak", action="store_true",
                        help="a second table: the share of the machine's multiply-adds that "
                             "PyTorch's products reach, and the largest ratio that this leaves")
    parser.add_argument("--rounds", type=int, default=3, help="turns of both sides (3)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of a turn (5)")
    parser.add_argument("--no-exponent", action="store_true", help="only the sizes of the table")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", metavar="FILE", help="everything measured")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    cases = patterns.table() + kernels.table() + content.table() + recent.table()
    if options.only:
        cases = [c for c in cases if c.mechanism in options.only]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        if options.check:
            for case in cases:
                print(f"{case.name}: {bench.agreement(case):.1e}", flush=True)
            return
        print(machine(options) + "\n\n" + HEAD)
        for case in cases:
            try:
                rows.append(bench.row(case))
            except (subprocess.CalledProcessError, RuntimeError, OSError) as error:
                print(f"{case.name}: {error}", file=sys.stderr)
                continue
            for line in lines(rows[-1]):
                print(line, flush=True)
    if options.peak:
        print(f"\npeak: {1e-9 * bench.most:.1f} GFLOP/s\n\n" + PEAK_HEAD)
        for row in rows:
            print("\n".join(peak_lines(row, bench.most)), flush=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(dict(machine=machine(options), rows=rows), out, indent=1)


if __name__ == "__main__":
    main()

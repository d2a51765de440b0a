"""The same data drawn by attnscope and by matplotlib, six figures, side by side.

    ~/peers/bin/pip install matplotlib numpy
    ~/peers/bin/python tests/peers/figures.py build/attnscope twins

Each figure becomes twins/NAME.png, ours on the left.  matplotlib gets what a careful user gives it:
the same size, the same dots per inch, the same colours and words, constrained layout.  Weights come
from `run --dump`; curves from the numbers that a figure file holds.  What the comparison found is in
docs/figures.md, "Beside matplotlib".
"""
import html
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

DPI = 150
CAUSES = [("window", 1, "#004A7D"), ("global", 2, "#DB6308"), ("random", 4, "#39BB8E")]


def run(binary, *words):
    subprocess.run([binary, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def dumped(binary, folder, mechanism, n, name):
    place = folder / ("dump-" + mechanism)
    run(binary, "run", mechanism, "-n", str(n), "--dump", str(place))
    return np.squeeze(np.load(place / (name + ".npy")))


def stored(path):
    """The panels that the figure file holds: series with x, y, low, high, labels."""
    text = re.search(r'attnscope:numbers">(.*?)</entry>', path.read_text(), re.S).group(1)
    return json.loads(html.unescape(text))["panels"]


def numbers(values):
    return np.array([np.nan if v is None else v for v in values], dtype=float)


def square(width, panels):
    return plt.subplots(1, panels, figsize=(width, width / panels), layout="constrained",
                        squeeze=False)


def key_axis(axes):
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("key")
    axes.set_ylabel("query")


def weights(binary, folder, out):
    figure, axes = square(3.25, 1)
    image = axes[0, 0].imshow(dumped(binary, folder, "full", 48, "weights"), cmap="viridis", vmin=0)
    axes[0, 0].set_title("Full attention · weights", fontsize=9)
    key_axis(axes[0, 0])
    figure.colorbar(image, label="weight", shrink=0.8)
    figure.savefig(out, dpi=DPI)
    return ["figure", "full:weights", "-n", "48"]


def causes(binary, folder, out):
    bits = dumped(binary, folder, "bigbird", 48, "components").astype(int)
    shown = np.zeros_like(bits)
    for number, (_, bit, _) in enumerate(CAUSES):
        shown[(bits & bit) > 0] = number + 1  # later causes are drawn over earlier ones
    shown[(bits & 2) > 0] = 2
    figure, axes = square(3.25, 1)
    axes[0, 0].imshow(shown, cmap=ListedColormap(["white"] + [c for _, _, c in CAUSES]), vmin=0,
                      vmax=3, interpolation="nearest")
    axes[0, 0].set_title("BigBird · connectivity", fontsize=9)
    key_axis(axes[0, 0])
    figure.legend(handles=[Patch(color=c, label=name) for name, _, c in CAUSES],
                  loc="outside lower center", ncols=3, fontsize=7)
    figure.savefig(out, dpi=DPI)
    return ["figure", "bigbird", "-n", "48"]


def difference(binary, folder, out):
    values = (dumped(binary, folder, "bigbird", 48, "weights")
              - dumped(binary, folder, "full", 48, "weights"))
    far = np.nanmax(np.abs(values))
    figure, axes = square(3.25, 1)
    image = axes[0, 0].imshow(values, cmap="PuOr_r", vmin=-far, vmax=far)
    axes[0, 0].set_title("BigBird − full attention · weights", fontsize=9)
    key_axis(axes[0, 0])
    figure.colorbar(image, label="difference", shrink=0.8)
    figure.savefig(out, dpi=DPI)
    return ["figure", "bigbird:weights - full:weights", "-n", "48"]


def curves(panels, width, out):
    figure, axes = plt.subplots(1, len(panels), figsize=(width, 2.8), layout="constrained",
                                squeeze=False)
    for panel, axis in zip(panels, axes[0]):
        for number, series in enumerate(panel["series"]):
            x, y = numbers(series["x"]), numbers(series["y"])
            if series.get("guide"):
                axis.plot(x, y, "--", color="grey", linewidth=0.8)
                axis.annotate(series["name"], (x[-1], y[-1]), fontsize=6, ha="right", va="bottom")
                continue
            points = series["mark"] == "points"
            line, = axis.plot(x, y, "o" if points else "o-", markersize=3, label=series["name"])
            if series.get("low") and not points:
                axis.fill_between(x, numbers(series["low"]), numbers(series["high"]), alpha=0.22,
                                  color=line.get_color())
            for at, text in enumerate(series.get("labels") or []):
                axis.annotate(text, (x[at], y[at]), xytext=(3, 3), textcoords="offset points",
                              fontsize=6, color=line.get_color())
        axis.set_xscale("log" if panel["along"].get("log") else "linear")
        axis.set_yscale("log" if panel["up"].get("log") else "linear")
        axis.set_xlabel(panel["x"])
        axis.set_ylabel(panel["y"])
        axis.set_title(panel["title"], fontsize=9)
        axis.legend(fontsize=6)
    figure.savefig(out, dpi=DPI)


def measured(words, width):
    def draw(binary, folder, out):
        file = folder / (out.stem + ".svg")
        run(binary, *words, "-o", str(file))
        curves(stored(file), width, out)
        return ["rerender", str(file)]
    return draw


TWINS = {
    "weights": weights,
    "causes": causes,
    "difference": difference,
    "vary": measured(["compare", "performer", "nystrom", "-n", "128", "--vary", "features=8:64:x2",
                      "--seeds", "3", "--plot", "error,time", "--width", "6.75", "--dpi", str(DPI)], 6.75),
    "scaling": measured(["compare", "full", "bigbird", "reformer", "linear", "-n", "1024", "--plot",
                         "scaling", "--width", "3.25", "--dpi", str(DPI)], 3.25),
    "roofline": measured(["roofline", "full", "bigbird", "reformer", "-n", "512", "--width",
                          "3.25", "--dpi", str(DPI)], 3.25),
}


def beside(ours, theirs, out):
    left, right = plt.imread(ours)[..., :3], plt.imread(theirs)[..., :3]
    page = np.ones((max(left.shape[0], right.shape[0]), left.shape[1] + right.shape[1] + 20, 3))
    page[:left.shape[0], :left.shape[1]] = left
    page[:right.shape[0], left.shape[1] + 20:] = right
    plt.imsave(out, page.clip(0, 1))


def main():
    binary, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in TWINS.items():
        theirs, ours = folder / f"{name}-matplotlib.png", folder / f"{name}-ours.png"
        words = draw(binary, folder, theirs)
        if words[0] == "rerender":  # with the dots per inch that it stores
            run(binary, *words, "-o", str(ours))
        else:
            run(binary, *words, "--dpi", str(DPI), "-o", str(ours))
        beside(ours, theirs, folder / f"{name}.png")
        print(folder / f"{name}.png")


if __name__ == "__main__":
    main()

"""Results as a table and as a picture."""
import statistics

# Rows whose smaller value is the better one are told by their unit.
SMALL = (", ms", ", MiB", ", us")


def better_small(row):
    return row.endswith(SMALL)


def number(x):
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.2f}" if abs(x) < 10 else f"{x:.1f}"


def cell(values):
    values = [v for v in values if v is not None]
    return " / ".join(number(f(values)) for f in (min, statistics.median, max)) if values else ""


def median(results, name, row):
    values = [v for v in results.get(name, {}).get(row, []) if v is not None]
    return statistics.median(values) if values else None


def derived(results, limits):
    """Rows that are ratios of others."""
    for name, rows in results.items():
        sends = {row: median(results, name, row) for row in rows}
        if sends.get("sends/s, 1024 in flight"):
            rows["sends/s, 1024 in flight / the limit"] = [sends["sends/s, 1024 in flight"] /
                                                           statistics.median(limits["sends/s, 1,024 in flight"])]
        if sends.get("sends/s under SYNC_FLUSH, 64 in flight"):
            rows["SYNC_FLUSH: messages for each fdatasync that the disk can do"] = [
                sends["sends/s under SYNC_FLUSH, 64 in flight"] / statistics.median(limits["fdatasync/s"])]
        if sends.get("sends/s under SYNC_FLUSH, 64 in flight") and sends.get("sends/s, 64 in flight"):
            rows["SYNC_FLUSH / ASYNC_FLUSH, 64 in flight"] = [sends["sends/s under SYNC_FLUSH, 64 in flight"] /
                                                              sends["sends/s, 64 in flight"]]


def rows_of(results):
    return list(dict.fromkeys(row for name in results for row in results[name]))


def ratio(results, row, other):
    """How many times better ours is."""
    ours, theirs = median(results, "ours", row), median(results, other, row)
    if not ours or not theirs or row.startswith("refused"):
        return None
    return theirs / ours if better_small(row) else ours / theirs


def table(results, limits):
    names = [n for n in results if results[n]]
    others = [n for n in names if n != "ours"]
    lines = ["Each cell: minimum / median / maximum over the rounds; \"× NAME\": how many times better ours is, by the medians.", ""]
    lines += ["| what no server can do better than: one that only frames and answers, a file alone | |", "| --- | ---: |"]
    lines += [f"| {what} | {cell(values)} |" for what, values in limits.items()] + [""]
    lines.append("| | " + " | ".join(names) + "".join(f" | × {n}" for n in others) + " |")
    lines.append("| --- |" + " ---: |" * (len(names) + len(others)))
    for row in rows_of(results):
        cells = [cell(results[n].get(row, [])) for n in names]
        times = [ratio(results, row, n) for n in others]
        lines.append(f"| {row} | " + " | ".join(cells + [number(t) if t else "" for t in times]) + " |")
    return "\n".join(lines) + "\n"


def svg(results):
    """A bar for each row that another system has too: how many times better ours is, on a logarithmic scale of 0.1 to 10,000."""
    bars = [(row, n, ratio(results, row, n)) for row in rows_of(results) for n in results if n != "ours"]
    bars = [b for b in bars if b[2]]
    left, width, step = 420, 500, 18
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 80}" height="{step * len(bars) + 50}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']

    def x(value):
        from math import log10
        return left + width * (log10(min(max(value, 0.1), 10000)) + 1) / 5

    for mark in (0.1, 1, 10, 100, 1000, 10000):
        out.append(f'<line x1="{x(mark):.0f}" x2="{x(mark):.0f}" y1="20" y2="{step * len(bars) + 25}" stroke="#ccc"/>'
                   f'<text x="{x(mark):.0f}" y="14" text-anchor="middle">{mark:g} ×</text>')
    for i, (row, name, value) in enumerate(bars):
        y = 25 + i * step
        a, b = sorted((x(1), x(value)))
        colour = "#2a7" if value >= 1 else "#c44"
        text = f"{row} ({name})".replace("&", "&amp;").replace("<", "&lt;")
        out.append(f'<text x="{left - 8}" y="{y + 10}" text-anchor="end">{text}</text>'
                   f'<rect x="{a:.0f}" y="{y}" width="{max(b - a, 1):.0f}" height="{step - 6}" fill="{colour}"/>'
                   f'<text x="{b + 4:.0f}" y="{y + 10}">{number(value)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def flat_svg(results):
    """A line for each thing that there may be much of: what a send costs against how much of it there is.  None: not measured."""
    import flat
    from math import log10
    lines = {}
    for row in results.get("ours", {}):
        if row.startswith(flat.ROW):
            n, what = row[len(flat.ROW) + 2:].split(" ", 1)
            lines.setdefault(what, []).append((int(n), median(results, "ours", row)))
    if not lines:
        return None
    width, height, gap, per_row = 240, 150, 60, 4
    high = max(2.0, max(v for points in lines.values() for _, v in points) * 1.1)
    rows = (len(lines) + per_row - 1) // per_row
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{per_row * (width + gap)}" height="{rows * (height + gap) + 30}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
           '<text x="10" y="16">CPU time of a send, as a multiple of that with few; the red line is 1.2</text>']
    for i, (what, points) in enumerate(lines.items()):
        left, top = 40 + i % per_row * (width + gap), 40 + i // per_row * (height + gap)
        low, span = log10(points[0][0]), max(log10(points[-1][0]) - log10(points[0][0]), 1e-9)

        def x(n):
            return left + width * (log10(n) - low) / span

        def y(v):
            return top + height * (1 - v / high)

        out.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#ccc"/>'
                   f'<line x1="{left}" x2="{left + width}" y1="{y(1):.0f}" y2="{y(1):.0f}" stroke="#ccc"/>'
                   f'<line x1="{left}" x2="{left + width}" y1="{y(1.2):.0f}" y2="{y(1.2):.0f}" stroke="#c44"/>'
                   f'<text x="{left + width / 2:.0f}" y="{top + height + 28}" text-anchor="middle">{what}</text>'
                   f'<text x="{left - 4}" y="{y(1) + 4:.0f}" text-anchor="end">1</text>'
                   '<polyline fill="none" stroke="#27a" stroke-width="2" points="' +
                   " ".join(f"{x(n):.0f},{y(v):.0f}" for n, v in points) + '"/>')
        for n, v in points:
            out.append(f'<circle cx="{x(n):.0f}" cy="{y(v):.0f}" r="3" fill="#27a"/>'
                       f'<text x="{x(n):.0f}" y="{y(v) - 6:.0f}" text-anchor="middle">{v:.2f}</text>'
                       f'<text x="{x(n):.0f}" y="{top + height + 14}" text-anchor="middle">{n:,}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"

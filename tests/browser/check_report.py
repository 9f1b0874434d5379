#!/usr/bin/env python3
"""check_report.py PAGE HOSTILE: both pages in a real browser; prints TAP. See t8000-report.sh."""
import os
import re
import sys
import zlib

from devtools import Browser

count = 0
failed = 0


def ok(holds, name, note=""):
    global count, failed
    count += 1
    failed += not holds
    print(f"{'ok' if holds else 'not ok'} {count} - {name}")
    if not holds and note != "":
        print("\n".join("# " + line for line in str(note).splitlines()))
    sys.stdout.flush()


PLOTS = """[...document.querySelectorAll('figure.plot')].map(f => ({
    title: f.querySelector('figcaption').textContent,
    said: +f.dataset.marks,
    bars: f.querySelectorAll('.pt rect.part').length,
    marks: f.querySelectorAll('.pt').length,
    shown: [...f.querySelectorAll('.pt')].filter(p => { const r = p.getBoundingClientRect();
        return r.width > 0 && r.height > 0; }).length,
    label: f.querySelector('svg').getAttribute('aria-label'),
    role: f.querySelector('svg').getAttribute('role'),
    rows: f.querySelectorAll('details tbody tr').length}))"""

# Text of plots that lies over other text, or outside of its drawing.
COLLISIONS = """[...document.querySelectorAll('figure.plot svg')].flatMap(svg => {
    const box = svg.getBoundingClientRect(), title = svg.closest('figure').querySelector('figcaption').textContent;
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    const bad = texts.filter(([, r]) => r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 ||
        r.bottom > box.bottom + 1).map(([s]) => title + ': outside: ' + s);
    for (let i = 0; i < texts.length; i++)
        for (let k = 0; k < i; k++) {
            const [s, a] = texts[i], [u, b] = texts[k];
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
                Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
                bad.push(title + ': ' + s + ' over ' + u);
        }
    return bad; })"""

# Tables that are wider than their place, with the text before them; ticks of accuracy above 1.
CUT_OFF = """[...document.querySelectorAll('.wide')].filter(w => w.scrollWidth > w.clientWidth + 1)
    .map(w => w.scrollWidth + ': ' + w.textContent.slice(0, 80))"""
TOO_HIGH = """[...document.querySelectorAll('figure.plot')].filter(f => /^Test( and training)? accuracy/.test(f.textContent))
    .flatMap(f => [...f.querySelectorAll('text.tick')].filter(t => t.getAttribute('text-anchor') === 'end' &&
        +t.textContent > 1).map(t => t.textContent))"""

TIP = "(t => t && !t.hidden ? t.textContent : '')(document.getElementById('tip'))"


def middle(page, selector, index):
    """Where a mark is once it has come into view; scrolling is over then."""
    return page.evaluate(f"""(async () => {{ const p = document.querySelectorAll('{selector}')[{index}];
        p.scrollIntoView({{block: 'center', behavior: 'instant'}});
        for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
        const r = (p.querySelector('.hit, .part') || p).getBoundingClientRect();
        return [r.left + r.width / 2, r.top + r.height / 2]; }})()""")


def check_plots(page, wanted):
    plots = page.evaluate(PLOTS)
    titles = [p["title"] for p in plots]
    for title in wanted:
        ok(any(title in t for t in titles), f"a plot of {title}", "\n".join(titles))
    for p in plots:
        enough = p["marks"] >= p["said"] if p["bars"] else p["marks"] == p["said"]
        ok(enough and p["said"] > 0 and p["shown"] == p["marks"], f"{p['title']}: {p['marks']} marks, all drawn", p)
    ok(all(p["role"] == "img" and p["title"] in p["label"] for p in plots), "every plot says what it is")
    ok(all(p["rows"] > 0 for p in plots), "every plot has its values as a table")
    return plots


def check_hover(page):
    ok(page.evaluate(TIP) == "", "no value is shown by itself")
    for index in (0, 5):
        page.move(*middle(page, "figure.plot .pt", index))
        text = page.evaluate(TIP)
        ok(re.search(r"batch 96: bert-base on .* samples/s", text) is not None, f"hover shows the value of mark {index}", text)
    inside = page.evaluate("""(() => { const r = document.getElementById('tip').getBoundingClientRect();
        return r.left >= 0 && r.top >= 0 && r.right <= innerWidth && r.bottom <= innerHeight; })()""")
    ok(inside, "inside the window")
    bar = page.evaluate("[...document.querySelectorAll('figure.plot .pt')].findIndex(p => p.querySelector('.part'))")
    page.move(*middle(page, "figure.plot .pt", bar))
    text = page.evaluate(TIP)
    ok(re.search(r"compute [0-9.]+ ms \([0-9]+ %\)", text) is not None, "hover shows the value of a part of a bar", text)
    page.move(1, 1)
    ok(page.evaluate(TIP) == "", "and hides it again")
    ok(page.evaluate("document.querySelectorAll('.pt title').length") == 0, "the browser's own hint does not show as well")


def check_hosts(page):
    """The timeline of an elastic run: eleven bars in four rows, a loss, a host that is back; the reason on hover."""
    figure = "figure.plot[data-hosts]"
    page.evaluate("""document.querySelectorAll('figure.plot').forEach(f => {
        if (/^Hosts of/.test(f.querySelector('figcaption').textContent)) f.dataset.hosts = 1; })""")
    counts = page.evaluate(f"""['.pt rect.part', '.pt .cross:not(.halo)', '.pt .come'].map(
        s => document.querySelectorAll('{figure} ' + s).length)""")
    ok(counts == [11, 1, 1], "bars, losses and returns of hosts", counts)
    rows = page.evaluate(f"new Set([...document.querySelectorAll('{figure} .pt rect')].map(r => r.getAttribute('y'))).size")
    ok(rows == 4, "a row per host", rows)
    page.move(*middle(page, f"{figure} .pt:has(.cross)", 0))
    text = page.evaluate(TIP)
    ok("lost after 7.0 s: node 3" in text and "<script>alert(5)</script>" in text, "hover shows why a host was lost", text)
    page.move(1, 1)


def check_sizes(page):
    for width in (1280, 800, 380):
        page.size(width, 900)
        wide = page.evaluate("document.documentElement.scrollWidth")
        ok(wide <= width, f"{width} pixels are enough: nothing scrolls but tables and plots", wide)
    page.size(1016, 900)
    bad = page.evaluate(CUT_OFF)
    ok(not bad, "1016 pixels are enough for every table", bad)
    bad = page.evaluate(TOO_HIGH)
    ok(not bad, "an axis of accuracy ends at 1", bad)
    page.size(1000, 900)
    bad = page.evaluate(COLLISIONS)
    ok(not bad, "no text of a plot lies over another or outside", "\n".join(bad[:20]))


def check_dark(page):
    colours = []
    for dark in (False, True):
        page.dark(dark)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    page.dark(False)
    ok(colours[0] == "rgb(255, 255, 255)" and colours[1] != colours[0], "light and dark", colours)


def check_without_script(browser, url):
    page = browser.open("about:blank")
    page.script(False)
    page.go(url)
    page.script(True)  # to look at what the page did not do itself
    ok(page.evaluate("document.getElementById('tip') === null"), "without script there is no tooltip")
    ok(page.evaluate("[...document.querySelectorAll('.pt')].every(p => p.querySelector('title').textContent)"),
       "and every mark has its value as the browser's own hint")


def check_print(page, path):
    page.pdf(path)
    with open(path, "rb") as file:
        data = file.read()
    text = data + b"".join(inflate(s) for s in re.findall(rb"stream\r?\n(.*?)endstream", data, re.S))
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", text))
    ok(data.startswith(b"%PDF-") and pages > 1, "prints to PDF", f"{len(data)} bytes, {pages} pages")


def inflate(stream):
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def check_hostile(browser, url):
    page = browser.open(url)
    ok(not page.errors, "names full of markup: no errors", page.errors)
    ok(page.evaluate("document.scripts.length") == 1, "one script: our own")
    ok(page.evaluate("document.images.length + document.querySelectorAll('b b, i, a[href^=javascript]').length") == 0,
       "no element of theirs")
    ok("<script>alert(1)</script>" in page.evaluate("document.body.textContent"), "but the names, as text")
    ok(page.evaluate("document.title") == "T</title><script>alert(3)</script>", "in the title, too")
    bad = page.evaluate(COLLISIONS)
    ok(not bad, "long names do not cover other text", "\n".join(bad[:20]))


def main():
    urls = ["file://" + os.path.abspath(p) for p in sys.argv[1:3]]
    with Browser() as browser:
        page = browser.open(urls[0])
        page.size(1000, 900)
        ok(not page.errors, "no script errors", "\n".join(page.errors))
        ok([r for r in page.requests if not r.startswith("data:")] == urls[:1], "nothing else is fetched", page.requests)
        check_plots(page, ("Throughput of bert-base by devices", "Speedup by devices, ours and published",
                           "Efficiency by devices", "AllReduce against PS against ideal: resnet18", "Training loss of resnet18",
                           "Test accuracy of resnet50", "Where a step's time goes", "By node", "Speed of each node",
                           "Predicted throughput of resnet18", "Training loss of cnn", "Test and training loss of cnn",
                           "Test and training accuracy of cnn", "Learning rate of cnn", "Confusion matrix of run", "Hosts of run"))
        check_hosts(page)
        check_hover(page)
        check_sizes(page)
        check_dark(page)
        check_without_script(browser, urls[0])
        check_print(page, "report.pdf")
        ok(not page.errors, "still no script errors", "\n".join(page.errors))
        check_hostile(browser, urls[1])
    print(f"1..{count}")
    sys.exit(failed > 0)


main()

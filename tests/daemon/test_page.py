#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The status page: complete without a script, safe whatever names and reasons
hold, and fit to be looked at, on a desk and on a telephone, by day and by
night. XLB_SHOTS=DIR keeps pictures."""

import base64
import hashlib
import html.parser
import os
import re
import shutil
import sys
import tempfile
import time

import browser
import node
import scrape
from node import VIP, check, tap, wait
from test_metrics import configure, reload, send

URL = "http://127.0.0.1:9555/"
EVIL = "<img src=x onerror=document.title=1>&amp;\\42\\47</small><script>1"
MORE = f"""
checks:
  ok: {{type: exec, command: [/bin/true], interval: 10s, timeout: 10s}}
  evil:
    type: exec
    port: 80
    interval: 10s
    timeout: 10s
    command: [/usr/bin/printf, "{EVIL.replace(chr(92), chr(92) * 2)}%d", x]
"""


def site(n):
    """Two pools: one is well, the backends of the other say what they like."""
    n.file.write_text(f"""node: {{name: n}}
interfaces: [{{name: eth0}}]
{node.BGP}
{MORE}
pools:
  web:
    check: ok
    backends: [{{name: a, address: 10.0.1.11}},
               {{name: b, address: 10.0.1.12, weight: 50}}]
  evil:
    check: evil
    backends: [{{name: a, address: 10.0.1.11}}, {{name: b, address: 10.0.1.12}}]
services:
  - {{name: www, addresses: [{VIP}], listen: [tcp/80, udp/443], pool: web}}
  - {{name: bad, addresses: [203.0.113.11], listen: ["tcp/*"], pool: evil}}
metrics: {{listen: 127.0.0.1:9555}}
""")
    n.start_xlbd()
    wait("an answer", lambda: scrape.answers(n))
    wait("the checks", lambda: {b["health"] for p in n.status()["pools"]
                                for b in p["backends"]} == {"up", "down"})
    wait("the address to be known in BIRD", lambda: any(
        a["in_bird"] for a in n.status()["addresses"]))


class Parser(html.parser.HTMLParser):
    """Its elements, and that they close as they open."""
    VOID = {"meta", "rect", "polyline", "br", "img", "link"}
    LAZY = {"tr", "td", "th", "li"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words, self.wrong = [], [], [], []
        self.feed(text)
        self.close()
        self.wrong += [f"<{t}> is not closed" for t in self.open]

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID | self.LAZY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)


def digest(text):
    return "sha256-" + base64.b64encode(
        hashlib.sha256(text.encode()).digest()).decode()


def whole(n):
    """All is in the page itself, and well-formed; the policy says so."""
    site(n)
    r = scrape.ask(n, "/")
    check(r.status == 200 and
          r.header["content-type"] == "text/html; charset=utf-8", r.header)
    text = r.text()
    page = Parser(text)
    check(not page.wrong, page.wrong)
    policy = dict(p.strip().split(" ", 1) for p in
                  r.header["content-security-policy"].split(";"))
    check(policy["default-src"] == "'none'", policy)
    for tag in ("style", "script"):
        inner = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.S)
        check(len(inner) == 1, tag, len(inner))
        check(policy[tag + "-src"] == f"'{digest(inner[0])}'",
              f"core/page_text.h should say {digest(inner[0])}")
    for tag, attrs in page.tags:
        check(tag not in ("img", "link", "iframe", "object", "form", "base"),
              tag)
        check("style" not in attrs and "src" not in attrs, tag, attrs)
        check(attrs.get("href", "/metrics") == "/metrics", tag, attrs)
        check(not [a for a in attrs if a.startswith("on")], tag, attrs)
    check(r.header["x-content-type-options"] == "nosniff" and
          r.header["referrer-policy"] == "no-referrer" and
          r.header["cache-control"] == "no-store", r.header)
    check(scrape.ask(n, "/", "HEAD").status == 200)
    check(scrape.ask(n, "/", "POST").status == 404)


def said(n):
    """What is there, and what came from outside, word by word."""
    site(n)
    words = " ".join(" ".join(Parser(scrape.ask(n, "/").text()).words).split())
    for want in ("n", "forwarding", VIP, "in BIRD",
                 "no BGP session exports it", "service is not ready",
                 "www", "tcp/80 udp/443", "tcp/*", "web", "ready", "not ready",
                 "10.0.1.11", "up", "down", "eth0", "native", "flow table",
                 "66.7 %", "33.3 %", "pool evil : fewer backends than min_healthy",
                 "backend web/a", "unknown → up",
                 "203.0.113.11"):
        check(want in words, want, words)
    check("<img src=x onerror=document.title=1>&amp;" in words, words)
    n.file.write_text("nonsense: <b>\n")
    reload(n, 3)
    wait("the refusal to be told", lambda: "the file was refused" in
         scrape.ask(n, "/").text())
    page = Parser(scrape.ask(n, "/").text())
    check(not page.wrong, page.wrong)


def announced(n):
    """An address is announced once a session exports it, as in xlb status."""
    site(n)

    def cells():
        text = scrape.ask(n, "/").text()
        row = re.search(rf"<tr><td><code>{VIP}</code><td>(.*)", text)[1]
        return re.sub("<[^>]*>", " ", row).split(), text
    check(cells()[0][:3] == ["in", "BIRD", "no"], cells()[0])
    n.start_peer()
    wait("the page to say so", lambda: cells()[0][:2] == ["announced", "1"], 20)
    text = cells()[1]
    check("no BGP session exports it" not in text, text)
    check(re.search("tor1.*Established.*<td class=n>1 route$", text, re.M), text)
    n.xlb("drain", "node")
    wait("it to be withdrawn", lambda: "node is draining" in cells()[1], 20)


def empty(n):
    """A node that serves nothing has nothing to complain about."""
    configure(n, bgp="", interfaces="")
    n.file.write_text("metrics: {listen: 127.0.0.1:9555}\n")
    n.start_xlbd()
    wait("an answer", lambda: scrape.answers(n))
    text = scrape.ask(n, "/").text()
    page = Parser(text)
    check(not page.wrong, page.wrong)
    check("role=status" not in text, text)


def cut(n):
    """A pool of many: those that something is wrong with are shown first, and
    how many are not shown is said."""
    rows = ", ".join(f"{{name: b{i}, address: 10.0.1.{i + 1}}}"
                     for i in range(250))
    n.file.write_text(f"""interfaces: [{{name: eth0}}]
pools: {{web: {{backends: [{rows}]}}}}
services: [{{name: www, addresses: [{VIP}], listen: [tcp/80], pool: web}}]
metrics: {{listen: 127.0.0.1:9555}}
""")
    n.start_xlbd()
    wait("an answer", lambda: scrape.answers(n))
    wait("those that are there to be known", lambda: re.search(
        r"[1-9]\d* of 250 eligible", scrape.ask(n, "/").text()))
    text = scrape.ask(n, "/").text()
    page = Parser(text)
    check(not page.wrong, page.wrong)
    check(len(re.findall("<td class=c1>", text)) == 200)
    check("up, not checked" not in text, "one that is well is shown")
    check("50 more: <code>xlb backends</code>" in text, text)


def rates(n):
    """Packets appear, as a number and as a line."""
    site(n)
    for _ in range(3):
        send(n, [80], 30)
        time.sleep(1)

    def seen():
        send(n, [80], 20)
        text = scrape.ask(n, "/").text()
        line = re.search(r"<svg class=spark.*?points=\"([^\"]*)\"", text)
        return line and len({p.split(",")[1] for p in line[1].split()}) > 1
    wait("a line that is not flat", seen, 20)
    if os.environ.get("XLB_SHOTS") and browser.program():
        with open_browser(n) as b:
            b.look(1200)
            b.open(URL)
            b.shot(os.environ["XLB_SHOTS"] + "/rates.png")


# ---- with a browser ---------------------------------------------------

class open_browser:
    def __init__(self, n):
        if browser.program() is None:
            raise tap.Skip("needs chromium")
        self.dir = tempfile.mkdtemp(prefix="xlbx-browser")
        self.browser = browser.Browser(n.inside(), self.dir)

    def __enter__(self):
        return self.browser

    def __exit__(self, *_):
        self.browser.close()
        shutil.rmtree(self.dir, ignore_errors=True)


def harmless(n):
    """A browser runs nothing that it was told by a backend, asks for nothing
    but the page, and complains about nothing."""
    site(n)
    with open_browser(n) as b:
        b.look(1200)
        b.open(URL)
        check(b.eval("document.title") == "n – xlb", b.eval("document.title"))
        check(b.eval("document.images.length") == 0)
        check(b.eval("document.body.textContent.includes('<img src=x')"))
        check(b.eval("getComputedStyle(document.querySelector('section'))"
                     ".borderRadius") != "0px", "the style is refused")
        asked = len(b.requests)
        wait("an update", lambda: b.eval("1") and len(b.requests) > asked, 15)
        other = {u for u in b.requests if u != URL} - {"about:blank"}
        check(other <= {URL + "favicon.ico"}, other)
        bad = [c for c in b.complaints if "favicon" not in c and
               "404" not in c]
        check(not bad, bad)


def alive(n):
    """It follows what happens, and keeps what was opened or closed."""
    site(n)
    with open_browser(n) as b:
        b.look(1200)
        b.open(URL)
        web = "document.getElementById('pool-web')"
        check(b.eval(f"{web}.open") and "draining" not in
              b.eval(f"{web}.textContent"))
        b.eval("document.querySelector('#pool-evil summary').click()")
        check(not b.eval("document.getElementById('pool-evil').open"))
        n.xlb("drain", "web/a")
        wait("the drain to be seen", lambda: "draining" in
             b.eval(f"{web}.textContent"), 15)
        check(not b.eval("document.getElementById('pool-evil').open"),
              "it is open again")
        n.xlbd.kill()
        n.xlbd.wait()
        wait("it to say that nobody answers", lambda: b.eval(
            "getComputedStyle(document.querySelector('.lost')).display") !=
             "none", 15)
        n.start_xlbd()
        wait("it to go on", lambda: b.eval(
            "getComputedStyle(document.querySelector('.lost')).display") ==
             "none", 20)


def scriptless(n):
    site(n)
    with open_browser(n) as b:
        b.look(1200, script=False)
        b.call("Page.navigate", url=URL)
        wait("the page", lambda: "flow table" in b.eval(
            "document.body?.textContent ?? ''"), 15)
        asked = len(b.requests)
        wait("it to be loaded again", lambda: b.eval("1") and
             len(b.requests) > asked, 15)


CONTRAST = """(() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const lum = c => rgb(c).slice(0, 3).map(v => v / 255).map(v => v <= .03928 ?
      v / 12.92 : ((v + .055) / 1.055) ** 2.4)
      .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const back = e => { for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (rgb(c).length == 3 || rgb(c)[3] > 0) return c; } return 'rgb(0,0,0)' };
  const bad = [];
  for (const e of document.querySelectorAll('main *')) {
    if (![...e.childNodes].some(t => t.nodeType == 3 && t.data.trim()))
      continue;
    if (!e.checkVisibility()) continue;
    const a = lum(getComputedStyle(e).color), b = lum(back(e));
    const r = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (r < 4.5) bad.push(e.tagName + '.' + e.className + ' ' + r.toFixed(1));
  }
  return bad.join('; ');
})()"""


# Short words that are broken into two lines.
TORN = """[...document.querySelectorAll('main .tag, main td bdi')].filter(e => {
  const t = e.textContent.trim();
  return e.checkVisibility() && t.length < 12 && !/[^a-zA-Z0-9_]/.test(t) &&
      e.getBoundingClientRect().height >
      1.9 * parseFloat(getComputedStyle(e).lineHeight);
}).map(e => e.textContent).join('; ')"""


def readable(n):
    """Nothing beyond the edge, no word in two, and contrast enough (WCAG AA)."""
    site(n)
    n.xlb("drain", "web/b")
    with open_browser(n) as b:
        for width, height, dark in ((1200, 900, False), (1200, 900, True),
                                    (360, 740, False), (360, 740, True),
                                    (320, 640, False)):
            b.look(width, height, dark=dark, phone=width < 500)
            b.open(URL)
            wide = b.eval("document.documentElement.scrollWidth")
            check(wide <= width, f"{wide} of {width}")
            torn = b.eval(TORN)
            check(torn == "", width, "in two lines:", torn)
            bad = b.eval(CONTRAST)
            check(bad == "", width, "dark" if dark else "light", bad)
            if os.environ.get("XLB_SHOTS"):
                b.shot(f"{os.environ['XLB_SHOTS']}/{width}-"
                       f"{'dark' if dark else 'light'}.png")


if __name__ == "__main__":
    sys.exit(node.main([whole, said, announced, empty, cut, rates, harmless, alive, scriptless,
                        readable]))

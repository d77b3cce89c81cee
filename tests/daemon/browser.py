# SPDX-License-Identifier: GPL-2.0-or-later
"""A headless Chromium, told what to do over its pipe (Chrome DevTools
protocol)."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium-headless-shell", "chromium")


def program():
    """Its path; None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. `prefix`: a command that runs it elsewhere."""

    def __init__(self, prefix, profile):
        there, self.out = os.pipe()         # it reads descriptor 3
        self.back, here = os.pipe()         # and writes 4
        # a shell puts them there: whichever numbers these are
        argv = [*prefix, "sh", "-c", f'exec "$@" 3<&{there} 4>&{here}', "sh",
                program(), "--headless", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--no-first-run",
                "--disable-background-networking", "--disable-extensions",
                "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            argv, pass_fds=(there, here), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(here)
        self.buffer, self.id, self.session = b"", 0, None
        self.requests, self.complaints = [], []
        target = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=target["targetId"])["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.back)

    def read(self, seconds):
        """One message; None: none came."""
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                return None
            part = os.read(self.back, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def note(self, m):
        what, p = m.get("method"), m.get("params", {})
        if what == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])
        elif what == "Log.entryAdded":
            self.complaints.append(p["entry"]["text"])
        elif what == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(p["exceptionDetails"]))
        elif what == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(p["args"]))

    def call(self, method, **params):
        self.id += 1
        m = {"id": self.id, "method": method, "params": params}
        if self.session is not None:
            m["sessionId"] = self.session
        os.write(self.out, json.dumps(m).encode() + b"\0")
        while True:
            answer = self.read(60)
            if answer is None:
                raise RuntimeError(f"{method}: no answer from the browser")
            if answer.get("id") == self.id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def eval(self, script):
        """The value of an expression."""
        r = self.call("Runtime.evaluate", expression=script,
                      returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(f"{script}: {r['exceptionDetails']}")
        return r["result"].get("value")

    def look(self, width, height=900, dark=False, phone=False, script=True):
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def open(self, url):
        self.call("Page.navigate", url=url)
        end = time.monotonic() + 30
        while self.eval("location.href + document.readyState") != \
                url + "complete":
            if time.monotonic() > end:
                raise RuntimeError(f"{url}: not loaded")
            time.sleep(0.05)

    def shot(self, path):
        r = self.call("Page.captureScreenshot", format="png",
                      captureBeyondViewport=True)
        with open(path, "wb") as f:
            f.write(base64.b64decode(r["data"]))

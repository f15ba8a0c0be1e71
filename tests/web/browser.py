"""A real Chromium, driven over the WebDriver protocol (https://www.w3.org/TR/webdriver2/) through
chromedriver. Python's standard library only."""
import base64
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Shift": "\ue008",
        "ArrowLeft": "\ue012", "ArrowRight": "\ue014", "ArrowUp": "\ue013", "ArrowDown": "\ue015", "Home": "\ue011", "End": "\ue010"}


def missing():
    """Why there is no browser to be driven here; nothing when there is."""
    absent = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if absent:
        return f"{' and '.join(absent)} missing: scripts/install-packages --with-browser installs them"
    return None


class Gone(Exception):
    """An element that the page has replaced meanwhile."""


class Browser:
    def __init__(self, log):
        self.profile = tempfile.mkdtemp(prefix="evald-chromium-")
        self.base = None
        self.log = open(log, "w")
        self.chromium = None
        self.driver = subprocess.Popen([shutil.which("chromedriver"), "--port=0"], stdout=self.log,
                                       stderr=self.log, preexec_fn=die_with_parent)
        try:
            started = wait(lambda: re.search(r"started successfully on port (\d+)\W", pathlib.Path(log).read_text()), "chromedriver", 180)
            self.base = f"http://127.0.0.1:{started.group(1)}"
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        wait(lambda: self.call("GET", "/status")["ready"], "chromedriver", 180)
        arguments = ["--headless=new", f"--user-data-dir={self.profile}", "--window-size=1280,900",
                     "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium refuses to sandbox what root starts
        # Started here and named by its address: chromedriver would look for "localhost", which a bare
        # system without /etc/hosts does not know.
        self.chromium = subprocess.Popen([shutil.which("chromium"), *arguments, "--remote-debugging-port=0", "about:blank"],
                                         stdout=self.log, stderr=self.log, preexec_fn=die_with_parent)
        port_file = pathlib.Path(self.profile) / "DevToolsActivePort"
        port = wait(lambda: port_file.exists() and port_file.read_text().rpartition("\n")[0].split("\n")[0], "chromium", 180)
        options = {"debuggerAddress": f"127.0.0.1:{port}"}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base += "/session/" + answer["sessionId"]

    def close(self):
        try:
            if self.base:
                self.call("DELETE", "")
        except (OSError, AssertionError):
            pass
        for process in filter(None, (self.chromium, self.driver)):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, path, body=None):
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            if value["error"] in ("stale element reference", "no such element"):
                raise Gone(value["message"]) from None
            raise AssertionError(f"{value['error']}: {value['message']}") from None

    # ---- the page

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """What `script`, a function's body, returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """As run(), of a body that may await."""
        value = self.call("POST", "/execute/async", {"script": f"""
            const done = arguments[arguments.length - 1];
            (async () => {{ {script} }})().then((value) => done({{value}}), (error) => done({{error: String(error)}}));
            """, "args": list(arguments)})
        if "error" in value:
            raise AssertionError(value["error"])
        return value.get("value")

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def text(self, selector):
        """The visible text of the first element that matches, "" when there is none."""
        return self.run("const node = document.querySelector(arguments[0]); return node ? node.innerText : '';", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText);", selector)

    def count(self, selector):
        return self.run("return document.querySelectorAll(arguments[0]).length;", selector)

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click")

    def choose(self, selector, value):
        """Chooses an option of a select, as a person does."""
        self.run("""const node = document.querySelector(arguments[0]);
                    node.value = arguments[1]; node.dispatchEvent(new Event('change', {bubbles: true}));""",
                 selector, value)

    def press(self, *keys):
        """Presses keys one after the other; "Shift+Tab" is a chord."""
        actions = []
        for key in keys:
            chord = [KEYS.get(part, part) for part in (key.split("+") if len(key) > 1 else [key])]
            actions += [{"type": "keyDown", "value": part} for part in chord]
            actions += [{"type": "keyUp", "value": part} for part in reversed(chord)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def type(self, text):
        self.press(*text)

    def focused(self):
        """Name and text of what has the focus."""
        return self.run("""const node = document.activeElement;
            return [node.tagName.toLowerCase(), node.getAttribute('aria-label') ?? node.innerText ?? node.textContent];""")

    def wait(self, what, condition, seconds=180):
        return wait(condition, what, seconds)

    def screenshot(self, path, whole=True):
        if whole:
            size = self.run("return [document.documentElement.clientWidth, document.documentElement.scrollHeight];")
            shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                                 clip={"x": 0, "y": 0, "width": size[0], "height": min(size[1], 6000), "scale": 1})
        else:
            shot = self.devtools("Page.captureScreenshot", format="png")
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    # ---- what the page is shown on

    def size(self, width, height, mobile=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def prefer(self, scheme):
        """"light" or "dark", as the system says."""
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                              {"name": "prefers-reduced-motion", "value": "reduce"}])

    def complaints(self):
        """What stands in the browser's console since the last call: errors, refusals of the policy."""
        entries = self.call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]


def die_with_parent():
    """For a child: a test that is killed leaves nothing behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def wait(condition, what, seconds):
    end = time.monotonic() + seconds
    while True:
        try:
            value = condition()
            if value:
                return value
        except (Gone, OSError):
            value = None
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.05)

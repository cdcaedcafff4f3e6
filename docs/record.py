"""Records a reply as it streams: a terminal as an animated SVG, the widget as an animated WebP.

record.py SCREEN FOLDER, where SCREEN holds the output of a first start; record.sh calls it.
"""

import html
import io
import json
import re
import subprocess
import sys
import time
import urllib.request
from base64 import b64decode
from pathlib import Path

from PIL import Image

COLUMNS = 78
PAUSE_SECONDS = 3.0


def record_terminal(url: str, agent: str, key: str) -> str:
    """Runs curl, and draws each chunk of its output at the time at which it arrived."""
    body = json.dumps({"message": "Hello! What can you do?", "sessionId": "demo-1"})
    command_lines = [
        "$ curl -N $URL/api/public/agents/$AGENT/chat \\",
        '    -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\',
        f"    -d '{body}'",
    ]
    start = time.monotonic()
    curl = subprocess.Popen(
        ["curl", "-sN", f"{url}/api/public/agents/{agent}/chat", "-H", f"Authorization: Bearer {key}"]
        + ["-H", "Content-Type: application/json", "-d", body],
        stdout=subprocess.PIPE,
    )
    chunks = []
    while chunk := curl.stdout.read1(4096):
        chunks.append((time.monotonic() - start, chunk.decode()))
    assert curl.wait() == 0 and chunks, "the reply failed"
    return render_svg(command_lines, chunks)


def render_svg(command_lines: list[str], chunks: list[tuple[float, str]]) -> str:
    """Lays the chunks out on lines of COLUMNS characters, as an SVG that repeats."""
    spans, line, column = [], len(command_lines) + 1, 0
    for at, chunk in chunks:
        for word in re.findall(r"\n|\s+|\S+", chunk):
            if word == "\n":
                line, column = line + 1, 0
            elif column + len(word) > COLUMNS and not word.isspace():
                line, column = line + 1, 0
            if word.strip():
                spans.append((at, line, column, word))
            column += 0 if word == "\n" else len(word)
    duration = chunks[-1][0] + PAUSE_SECONDS
    times = sorted({at for at, *_ in spans})
    frames = "".join(
        f"@keyframes t{i}{{0%{{opacity:0}}{100 * at / duration:.2f}%{{opacity:1}}}}.t{i}{{animation-name:t{i}}}"
        for i, at in enumerate(times)
    )
    step, left, top, advance = 20, 20, 56, 8.43
    height = top + step * (line + 1)
    texts = [
        f'<text x="{left}" y="{top + step * i}" class="command">{html.escape(text)}</text>'
        for i, text in enumerate(command_lines)
    ]
    texts += [
        f'<text x="{left + advance * column:.1f}" y="{top + step * line}" class="reply t{times.index(at)}">{html.escape(word)}</text>'
        for at, line, column, word in spans
    ]
    style = (
        "text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}"
        ".command{fill:#9ecbff}.reply{fill:#e6edf3;"
        f"animation-duration:{duration:.2f}s;animation-iteration-count:infinite;animation-timing-function:step-end}}"
        "@media (prefers-reduced-motion:reduce){.reply{animation:none}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="700" height="{height}" viewBox="0 0 700 {height}" role="img" '
        'aria-label="A terminal: curl prints a reply word by word">'
        f"<style>{style}{frames}</style>"
        f'<rect width="700" height="{height}" rx="8" fill="#0d1117"/>'
        '<g><circle cx="20" cy="18" r="5" fill="#ff5f57"/><circle cx="38" cy="18" r="5" fill="#febc2e"/>'
        '<circle cx="56" cy="18" r="5" fill="#28c840"/></g>' + "".join(texts) + "</svg>\n"
    )


class Browser:
    """A headless Chromium, driven through the WebDriver protocol."""

    def __init__(self, port: int = 18482):
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--window-size=880,960", "--hide-scrollbars"]
        capabilities = {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}
        for _ in range(50):
            try:
                session = self.call("POST", "/session", {"capabilities": capabilities})
                break
            except OSError:
                time.sleep(0.2)
        self.base += f"/session/{session['sessionId']}"

    def call(self, method: str, path: str, body: dict | None = None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request) as response:
            return json.load(response)["value"]

    def run(self, script: str):
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def screenshot(self) -> Image.Image:
        picture = Image.open(io.BytesIO(b64decode(self.call("GET", "/screenshot")))).convert("RGB")
        return picture.crop((picture.width - 440, picture.height - 760, picture.width, picture.height))

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


def record_widget(url: str, file: Path) -> None:
    """Asks the shop of the demo page for tea, and takes pictures until the reply is complete."""
    browser = Browser()
    try:
        browser.call("POST", "/url", {"url": f"{url}/demo"})
        while not browser.run("return !!(window.SwitchboardWidget && SwitchboardWidget.get && SwitchboardWidget.get())"):
            time.sleep(0.1)
        browser.run("SwitchboardWidget.open()")
        time.sleep(2.5)
        browser.run("SwitchboardWidget.on('message', ({ role }) => { window.replied = role === 'assistant'; })")
        frames, start, last = [(0.0, browser.screenshot())], time.monotonic(), 0
        browser.run("SwitchboardWidget.send('Do you have tea?')")
        while last < 5 and time.monotonic() - start < 20:
            # A few pictures more: cards and the rating appear after the text.
            last += bool(browser.run("return window.replied"))
            picture = browser.screenshot()
            if picture.tobytes() != frames[-1][1].tobytes():
                frames.append((time.monotonic() - start, picture))
    finally:
        browser.close()
    ends = [at for at, _ in frames[1:]] + [frames[-1][0] + PAUSE_SECONDS]
    lengths = [max(20, round(1000 * (end - at))) for (at, _), end in zip(frames, ends)]
    frames[0][1].save(
        file,
        save_all=True,
        append_images=[picture for _, picture in frames[1:]],
        duration=lengths,
        loop=0,
        quality=55,
        method=6,
        minimize_size=True,
    )


def main() -> None:
    screen, folder = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
    url = re.search(r"Public API\s+(http\S+)/api/public", screen)[1]
    agent, key = re.search(r"agents/(agt_\w+)/chat", screen)[1], re.search(r"svc_live_\w+", screen)[0]
    (folder / "terminal.svg").write_text(record_terminal(url, agent, key))
    record_widget(url, folder / "widget.webp")
    for name in ("terminal.svg", "widget.webp"):
        print(f"{folder / name}: {(folder / name).stat().st_size / 1000:.0f} KB")


main()

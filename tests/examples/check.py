"""Runs the examples of documents against a service and compares their output with the answers shown.

check.py FILE#HEADING|PAGE.html...   `URL`, `AGENT` and `KEY` come from the environment

An example is a block in sh, js or python; the text or json block after it is its answer. In an answer, "…" stands for any
text, and `msg_1…` for one value wherever it occurs. White space does not count.
"""

import html
import os
import re
import subprocess
import sys
import tempfile

COMMANDS = {"sh": ["bash", "-euo", "pipefail"], "js": ["node"], "python": [sys.executable]}
SUFFIXES = {"sh": ".sh", "js": ".mjs", "python": ".py"}
# Programs of the README are shown without their settings.
SETTINGS = {
    "sh": "",
    "js": "const { URL: url, AGENT: agent, KEY: key } = process.env;\n",
    "python": 'import codecs, json, os, urllib.request\nurl, agent, key = (os.environ[name] for name in ("URL", "AGENT", "KEY"))\n',
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 60


def section(path, heading):
    """Returns the text from a heading to the next one of the same level."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    if not found:
        sys.exit(f"{path}: no heading {heading!r}")
    rest = text[found.end() :]
    # A comment in a program is no heading.
    end = re.search(rf"^#{{1,{len(found[1])}}} ", BLOCK.sub(lambda block: " " * len(block[0]), rest), re.MULTILINE)
    return rest[: end.start()] if end else rest


def examples(text):
    """Returns language, program and answer (or nothing) of each example."""
    blocks = BLOCK.findall(text)
    following = [*blocks[1:], ("", "")]
    for (language, program), (kind, answer) in zip(blocks, following):
        if language in COMMANDS:
            yield language, program, answer if kind in ("text", "json") else None


def page_examples(path):
    """Returns the examples of a page, which have one answer. Its readers complete the placeholders."""
    with open(path, encoding="utf-8") as file:
        text = html.unescape(file.read())
    answer = re.search(r"<pre data-answer><code>(.*?)</code>", text, re.DOTALL)[1]
    for placeholder, name in (("BASE_URL", "URL"), ("agt_…", "AGENT"), ("svc_live_…", "KEY")):
        text = text.replace(placeholder, os.environ[name])
    for language, program in re.findall(r'<pre data-language="(\w+)"><code>(.*?)</code>', text, re.DOTALL):
        yield language, program, answer


def pattern(answer):
    """Returns a regular expression for an answer without its white space."""
    names = set()

    def part(found):
        name = found[1]
        if not name:
            return ".*?"
        if name in names:
            return f"(?P={name})"
        names.add(name)
        return f"(?P<{name}>[0-9a-z_]+)"

    # A letter before the number tells a named value from other text.
    pieces = re.split(r"((?:[a-z]+_[0-9]+)?…)", re.sub(r"\s", "", answer))
    return "".join(
        part(re.fullmatch(r"([a-z]+_[0-9]+)?…", piece)) if piece.endswith("…") else re.escape(piece) for piece in pieces
    )


def run(language, program):
    """Returns status and output of a program."""
    if "process.env" not in program and "os.environ" not in program:
        program = SETTINGS[language] + program
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "example" + SUFFIXES[language])
        with open(path, "w", encoding="utf-8") as file:
            # Without progress, and with a failure for any error.
            file.write(program.replace("curl ", "curl -sS --fail-with-body ") if language == "sh" else program)
        done = subprocess.run([*COMMANDS[language], path], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.returncode, done.stdout, done.stderr


def main():
    failures = count = 0
    for place in sys.argv[1:]:
        path, _, heading = place.partition("#")
        for language, program, answer in examples(section(path, heading)) if heading else page_examples(path):
            count += 1
            status, output, errors = run(language, program)
            # A comment of the event stream says that the reply is still awaited.
            output = re.sub(r"^: .*\n\n", "", output, flags=re.MULTILINE)
            said = re.sub(r"\s", "", output)
            fits = said != "" if answer is None else re.fullmatch(pattern(answer), said, re.DOTALL)
            if status == 0 and fits:
                continue
            failures += 1
            print(f"--- {path}: {language} example, status {status}\n{program}\noutput:\n{output}{errors}\nexpected:\n{answer or 'any text'}")
    print(f"{count} examples, {failures} failed")
    sys.exit(1 if failures or not count else 0)


main()

#!/usr/bin/env python3
"""Plants the wrong answers of mutants.toml and shows that the named test of each turns red.

All of them are built into one program, each behind `MUTANT=<name>`: a build takes a minute, a test a second. The switch is
part of the patch, so that the product knows nothing of it. Nothing outside target/mutants is written.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TEST_TIMEOUT_S = 240
BASELINE_TIMEOUT_S = 1800
AT_ONCE = int(os.environ.get("MUTANTS_AT_ONCE", "3"))
SWITCH = """
pub(crate) fn mutant(name: &str) -> bool {
    std::env::var_os("MUTANT").is_some_and(|wanted| wanted == name)
}
"""


def main():
    mutants = tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]
    check(mutants)
    # One of two places is enough to know what to run.
    chosen = list({mutant["name"]: mutant for mutant in mutants}.values())
    chosen = [mutant for mutant in chosen if not sys.argv[1:] or mutant["name"] in sys.argv[1:]]
    target = target_directory()
    scratch = target / "mutants"
    copy_tree(scratch / "tree")
    rename(scratch / "tree")
    plant(scratch / "tree", mutants)
    programs = build(scratch, target, mutants)
    baseline(programs, chosen)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda mutant: attempt(programs, mutant), chosen))
    print_table(chosen, results)
    return 0 if all(result == "red" for result, _ in results) else 1


def check(mutants):
    for mutant in mutants:
        assert set(mutant) == {"name", "row", "file", "find", "replace", "test"}, mutant


def target_directory():
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    return pathlib.Path(json.loads(subprocess.check_output(command, cwd=ROOT))["target_directory"])


def copy_tree(tree):
    """The files of the project as they are now; what is the same stays untouched, so that cargo builds little."""
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT)
    wanted = {name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()}
    for path in list(tree.rglob("*")) if tree.exists() else []:
        if path.is_file() and str(path.relative_to(tree)) not in wanted:
            path.unlink()
    for name in wanted:
        write(tree / name, (ROOT / name).read_bytes(), (ROOT / name).stat().st_mode)


def rename(tree):
    """Another version: cargo would take what it built here for the project's own in a target folder that both use."""
    manifest = (ROOT / "Cargo.toml").read_text()
    members = r'(name = "switchboard[a-z-]*"\nversion = ")([^"+]+)"'
    lock = re.sub(members, r'\1\2+mutants"', (ROOT / "Cargo.lock").read_text())
    version = r'(\[workspace\.package\]\nversion = ")([^"+]+)"'
    write(tree / "Cargo.toml", re.sub(version, r'\1\2+mutants"', manifest).encode())
    write(tree / "Cargo.lock", lock.encode())


def write(path, content, mode=0o644):
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)


def plant(tree, mutants):
    sites = {}
    for mutant in mutants:
        sites.setdefault(mutant["file"], {}).setdefault(mutant["find"], []).append(mutant)
    roots = set()
    for name, finds in sites.items():
        text = (ROOT / name).read_text()
        # From the end, so that places found earlier stay where they are.
        places = sorted(((place(text, name, find), find) for find in finds), reverse=True)
        for (start, find), (later, _) in zip(places[1:], places):
            assert start + len(find) <= later, f"{name}: two places overlap: {find!r}"
        for start, find in places:
            text = text[:start] + switch(find, finds[find]) + text[start + len(find):]
        roots.add(crate_root(name))
        write(tree / name, text.encode())
    for root in roots:
        write(tree / root, (tree / root).read_bytes() + SWITCH.encode())


def place(text, name, find):
    assert text.count(find) == 1, f"{name}: {text.count(find)} times instead of once: {find!r}"
    return text.index(find)


def switch(find, mutants):
    """An expression stays an expression and statements stay statements."""
    is_statement = find.rstrip().endswith((";", "}"))
    arms = "".join(f'if crate::mutant("{m["name"]}") {{ {m["replace"]} }} else ' for m in mutants)
    code = f"{arms}{{ {find} }}"
    return code if is_statement else f"({code})"


def crate_root(name):
    crate, _, _ = name.partition("/src/")
    return "src/main.rs" if name.startswith("src/") else f"{crate}/src/lib.rs"


def build(scratch, target, mutants):
    command = ["cargo", "test", "--locked", "--workspace", "--lib", "--bins", "--test", "it", "--no-run"]
    command.append("--message-format=json")
    environment = os.environ | {"CARGO_TARGET_DIR": str(target)}
    began = time.monotonic()
    done = subprocess.run(command, cwd=scratch / "tree", env=environment, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0:
        errors = [m["message"]["rendered"] for m in messages if m.get("message", {}).get("level") == "error"]
        sys.exit("\n".join(errors) + "the planted program does not build")
    # Copies, because the next build of anything replaces the originals.
    programs = {}
    for message in messages:
        name = message.get("target", {}).get("name")
        is_unit_test = message.get("executable") and message["profile"]["test"] and name != "it"
        if is_unit_test:
            programs[f"unit/{name}"] = shutil.copy2(message["executable"], scratch / f"unit-{name}")
        elif message.get("executable") and name in ("it", "switchboard"):
            programs[name] = shutil.copy2(message["executable"], scratch / name)
    planted = pathlib.Path(programs["switchboard"]).read_bytes()
    missing = [mutant["name"] for mutant in mutants if mutant["name"].encode() not in planted]
    assert not missing, f"the program does not hold {missing}"
    print(f"wrong answers planted in {len(mutants)} places, built in {time.monotonic() - began:.0f} s", flush=True)
    return programs


def is_unit(test):
    """A path with a file in it is a unit test's."""
    return ".rs::" in test


def unit_program(programs, test):
    crate, _, _ = test.partition("/")
    return programs["unit/switchboard" if crate == "src" else f"unit/switchboard_{crate}"]


def run(programs, tests, mutant, timeout_s=TEST_TIMEOUT_S):
    environment = os.environ | {"TESTED_BINARY": str(programs["switchboard"]), "RUST_BACKTRACE": "0"}
    environment |= {"MUTANT": mutant} if mutant else {}
    if is_unit(tests[0]):
        # The name of a unit test is a sentence that no other one has.
        command, folder = [unit_program(programs, tests[0]), tests[0].rpartition("::")[2]], ROOT / tests[0].partition("/")[0]
    else:
        command, folder = [programs["it"], "--exact", *tests], ROOT
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout_s)
        return done.stdout
    except subprocess.TimeoutExpired:
        return "no end"


def baseline(programs, mutants):
    """Without a mistake every named test exists and is green, or its red would mean nothing."""
    for test in sorted({mutant["test"] for mutant in mutants if is_unit(mutant["test"])}):
        output = run(programs, [test], None)
        if "1 passed; 0 failed" not in output:
            sys.exit(f"{output[-3000:]}\nnot green, or not one test, without a mistake: {test}")
    tests = sorted({mutant["test"] for mutant in mutants if not is_unit(mutant["test"])})
    if not tests:
        return
    output = run(programs, tests, None, BASELINE_TIMEOUT_S)
    found = re.search(r"test result: ok\. (\d+) passed", output)
    if not found or int(found[1]) != len(tests):
        listed = set(re.findall(r"^test (\S+) \.\.\. ok", output, re.M))
        sys.exit(f"{output[-3000:]}\nnot green without a mistake: {sorted(set(tests) - listed)}")
    print(f"{len(tests)} named tests are green without a mistake", flush=True)


def attempt(programs, mutant):
    began = time.monotonic()
    output = run(programs, [mutant["test"]], mutant["name"])
    if "1 passed; 0 failed" in output:
        result = "SURVIVED"
    elif "0 passed; 1 failed" in output:
        result = "red"
    else:
        result = "NO RESULT"
    print(f"{result:9} {mutant['name']}", flush=True)
    return result, time.monotonic() - began


def print_table(mutants, results):
    print("\n| contract row | planted wrong answer | test that must turn red | result |\n|---|---|---|---|")
    for mutant, (result, _) in zip(mutants, results):
        print(f"| {mutant['row']} | {mutant['name']} | {mutant['test']} | {result} |")
    red = sum(result == "red" for result, _ in results)
    print(f"\n{red} of {len(mutants)} wrong answers turned their test red")


if __name__ == "__main__":
    sys.exit(main())

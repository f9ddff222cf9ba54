#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the text of all tracked files: language, machine-specific paths, unfinished notes, file length.

Usage: check_text.py [--count] [ROOT]

Prints one line per offense as file:line and exits with status 1 if there is any. With --count, prints the number
of banned phrases per folder instead and exits with status 0.
"""
import argparse
import collections
import re
import subprocess
import sys
from pathlib import Path

SOURCE = {".h", ".cpp", ".cc", ".hpp", ".py", ".sh", ".cmake"}
README_MAX_LINES = 140
# A long file usually has more than one responsibility. If it has only one, list it here with the reason.
SOFT_MAX_LINES = 500
LONG_FILES = {
}
# Written in pieces, so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:work|root|home|Users)/[\w.-]")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")

# Input data, and this list itself.
NOT_PROSE = re.compile(
    r"^LICENSE$|^tools/check_text\.py$|^tests/seeds/samples/|^tests/fuzz/.*corpus/|^src/catalog/configs/|"
    r"(^|/)data/|\.csv$|\.svg$|\.png$|\.min\.js$")

# Names in data files of other projects.
FOREIGN_NAMES = re.compile(r"kernel_time_under_priced_ops_us|\"effective_step\"")

# A word matches whole words and whole parts of snake_case identifiers. Values are what to write instead.
WORDS = {
    "told|untold|tells": "report, log, state, known, distinguish",
    "said|says|say": "report, log, state, specify",
    "whoever|whomever|nobody|somebody": "the caller, the reader, or no agent",
    "anew": "again",
    "besides?": "next to, in addition to, with",
    "alike": "the same, both",
    "at hand": "available",
    "once more": "again",
    "for ever": "permanently",
    "no longer": "state what happens now",
    "surveys?|surveyed|surveying": "operator profile, profiled step",
    "unpriced|priced|reprices?|repriced|rulebook": "supported, unsupported, cost model",
    "noter|noters|stepnoter": "recorder",
    "tally|tallies|tallied": "counters",
    "booked|bookings?": "counted as, attributed to",
    "watcher|watchers|watched|unwatched": "monitor, monitored",
    "waterfalls?": "time budget",
    "asides?": "out-of-step phase",
    "fed": "batch, inputs",
    "speaks?|spoke": "fires, applies",
    "inquiry|inquiries": "RuleContext",
    "remedy|remedies": "recommendation, fix",
    "deaf": "isolated",
    "planted|plants": "injected fault",
    "made_runs": "synthetic runs",
    "lone|strange|stranger|strangers": "no-optimizer, unexpected, newcomer",
    "dear|dearer|dearest": "expensive, costly",
    "stepbuilder": "Utilization",
    "add_up|data_looks|between_seconds|unpriced_calls": "summarize, data_wait_samples, inter_step_seconds, unsupported_op_calls",
    "effective[ _-]steps?": "process step",
    "micro[ _-]?steps?": "micro-batch",
    "number formats?": "dtype",
    "learnt|spoilt|towards|whilst|amongst": "learned, spoiled, toward, while, among",
    "(?:behav|col|fav|neighb|hon)our\\w*|grey|licences?": "American spelling",
    "centres?|centred|catalogues?|modelling|modelled|labelled|travell\\w+|artefacts?|judgements?|programmes?": "American spelling",
    "(?:util|optim|recogn|initial|normal|summar|organ|synchron|serial|quant|minim|maxim|real|general|special|visual|"
    "token|random|parallel|vector|character|categor|standard|emphas)is(?:e|es|ed|ing|ation|er|ers)": "American spelling",
    "analyse[sd]?|analysing|defence|offences?|grammes?|metres?": "American spelling",
}
PHRASES = {
    r"\b(?:seconds?|tokens|samples|steps|flops?|[gt]flops?|flop/s|ms|us|µs|bytes|calls|records?|lines?|files?|instructions|"
    r"rows?|frames|mb|gb) an? (?:second|token|step|rank|line|row|sequence|sample|byte|call|hour|minute|device|folder|"
    r"module|node|operator|layer|file|run)\b": "per",
    r"(?<![.\w])tell\b(?!\()": "report, state, distinguish",
    r"\bof (?:its|their|one's|his|her|your|our|my) own\b": "its own, separate",
    r"\bof (?:ours|theirs|itself|themselves)\b": "our, their, automatically",
    r"\bwhat comes of itself\b": "what you get automatically",
    r"\b(?<!there )(?<!if )(?:is|are) no (?!(?:more|less|\w+er) than)\w+": "is not a, has no",
    r"\bwhere (?:there (?:is|are)|nothing|none|neither|any of|anything|no \w+ (?:is|are))\b": "if",
    r"\b(?:empty|false|true|null|none|nullopt|errors?|nothing|raises|fails?) where\b": "if",
    r"\bwhere (?:it|they|that|this|one) (?:is|are|does|do|has|have|can|cannot|was|were)\b": "if",
    r"\b(?:left|leaves?|leaving) out\b": "exclude, omit",
    r"\bwhatever\b": "regardless of, any",
    r"\bhowever (?:long|often|many|busy|much)\b": "regardless of",
    r"\bbears? (?:no )?flops\b": "has a FLOP cost",
    r"\bas people\b": "typical, in the usual form",
    r"\b(?:is|are|was|were) (?:asked|given up|taken for|set against|held to)\b": "request, give up, compare",
    r"\bwho (?:asks?|wants?|reads?|uses?|listens?|looks?|calls?)\b": "the caller, the reader",
    r"(?:^|\s)(?://+|/\*\*?|#|\"\"\")\s*What\b(?![^.]*\?)": "start the comment with a noun",
    r"\bbecause of us\b|\bbelongs to us\b": "flopmeter",
    r"\bfor good\b|\bwithout end\b": "permanently",
    r"\bnow and then\b": "periodically",
    r"\bas \S+ has (?:it|them)\b": "as in, as it defines",
    r"\bknows? (?:of|better)\b": "detect, take precedence",
    r"\bg(?:ive|ives|ave|iving) way\b": "yield",
    r"\b(?:the|at) begin\b(?!\()": "start",
    r"_(?:is|are|was|were)_no_": "is_not_a, has_no",
    r"_leaves?_(?:it_|them_)?out(?![a-z])|(?:^|_)left_out(?![a-z])": "exclude, omit",
    r"\bthe (?:like|same) is true\b": "also",
    r"\bflop_cost-per\b": "price-per (money)",
    r"\bact (?:1|2|one|two)\b": "baseline, tuned",
}
BANNED = [(re.compile(rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])", re.IGNORECASE), use) for words, use in WORDS.items()]
BANNED += [(re.compile(phrase, re.IGNORECASE), use) for phrase, use in PHRASES.items()]
# One search per line is enough for the lines that pass.
ANY_BANNED = re.compile("|".join([rf"(?<![A-Za-z])(?:{'|'.join(WORDS)})(?![A-Za-z])", *PHRASES]), re.IGNORECASE)


def tracked(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True)
    return [name for name in listed.stdout.decode().split("\0") if name]


def read_lines(path):
    """Lines of a text file; None if the file is not text."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return path.read_text().splitlines()
    except UnicodeDecodeError:
        return None


def banned_phrases(name, lines):
    if NOT_PROSE.search(name):
        return
    for number, line in enumerate(lines, 1):
        line = FOREIGN_NAMES.sub("", line)
        if not ANY_BANNED.search(line):
            continue
        for pattern, use in BANNED:
            for found in pattern.finditer(line):
                yield f"{name}:{number}: banned phrase '{found[0].strip()}' (use: {use}): {line.strip()}"


def check_file(name, lines):
    is_source = Path(name).suffix in SOURCE
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line):
            yield f"{name}:{number}: machine-specific path: {line.strip()}"
        if is_source and UNFINISHED.search(line):
            yield f"{name}:{number}: unfinished note: {line.strip()}"
    if is_source and len(lines) > SOFT_MAX_LINES and name not in LONG_FILES:
        yield (f"{name}:{len(lines)}: more than {SOFT_MAX_LINES} lines; split it by responsibility or add it to "
               f"LONG_FILES in {Path(__file__).name} with a reason")
    if name.startswith("README") and len(lines) > README_MAX_LINES:
        yield f"{name}:{len(lines)}: more than {README_MAX_LINES} lines"
    yield from banned_phrases(name, lines)


def folder_of(name):
    parts = name.split("/")
    depth = 3 if name.startswith(("src/adapters/", "src/catalog/")) else 2
    return "/".join(parts[:depth] if len(parts) > depth else parts[:-1]) or "."


def print_counts(texts):
    counts = collections.Counter()
    for name, lines in texts.items():
        found = len(list(banned_phrases(name, lines)))
        if found:
            counts[folder_of(name)] += found
    for folder, count in sorted(counts.items()):
        print(f"{count:6}  {folder}")
    print(f"{sum(counts.values()):6}  total")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", action="store_true", help="print the number of banned phrases per folder")
    parser.add_argument("root", nargs="?", help="root of a git work tree (default: this project)")
    arguments = parser.parse_args()
    own = Path(__file__).parent.parent.resolve()
    root = Path(arguments.root).resolve() if arguments.root else own
    names = tracked(root)
    texts = {name: lines for name in names if (lines := read_lines(root / name)) is not None}
    if arguments.count:
        print_counts(texts)
        return 0
    offenses = [offense for name, lines in texts.items() for offense in check_file(name, lines)]
    if root == own:
        offenses += [f"{name}: in LONG_FILES but not tracked" for name in LONG_FILES if name not in names]
    print("\n".join(offenses) if offenses else f"text: {len(names)} tracked files are in order")
    return 1 if offenses else 0


if __name__ == "__main__":
    sys.exit(main())

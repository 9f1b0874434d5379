#!/usr/bin/python3
"""BERT's tokenizer by the letter of its rules, on Python's own Unicode tables: what src/tokenizer is held to.

    wordpiece.py --make            write wordpiece.tsv from the cases below
    wordpiece.py --check           exit with 1 unless wordpiece.tsv is what --make would write
    wordpiece.py --compare PROGRAM [--strings N] [--seed S]
                                   compare PROGRAM (wordpiece_lines.c) on the characters this Python knows, one by
                                   one, and on N random strings

Needs Python 3 and none of its packages. A line of wordpiece.tsv is OPTIONS, TEXT and PIECES, with tabs between them.
Options: cased, replace (what is not UTF-8 is dropped), max=N (characters of a word), or "-". In a text, bytes other than
'!' to '~' and the backslash are written \\xNN. Pieces have spaces between them; "!N" stands for an error at byte N.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CJK = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
       (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]


class Memo(dict):
    """A function of a character that remembers."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def __missing__(self, char):
        self[char] = value = self.function(char)
        return value


def cleaned(char):
    category = unicodedata.category(char)
    if char in "\t\n\r" or category == "Zs":
        return " "
    if char in "\0\ufffd" or category in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if any(first <= ord(char) <= last for first, last in CJK):
        return " " + char + " "
    return char


def is_punctuation(char):
    if char < "\x7f" and char > " ":
        return not char.isalnum()
    return unicodedata.category(char)[0] == "P"


CLEANED = Memo(cleaned)
PUNCTUATION = Memo(is_punctuation)
MARK = Memo(lambda char: unicodedata.category(char) == "Mn")


def words_of(text, cased):
    words = []
    for run in "".join(CLEANED[char] for char in text).split():
        if run in SPECIALS:
            words.append(run)
            continue
        if not cased:
            run = "".join(c for c in unicodedata.normalize("NFD", run.lower()) if not MARK[c])
        words += "".join(" " + c + " " if PUNCTUATION[c] else c for c in run).split()
    return words


def pieces_of(word, vocabulary, word_max):
    if word in SPECIALS:
        return [word]
    if len(word) > word_max:
        return ["[UNK]"]
    pieces, begin = [], 0
    while begin < len(word):
        for end in range(len(word), begin, -1):
            piece = ("##" if begin else "") + word[begin:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        begin = end
    return pieces


def options_of(options):
    names = options.split(",")
    word_max = [int(name[4:]) for name in names if name.startswith("max=")] + [100]
    return "cased" in names, "replace" in names, word_max[0]


def tokenize(data, options, vocabulary):
    """Pieces of some bytes and the words they come from; both None, and the position, for an error."""
    cased, replace, word_max = options_of(options)
    try:
        text = data.decode("utf-8", "replace" if replace else "strict")
    except UnicodeDecodeError as error:
        return None, None, error.start
    words = words_of(text, cased)
    return [p for word in words for p in pieces_of(word, vocabulary, word_max)], words, None


def escaped(data):
    return "".join(chr(b) if 0x21 <= b <= 0x7E and b != 0x5C else "\\x%02x" % b for b in data)


# Cases: options and text, str or bytes.
CASES = [
    ("-", ""), ("-", " \t\r\n"), ("-", "hello world"), ("-", "Hello, WORLD!"), ("cased", "Hello, WORLD!"),
    ("-", "unaffable"), ("-", "unwanted running"), ("-", "runx"), ("-", "helloworld"), ("-", "un un"),
    ("-", "a\u00a0b\u2003c\u3000d\u2028e\u2029f"), ("-", "a\x0bb\x0cc\x1cd\x85e\x7ff"),
    ("-", "a\0b\ufffdc\u200bd\u200de\ufefff\u00adg"), ("-", "a\ue000b\U000f0000c"),
    ("-", "H\u00e9llo W\u00f6rld"), ("-", "He\u0301llo Wo\u0308rld"), ("cased", "H\u00e9llo"), ("cased", "He\u0301llo"),
    ("-", "\u0301"), ("-", "a\u0301\u0323\u0308 \u0301 b"), ("-", "\u1ec7 \u1e69 \ufb03 \u01c4 \u01c5"),
    ("-", "\u4f60\u597d"), ("-", "ab\u4f60c\u597d"), ("cased", "ab\u4f60c\u597d"), ("-", "\uf900\U0002f800"),
    ("-", "\u4f60\u0301b"), ("-", "\u3072\u3089\u304c\u306a \u30ab\u30bf\u30ab\u30ca"), ("-", "\u304c\u30d1"),
    ("-", "\ud55c\uad6d\uc5b4 \uac00"), ("cased", "\ud55c\uad6d\uc5b4"), ("-", "\u1112\u1161\u11ab"),
    ("-", "\U0001f600\U0001f44d\U0001f3fd"), ("-", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
    ("-", "\u2764\ufe0f!"), ("-", "#\ufe0f\u20e3"), ("-", "I \u0130 \u0131 \u0130STANBUL"), ("cased", "\u0130 \u0131"),
    ("-", "stra\u00dfe STRASSE STRA\u1e9eE"), ("-", "\u13a0\u13f0 \uab70"), ("-", "\u10a0\u10d0\u1c90 \u0555\u0565"),
    ("-", "\u039f\u03a3 \u03a3 \u039f\u03a3\u039f \u039f\u03a3' \u039f'\u03a3 \u039f\u03a3.\u039f \u03a3\u03a3"),
    ("-", "\u039f\u03a3\u0301\u00ad"), ("-", "\u039f\u03a3, \u039f\u03a3-\u039f"), ("cased", "\u039f\u03a3"),
    ("-", "\u24b6\u03a3 \u2160\u03a3 \u00aa\u03a3 \u02b0\u03a3 1\u03a3"),
    ("-", "\u212b \u212a \u2126 \u1fef \u037e \u0387"), ("-", "\u03d4 \u0344 \u1fbe"),
    ("-", "a\U0001d16d\U0001d165b a\u302f\U0001d165b"), ("-", "a\U0001d16d\u1037\u0b55\U0001d165b"),
    ("-", "\U0001d15e\U0001d160"), ("-", "a\U0001d16d\u0b4d\u0345\U0001d165b"),
    ("-", "!?...--''\"\"``~^$+<=>|#@&*()[]{}\\/:;,_%"), ("-", "a_b-c.d'e"), ("-", "don't stop"), ("-", "##ing # ## ing"),
    ("-", "\u201cquoted\u201d \u2014 \u00a1hola! \u00bfque? \u00ab\u00bb \u2026 \u3001\u3002"),
    ("-", "\u20ac5 \u00a35 5\u00b0 \u00b12 \u00d7 \u00f7 \u2192 \u00a9"), ("-", "x\u00b2 \u00bd \u2460 \u2163 \u0663"),
    ("-", "[MASK]"), ("-", "a [MASK] b [CLS] [SEP] [PAD] [UNK]"), ("-", "[MASK]."), ("-", "[mask] [Mask]"),
    ("cased", "[mask] [MASK]"), ("-", "x[MASK]"), ("-", "[MA\0SK] [\u200bCLS] \u4f60[SEP]\u597d"), ("-", "[MASK]\u0301"),
    ("-", "[ MASK ]"), ("-", "[OTHER]"), ("max=3", "abc abcd [MASK] [ABC] abcdabcd"), ("max=1", "a ab \u00e9 \u00e9\u00e9"),
    ("max=2", "a\u0301\u0301\u0301b \uac00 \uac01"), ("-", "a" * 100), ("-", "a" * 101), ("-", "a" * 101 + "!b"),
    ("-", "\u00e9" * 100), ("-", "\u00e9" * 101), ("cased", "\u00e9" * 100), ("-", "a" * 700 + " b"),
    ("-", "\u0430" * 400 + " b"), ("max=1000", "a" * 1000), ("max=1000", "a" * 1001),
    ("-", b"ab\xff"), ("-", b"\xc3\x28"), ("-", b"a\xc0\xafb"), ("-", b"\xed\xa0\x80"), ("-", b"\xf4\x90\x80\x80"),
    ("-", b"a \xe2\x82"), ("-", b"\x80"), ("-", b"a\xf8\x88\x80\x80\x80"), ("-", b"good \xc3\xa9 then \xe9"),
    ("replace", b"ab\xffc"), ("replace", b"a\xc3(b"), ("replace", b"a\xc0\xafb"), ("replace", b"a\xed\xa0\x80b"),
    ("replace", b"a\xf4\x90\x80\x80b"), ("replace", b"a\xe2\x82"), ("replace", b"\xff\xfe"), ("replace", b"[MA\xffSK]"),
    ("replace,cased", b"A\xe2\x82B \xf0\x9f\x98"), ("replace", b"a \xf0\x9f\x98\xe4\xbd\xa0b"),
    ("-", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22"), ("-", "\u0939\u093f\u0928\u094d\u0926\u0940"),
    ("-", "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd"), ("-", "\u0645\u0631\u062d\u0628\u0627\u064b"),
    ("-", "\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u0419\u0401"), ("-", "Ti\u1ebfng Vi\u1ec7t"),
    ("-", "\uff21\uff22\uff43 \uff01\uff1f"), ("-", "\U00010400\U00010428 \U0001e900"), ("-", "\U000e0041a\ufff9b"),
    ("-", "\u180e \u2060 \u061c x"), ("-", "a\u034fb \u0600c"), ("cased", "na\u00efve r\u00e9sum\u00e9"),
]


def case_bytes(text):
    return text if isinstance(text, bytes) else text.encode("utf-8")


def case_vocabulary():
    """Pieces for the cases: some by hand, and every character of their words, first and continued."""
    pieces = list(SPECIALS) + ["hello", "world", "un", "##aff", "##able", "##want", "##ed", "runn", "##ing", "run",
                               "Hello", "ab", "abc", "##cd", "##b", "str", "##as", "##se"]
    chars = set()
    for options, text in CASES:
        words = tokenize(case_bytes(text), options + ",replace", set())[1]
        chars.update("".join(word for word in words if word not in SPECIALS))
    chars -= set("x\u20ac\u0565\u0e20")  # so that something is unknown
    for char in sorted(chars):
        pieces += [piece for piece in (char, "##" + char) if piece not in pieces]
    return pieces


def make_table():
    vocabulary = case_vocabulary()
    known, lines = set(vocabulary), []
    for options, text in CASES:
        pieces, _, error = tokenize(case_bytes(text), options, known)
        expected = "!%d" % error if pieces is None else " ".join(pieces)
        lines.append("%s\t%s\t%s" % (options, escaped(case_bytes(text)), expected))
    return "\n".join(vocabulary) + "\n", "\n".join(lines) + "\n"


def known_characters(unicode_version):
    """Those that this Python and the program know: all of Python's, or Unicode 3.2's when Python is the newer one. Most of the
    planes for private use are left out."""
    def version(text):
        return [int(part) for part in text.split(".")]
    table = unicodedata
    if version(unicodedata.unidata_version) > version(unicode_version):
        table = unicodedata.ucd_3_2_0
    return [chr(c) for c in range(0x110000) if table.category(chr(c)) not in ("Cn", "Cs") and not 0xF0100 < c < 0x10FFF0]


def random_text(rng, pools):
    parts = []
    for _ in range(rng.randrange(1, 5)):
        pool = rng.choice(pools)
        parts += rng.choices(pool, k=rng.randrange(1, 7))
        if rng.random() < 0.3:
            parts.append(rng.choice(pools[0]))
    return "".join(parts).encode("utf-8")


def damaged(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        data.insert(rng.randrange(len(data) + 1), rng.randrange(0x80, 0x100))
    return bytes(data)


def make_pools(chars):
    def block(first, last):
        return [c for c in chars if first <= ord(c) <= last]
    marks = [c for c in chars if unicodedata.combining(c)]
    moved = [c for c in marks if unicodedata.category(c) != "Mn"]
    return [list(" \t\n") + [c for c in chars if unicodedata.category(c)[0] == "Z"], list("abcdeABCDE01"),
            list("aeiouAEIOU\u0130\u00df\u00c5"), block(0, 0x7F), block(0x80, 0x24F), block(0x370, 0x3FF),
            list("\u03a3\u03a3\u03a3\u039f\u03bf'.:,\u0301\u02b0\u24b6 "), marks, marks[:40] + list("ae"),
            moved + marks[:20] + list("a\u0b4d"), block(0x400, 0x52F), block(0x900, 0xDFF), block(0xAC00, 0xD7A3),
            block(0x3000, 0x30FF), block(0x4E00, 0x4FFF), block(0xF900, 0xFAFF), block(0x1F300, 0x1FAFF),
            block(0x2000, 0x206F), block(0x1D100, 0x1D1FF), chars, chars,
            [" %s " % s for s in SPECIALS] + SPECIALS + ["[", "]", "MASK"]]


def make_strings(chars, count, seed):
    rng, pools, known = random.Random(seed), make_pools(chars), set(chars)
    for char in chars:  # each alone in a word, which shows its class, its lower case and its parts
        yield rng.choice(["-", "cased"]), ("b" + char + "a").encode("utf-8")
    for char in chars:  # and its case, by what a sigma makes of it
        yield "-", ("%s\u03a3 \u039f%s\u03a3 \u039f\u03a3%s" % (char, char, char)).encode("utf-8")
    for _ in range(count):
        options = rng.choice(["-", "-", "-", "cased", "max=3", "cased,max=2"])
        text = random_text(rng, pools)
        if rng.random() < 0.05:
            text, options = damaged(rng, text), options + rng.choice(["", ",replace", ",replace"])
            if not known.issuperset(text.decode("utf-8", "ignore")):
                continue  # damage can make a character that only one side knows
        yield options, text


def make_vocabulary(strings, seed):
    """Parts of the words of some of the strings."""
    rng, pieces = random.Random(seed), dict.fromkeys(SPECIALS)
    for options, text in rng.sample(strings, min(len(strings), 30000)):
        words = tokenize(text, options + ",replace", set())[1]
        for word in words:
            begin = rng.randrange(len(word))
            pieces["##" * (begin > 0) + word[begin:begin + rng.randrange(1, 5)]] = None
            pieces[word[0]] = None
    return list(pieces)


def compare(program, count, seed):
    version = subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()
    chars = known_characters(version)
    strings = list(make_strings(chars, count, seed))
    pieces = make_vocabulary(strings, seed)
    known = set(pieces)
    print("seed %d, %d strings, %d characters of Unicode %s here and %s there, %d pieces" % (
        seed, len(strings), len(chars), unicodedata.unidata_version, version, len(pieces)))
    with tempfile.TemporaryDirectory() as folder:
        vocab = os.path.join(folder, "vocab.txt")
        with open(vocab, "w", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(pieces) + "\n")
        lines = "".join("%s %s\n" % (options, text.hex()) for options, text in strings)
        got = subprocess.run([program, vocab], input=lines.encode(), check=True, stdout=subprocess.PIPE).stdout
    differ, unknown, total = 0, 0, 0
    answers = got.decode("utf-8").split("\n")
    for (options, text), answer in zip(strings, answers):
        want, words, error = tokenize(text, options, known)
        expected = "!%d" % error if want is None else "%s | %s" % (" ".join(shown(words, options)), " ".join(want))
        total += len(want or [])
        unknown += (want or []).count("[UNK]")
        if answer != expected:
            differ += 1
            if differ <= 10:
                print("text %s options %s\n  got      %r\n  expected %r" % (escaped(text), options, answer, expected))
    print("%d tokens, %d of them unknown; %d strings differ" % (total, unknown, differ))
    return 1 if differ or len(answers) != len(strings) + 1 else 0


def shown(words, options):
    """A word that is too long is not kept by the program."""
    word_max = options_of(options)[2]
    return [word if word in SPECIALS or len(word) <= word_max else "-" for word in words]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--compare", metavar="PROGRAM")
    parser.add_argument("--strings", type=int, default=200000)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    if arguments.compare:
        seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
        return compare(arguments.compare, arguments.strings, seed)
    failed = 0
    for name, text in zip(("wordpiece-vocab.txt", "wordpiece.tsv"), make_table()):
        path = os.path.join(HERE, name)
        if arguments.make:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        elif arguments.check:
            with open(path, encoding="utf-8", newline="\n") as file:
                if file.read() != text:
                    print("%s is not what wordpiece.py --make writes" % name)
                    failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())

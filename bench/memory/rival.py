"""Measure hnswlib with one thread on vectors of sentences.

    rival.py FOLDER SET truth
    rival.py FOLDER SET build
    rival.py FOLDER SET search SECONDS RECALL

SET is model for the vectors that embed.py made, lexical for those of the program.
truth writes the numbers of the ten nearest of each question by an exact search. build prints vectors a second and saves the graph. search takes the shortest beam that
reaches RECALL, and prints queries a second, the recall and the beam.
"""
import os
import sys
import time

import hnswlib
import numpy as np

DIMS, K = 384, 10
BEAMS = (10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 200, 256, 320, 400, 512)


def read(folder, name):
    rows = np.fromfile(os.path.join(folder, name), dtype="<f4")
    return rows[:len(rows) // DIMS * DIMS].reshape(-1, DIMS)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def nearest(q, x):
    out = np.empty((len(q), K), dtype="<u4")
    for i in range(0, len(q), 100):
        sims = q[i:i + 100] @ x.T
        near = np.argpartition(-sims, K, axis=1)[:, :K]
        order = np.argsort(-np.take_along_axis(sims, near, 1), axis=1)
        out[i:i + 100] = np.take_along_axis(near, order, 1)
    return out


def main():
    folder, which, what = sys.argv[1], sys.argv[2], sys.argv[3]
    x = unit(read(folder, which + "-vectors.f32"))
    q = unit(read(folder, which + "-questions.f32"))
    path = os.path.join(folder, which + "-hnswlib.graph")
    if what == "truth":
        nearest(q, x).tofile(os.path.join(folder, which + "-truth.u32"))
        return
    index = hnswlib.Index(space="ip", dim=DIMS)
    if what == "build":
        index.init_index(max_elements=len(x), M=16, ef_construction=100, random_seed=1)
        index.set_num_threads(1)
        began = time.perf_counter()
        index.add_items(x)
        print(len(x) / (time.perf_counter() - began))
        index.save_index(path)
        return
    seconds, wanted = float(sys.argv[4]), float(sys.argv[5])
    truth = np.fromfile(os.path.join(folder, which + "-truth.u32"), dtype="<u4").reshape(-1, K)
    index.load_index(path, max_elements=len(x))
    index.set_num_threads(1)
    for beam in BEAMS:
        index.set_ef(beam)
        labels, _ = index.knn_query(q, k=K)
        recall = np.mean([len(np.intersect1d(a, b)) for a, b in zip(labels, truth)]) / K
        if recall >= wanted:
            break
    asked, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        index.knn_query(q, k=K)
        asked += len(q)
    print(asked / (time.perf_counter() - began), recall, beam)


main()

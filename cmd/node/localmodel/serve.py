"""llama.cpp's server with one model, for this machine alone: serve.py MODEL PORT NAME. It ends when its standard input does."""
import os
import resource
import sys

import xllamacpp

model, port, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
p = xllamacpp.CommonParams()
p.model.path, p.hostnames, p.port, p.model_alias, p.warmup, p.verbosity = model, ["127.0.0.1"], port, {name}, False, 0
# All that the model can read: what command lines send at their first call alone is more than 16,000 tokens.
p.n_ctx, p.n_predict, p.n_parallel = 32768, 4096, 1
# Reading a prompt takes all processors: 121 kB of one are 30,000 tokens. What else runs on the machine, such as the node, goes first.
threads = min(8, os.cpu_count() or 1)
os.nice(10)
p.cpuparams.n_threads, p.cpuparams_batch.n_threads = threads, threads
server = xllamacpp.Server(p)
print("listening " + server.listening_address, flush=True)
sys.stdin.read()

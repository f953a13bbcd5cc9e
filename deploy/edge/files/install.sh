#!/bin/sh
# Installs selvage on this machine, after it has checked the release's signature.
#
#   sh install.sh [--from URL-OR-FOLDER] [--key FILE] [--join FILE] [--prefix DIR]
#
#   --from    where the release is; default: the folder that this script lies in
#   --key     the public key of the release (PEM); default: the one in this script
#   --join    a file with a join token: the node joins that mesh
#   --prefix  do not use packages or services, only put the program in DIR/bin
#
# It needs curl or wget for a URL, openssl 3 for the signature, and root but for --prefix.
set -eu

key='@RELEASE-KEY@'
from= join= prefix= keyfile=

die() { echo "install: $*" >&2; exit 1; }
say() { echo "install: $*" >&2; }

while [ $# -gt 0 ]; do
	case $1 in
	--from | --key | --join | --prefix)
		[ $# -ge 2 ] || die "$1 needs a value"
		case $1 in
		--from) from=$2 ;;
		--key) keyfile=$2 ;;
		--join) join=$2 ;;
		--prefix) prefix=$2 ;;
		esac
		shift 2
		;;
	-h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0"; exit 0 ;;
	*) die "unknown argument $1; see --help" ;;
	esac
done

[ -n "$from" ] || from=$(dirname "$0")
[ -n "$prefix" ] || [ "$(id -u)" = 0 ] || die "run it as root, or give --prefix for the program alone"
[ -z "$join" ] || [ -r "$join" ] || die "no join token in $join"
[ "$(uname -s)" = Linux ] || [ -n "$prefix" ] || die "on $(uname -s) use --prefix"
command -v openssl >/dev/null 2>&1 || die "openssl is needed to check the signature: install it first"

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) die "there is no release for $(uname -s)" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 deb=amd64 rpm=x86_64 ;;
aarch64 | arm64) arch=arm64 deb=arm64 rpm=aarch64 ;;
armv7* | armv8l) arch=armv7 deb=armhf rpm=armv7hl ;;
riscv64) arch=riscv64 deb=riscv64 rpm=riscv64 ;;
*) die "there is no release for $(uname -m)" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# fetch NAME LIMIT: the file NAME of the release, of at most LIMIT bytes.
fetch() {
	case $from in
	http://* | https://*)
		if command -v curl >/dev/null 2>&1; then
			curl -fsSL --retry 3 --connect-timeout 20 --max-time 900 --max-filesize "$2" -o "$work/$1" "$from/$1"
		elif command -v wget >/dev/null 2>&1; then
			wget -q -T 60 -t 3 -O "$work/$1" "$from/$1"
		else
			die "curl or wget is needed for $from"
		fi
		;;
	*) cp "$from/$1" "$work/$1" ;;
	esac || die "$1 is not to be had from $from"
	[ "$(wc -c <"$work/$1")" -le "$2" ] || die "$1 is larger than any release's"
}

if [ -n "$keyfile" ]; then
	cp "$keyfile" "$work/key" || die "no key in $keyfile"
else
	case $key in
	*BEGIN*) printf '%s\n' "$key" >"$work/key" ;;
	*) die "this script carries no key: give the release's public key with --key" ;;
	esac
fi
fetch SHA256SUMS 65536
fetch SHA256SUMS.sig 4096
openssl pkeyutl -verify -pubin -inkey "$work/key" -rawin -in "$work/SHA256SUMS" -sigfile "$work/SHA256SUMS.sig" >/dev/null 2>&1 ||
	die "the signature of the release is not of this key: nothing was installed"
say "the signature is good"

# pick PATTERN: the one name in the signed list that ends so.
pick() {
	name=$(awk -v end="$1" 'length($2) >= length(end) && substr($2, length($2)-length(end)+1) == end && $2 !~ /[^A-Za-z0-9._~+-]/ { print $2 }' "$work/SHA256SUMS")
	[ "$(printf '%s\n' "$name" | grep -c .)" = 1 ] || return 1
	echo "$name"
}

# get NAME: fetches it and checks it against the signed sum.
get() {
	fetch "$1" 268435456
	want=$(awk -v name="$1" '$2 == name { print $1 }' "$work/SHA256SUMS")
	have=$(openssl dgst -sha256 -r "$work/$1" | cut -d' ' -f1)
	[ "$want" = "$have" ] || die "$1 is not what was signed: nothing was installed"
}

if [ -n "$prefix" ]; then
	file=$(pick "_${os}_$arch.tar.gz") || die "the release has nothing for $os on $arch"
	get "$file"
	mkdir -p "$prefix/bin"
	tar -xzf "$work/$file" -C "$work" selvage
	mv "$work/selvage" "$prefix/bin/selvage.new"
	mv "$prefix/bin/selvage.new" "$prefix/bin/selvage"
	say "$("$prefix/bin/selvage" --version) is in $prefix/bin"
	[ -z "$join" ] || say "start it with: $prefix/bin/selvage up --join @$join"
	exit 0
fi

# The token lies where the service looks before it starts for the first time.
if [ -n "$join" ]; then
	mkdir -p /etc/selvage
	(umask 077 && cat "$join" >/etc/selvage/join)
	echo 'SELVAGE_JOIN=@/etc/selvage/join' >/etc/selvage/environment
fi
if command -v dpkg >/dev/null 2>&1; then
	file=$(pick "_$deb.deb") || die "the release has no package for $deb"
	get "$file"
	dpkg -i "$work/$file"
elif command -v rpm >/dev/null 2>&1; then
	file=$(pick ".$rpm.rpm") || die "the release has no package for $rpm"
	get "$file"
	rpm -U --replacepkgs "$work/$file"
else
	die "neither dpkg nor rpm is here: use --prefix"
fi
say "$(selvage --version) is installed"
if [ -d /run/systemd/system ]; then
	say "look at it with: systemctl status selvage; selvage members"
else
	say "start it with: selvage up --dir /var/lib/selvage --config /etc/selvage/config.yaml"
fi

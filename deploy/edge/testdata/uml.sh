#!/bin/sh
# The first process of a Linux in user mode, whose files are this machine's, to be
# read only: it makes a machine of them as boot.sh does, that runs a script and
# ends. uml.sh MODULE PACKAGE SCRIPT REPORTS; what the script says is in
# REPORTS/said, and REPORTS/over is there when it came to its end.
set -e
module=$1 package=$2 script=$3 reports=$4
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
# Its kernel has no overlays built in, and few machines bring insmod for a guest.
perl -e 'open my $f, "<", $ARGV[0] or die "$!"; my $o = ""; syscall(313, fileno $f, $o, 0) == 0 or die "$!"' "$module"
mount -t tmpfs tmpfs /mnt
mkdir /mnt/machine /mnt/more
cp "$script" /mnt/more/script
cat >/mnt/more/check.service <<UNIT
[Unit]
After=basic.target
[Service]
Environment=HOME=/root PATH=$PATH
StandardOutput=append:/reports/said
StandardError=append:/reports/said
ExecStart=/bin/sh /script
ExecStopPost=/bin/sh -c 'touch /reports/over; systemctl poweroff -ff'
UNIT
export MORE=/mnt/more REPORTS="$reports"
exec sh "${0%/*}/boot.sh" /mnt/machine "$package"

#!/bin/sh
# Before the files go; an upgrade leaves the service alone.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then systemctl disable --now selvage.service; fi
	;;
esac

#!/bin/sh
# The data of the node stay: they may be the only copy of something. Purging the
# package removes them.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/selvage /etc/selvage
fi

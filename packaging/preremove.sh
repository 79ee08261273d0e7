#!/bin/sh
# Runs while the files are still there. dpkg says "remove", or "upgrade"; rpm says how many versions will be left.
set -e
case "$1" in
remove | 0)
	if command -v systemctl >/dev/null; then
		systemctl --quiet --no-reload disable solotick.service
	fi
	# A stop drains: it waits until the running jobs have ended.
	if [ -d /run/systemd/system ]; then
		systemctl stop solotick.service
	fi
	;;
esac

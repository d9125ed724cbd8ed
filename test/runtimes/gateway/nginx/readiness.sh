#!/bin/sh
# readiness.sh DIR NAME=URL... keeps the file DIR/NAME in place as long as URL/readyz answers 200, for nginx to look at.
# One loop for each, so that one that hangs holds up no other; they end with this script, and it with its parent. An
# instance has to announce (ANNOUNCE_MS) for longer than a round takes.
dir=$1
shift
for pair; do
  while kill -0 "$PPID" && kill -0 "$$"; do
    if curl --silent --fail --max-time 1 --output /dev/null "${pair#*=}/readyz"; then
      : >"$dir/${pair%%=*}"
    else
      rm -f "$dir/${pair%%=*}"
    fi
    sleep "${INTERVAL:-0.2}"
  done 2>/dev/null &
done
wait

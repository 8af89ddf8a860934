#!/bin/bash
# Prints the training text of the demo model: the King James Bible (public domain) as the Debian packages
# bible-kjv and bible-kjv-text ship it, one verse a line, without references. 4.1 MB of ASCII.
#   tools/kjv_text.sh > build/kjv.txt
set -euo pipefail
if ! command -v bible >/dev/null; then
  echo "kjv_text.sh: no 'bible' program; apt-get install bible-kjv bible-kjv-text" >&2
  exit 2
fi
# "1Sa3:4 And the LORD called Samuel" -> "And the LORD called Samuel"
bible -f Gen1:1-Rev22:21 | sed -E 's/^[^ ]+:[0-9]+ //'

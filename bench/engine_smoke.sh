#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The smallest run of `bench engine`: every record has what it is read for.
#
#   engine_smoke.sh BENCH_DRIVER SCRATCH
set -eu
driver=$1 scratch=$2
rm -f "$scratch/engine.json"
point='^post_and_match/structure:(adaptive|linear|vector)/depth:8/order:last/.*one_source/holes:dense/wildcards:0/cache:hot$'
"$driver" engine --quick --filter "$point" --output "$scratch"
python3 - "$scratch/engine.json" <<'EOF'
import json, sys

TEXTS = ("structure", "variant", "isa", "side", "order", "keys", "holes", "cache")
NUMBERS = ("depth", "wildcard_percent", "ns_per_match", "ns_low", "ns_high", "ns_max",
           "lines_per_match", "bytes_per_entry")
records = json.load(open(sys.argv[1]))
missing = [(record.get("structure"), record.get("side"), field)
           for record in records if record.get("structure") != "headroom"
           for field, kind in [(f, str) for f in TEXTS] + [(f, (int, float)) for f in NUMBERS]
           if not isinstance(record.get(field), kind)]
found = {(record["structure"], record["side"]) for record in records}
wanted = {(structure, side) for structure in ("adaptive", "linear", "vector")
          for side in ("posted", "unexpected")}
if missing or not wanted <= found:
    sys.exit("engine_smoke.sh: missing: %s" % (missing + sorted(wanted - found)))
EOF

#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Every file that README links to is there.
cd "$(dirname "$0")/.." || exit 1
missing=$(grep -o ']([^)#]*' README.md | cut -c3- | grep -v '^[a-z]*:' | sort -u |
  while read -r file; do [ -e "$file" ] || echo "$file"; done)
[ -z "$missing" ] && exit 0
echo "README.md links to what is not there:"
echo "$missing"
exit 1

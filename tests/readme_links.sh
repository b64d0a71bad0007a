#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Every file that a README links to is there, and so is every heading.
cd "$(dirname "$0")/.." || exit 1

# Headings of a page, as the names that links give them.
headings() {
  sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

missing=$(for page in README.md */README.md; do
  grep -o ']([^)]*' "$page" | cut -c3- | grep -v '^[a-z]*:' | sort -u |
    while IFS='#' read -r file heading; do
      target=${file:+$(dirname "$page")/$file}
      target=${target:-$page}
      if [ ! -e "$target" ]; then
        echo "$page: $file"
      elif [ -n "$heading" ] && ! headings "$target" | grep -qxF -e "$heading"; then
        echo "$page: $file#$heading"
      fi
    done
done)
[ -z "$missing" ] && exit 0
echo "Links to what is not there:"
echo "$missing"
exit 1

#!/usr/bin/env bash
# Runs mcpconform for action.yml. Runs with the bash 3.2 of macOS.
set -euo pipefail

fail() {
  echo "::error title=mcpconform::$1"
  exit 2
}

# words appends the words of $1 to args.
words() {
  local split word
  [[ $1 =~ [^[:space:]] ]] || return 0
  split=$(xargs printf '%s\n' <<<"$1") || fail "the quotes of an input are not in pairs"
  while IFS= read -r word; do args+=("$word"); done <<<"$split"
}

# fetch downloads file $2 from $1 into folder $3.
fetch() {
  curl --fail --silent --show-error --location --retry 3 --output "$3/$2" "$1/$2" || fail "$1/$2 cannot be downloaded"
}

# download puts the program of release $1 into folder $2.
download() {
  local releases=${MCPCONFORM_RELEASES:-https://github.com/mcpconform/mcpconform/releases} version=$1 os arch ending=tar.gz archive
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) os=windows ending=zip ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    arm64 | aarch64) arch=arm64 ;;
    *) fail "there is no release for the processor $(uname -m)" ;;
  esac
  if [ "$version" = latest ]; then
    # The names of its files tell which one it is.
    fetch "$releases/latest/download" SHA256SUMS "$2"
    version=v$(sed -n 's/^[0-9a-f]*  mcpconform_\([^_]*\)_'"${os}_$arch.$ending"'$/\1/p' "$2/SHA256SUMS")
  fi
  [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$ ]] || fail "version has to be like v0.1.0, or latest: ${version:0:40}"
  archive=mcpconform_${version#v}_${os}_$arch.$ending
  fetch "$releases/download/$version" SHA256SUMS "$2"
  fetch "$releases/download/$version" "$archive" "$2"
  cd "$2"
  grep -F "  $archive" SHA256SUMS >sum || fail "SHA256SUMS does not list $archive"
  if command -v sha256sum >/dev/null; then sha256sum -c sum >/dev/null; else shasum -a 256 -c sum >/dev/null; fi ||
    fail "the checksum of $archive is not the one in SHA256SUMS"
  if [ $ending = zip ]; then unzip -q "$archive"; else tar -xzf "$archive"; fi
  cd "$OLDPWD"
}

reports=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/mcpconform.XXXXXX")
if [ -n "${INPUT_VERSION:-}" ]; then
  mkdir "$reports/bin"
  download "$INPUT_VERSION" "$reports/bin"
  PATH=$reports/bin:$PATH
fi
command -v mcpconform >/dev/null || fail "mcpconform is not on the PATH; set version, to download a release"
mcpconform version | grep -Fqx "revision   $INPUT_REVISION" || fail "this mcpconform does not know the revision that is given"

case $INPUT_ROLE in
  server | client) ;;
  *) fail "role has to be server or client" ;;
esac
args=("$INPUT_ROLE" --json "$reports/results.json" --junit "$reports/report.xml" --html "$reports/report.html" --sarif "$reports/report.sarif")
case $INPUT_FAIL_ON in
  failure | never) ;;
  warning) args+=(--strict) ;;
  *) fail "fail-on has to be failure, warning or never" ;;
esac
words "${INPUT_ARGS:-}"
if [ -n "${INPUT_COMMAND:-}" ] && [ -z "${INPUT_URL:-}" ]; then
  args+=(--)
  words "$INPUT_COMMAND"
elif [ -n "${INPUT_URL:-}" ] && [ -z "${INPUT_COMMAND:-}" ] && [ "$INPUT_ROLE" = server ]; then
  args+=(--url "$INPUT_URL")
else
  fail "give a command, or for a server the url in its place"
fi

code=0
mcpconform "${args[@]}" || code=$?
if [ -s "$reports/results.json" ]; then
  # No text of a target begins a line of the results.
  verdict=$(sed -n 's/^  "verdict": "\([a-z -]*\)",\{0,1\}$/\1/p' "$reports/results.json" | tr ' ' -)
  counts=$(sed -n 's/^      "verdict": "\([a-z -]*\)",\{0,1\}$/\1/p' "$reports/results.json" | sort | uniq -c |
    awk '{n = $1; $1 = ""; printf "%s\"%s\":%d", (NR > 1 ? "," : ""), substr($0, 2), n}')
  {
    echo "verdict=$verdict"
    echo "counts={$counts}"
    echo "json=$reports/results.json"
    echo "junit=$reports/report.xml"
    echo "html=$reports/report.html"
    echo "sarif=$reports/report.sarif"
  } >>"$GITHUB_OUTPUT"
fi
if [ "$INPUT_FAIL_ON" = never ] && [ $code -ne 2 ]; then code=0; fi
exit $code

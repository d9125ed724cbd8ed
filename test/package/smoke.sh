#!/usr/bin/env bash
# Packs the package, installs the tarball into an empty project, and runs it there on Node, Bun and Deno.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT

cd "$root"
npm run --silent build # apart from packing, so that its errors are seen
tarball=$(npm pack --silent --ignore-scripts --pack-destination "$project" | tail -n 1)

cd "$project"
echo '{ "name": "consumer", "private": true, "type": "module" }' > package.json
npm install --silent "./$tarball" "hono@${HONO:-latest}" @hono/node-server
cp "$root/test/package/app.mjs" "$root/test/package/types.ts" .

failed=0
try() { # try NAME COMMAND...
  local name=$1
  shift
  printf '%-28s' "$name"
  "$@" || { failed=1; echo "FAILED"; }
}
echo "$tarball with hono $(node -p "JSON.parse(fs.readFileSync('node_modules/hono/package.json', 'utf8')).version")"
try 'Node' node app.mjs
try 'Bun' "$root/node_modules/.bin/bun" app.mjs
try 'Deno' "$root/node_modules/.bin/deno" run --node-modules-dir=manual --no-lock --allow-env --allow-read --allow-net app.mjs
try 'TypeScript declarations' "$root/node_modules/.bin/tsc" --noEmit --strict --target es2022 --module nodenext \
  --lib es2023,esnext.disposable,dom,dom.iterable,dom.asynciterable --types '' --exactOptionalPropertyTypes types.ts && echo 'compile'
try 'publint' "$root/node_modules/.bin/publint" --strict "$root" --pack false
try 'JSR, without publishing' bash -c "cd '$root' && node_modules/.bin/deno publish --dry-run --allow-dirty > '$project/jsr' 2>&1 \
  && echo 'no slow types' || { cat '$project/jsr'; false; }"
exit "$failed"

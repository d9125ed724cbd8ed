import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

const config: ReturnType<typeof defineConfig> = defineConfig({
  // The package by its own name, as the README's programs import it.
  resolve: {
    alias: [
      { find: /^@sluice\/admission$/, replacement: here('./mod.ts') },
      { find: /^@sluice\/admission\/(core|testing|gateway)$/, replacement: here('./src/$1.ts') },
      { find: /^@sluice\/admission\/(node|deno|bun)$/, replacement: here('./src/host/$1.ts') },
    ],
  },
  test: { include: ['test/**/*.test.ts'], testTimeout: 20_000 },
})
export default config
